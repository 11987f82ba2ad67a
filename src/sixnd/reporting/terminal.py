"""How does a report look in a terminal?

A verdict, tables, what is assumed, what is not counted. On a terminal it is coloured and as wide as the terminal;
anywhere else, and under NO_COLOR, it is plain text, in a pipe always `PIPED_WIDTH` wide, so that the same result prints
the same bytes.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from sixnd.reporting.layout import Line, Span, lay_out
from sixnd.reporting.plain import HARD_BLANK, hold_units, plain
from sixnd.reporting.report import Report, Table

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 100
_WIDEST_PROSE = 100
_NARROWEST = 40
_INDENT = "  "
_ASCII = str.maketrans("█─✓✗·×−", "#-+x*x-", "▏▎▍▌▋▊▉")


def print_report(report: Report, console: Console | None = None, stream: TextIO | None = None) -> None:
    """Print a report to `console`, or to `stream` (standard output by default)."""
    stream = sys.stdout if stream is None else stream
    if console is None and not stream.isatty():
        stream.write(_encodable(render(report), stream.encoding))
        return
    from rich.console import Console
    from rich.text import Text

    if console is None:
        console = Console(file=stream, color_system=None if os.environ.get("NO_COLOR") else "auto", highlight=False)
    for line in lines(report, console.width):
        # soft_wrap leaves a line that is too long to the terminal, instead of cutting it.
        console.print(Text.assemble(*((span.text, span.style) for span in line)), soft_wrap=True)


def render(report: Report, width: int = PIPED_WIDTH) -> str:
    """A report as plain text.

    >>> print(render(Report("Time", "144 days", ok=True, notes=("MFU 50.0 %",))), end="")
    ✓ 144 days
    <BLANKLINE>
    Assumed
      · MFU 50.0 %
    """
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines(report, width))


def lines(report: Report, width: int) -> Iterator[Line]:
    """The lines of a report, in styles."""
    width = max(width, _NARROWEST)
    yield from _verdict(report, width)
    for table in report.tables:
        yield from _table(table, width)
    yield from _listed("Assumed", report.notes, "bold", width)
    yield from _listed("Not counted", report.uncounted, "bold yellow", width)


def _verdict(report: Report, width: int) -> Iterator[Line]:
    mark, style = {True: ("✓ ", "bold green"), False: ("✗ ", "bold red"), None: ("", "")}[report.ok]
    for number, line in enumerate(_prose(report.verdict, width - len(mark))):
        yield Span(mark if number == 0 else " " * len(mark), style), Span(line, "bold")


def _table(table: Table, width: int) -> Iterator[Line]:
    yield ()
    if table.title:
        yield (Span(plain(table.title), "bold"),)
    if table.rows:
        for line in lay_out(table, width - len(_INDENT)):
            yield Span(_INDENT), *line
    else:
        yield (Span(_INDENT + "none", "dim"),)
    for text in _prose(table.caption, width - len(_INDENT)):
        yield (Span(_INDENT + text, "dim"),)


def _listed(heading: str, notes: tuple[str, ...], style: str, width: int) -> Iterator[Line]:
    if notes:
        yield ()
        yield (Span(heading, style),)
    for note in notes:
        first, *others = _prose(note, width - len(_INDENT) - 2) or [""]
        yield Span(_INDENT), Span("· ", "dim"), Span(first)
        for other in others:
            yield (Span(_INDENT + "  " + other),)


def _prose(text: str, width: int) -> list[str]:
    """Running text in lines; a word longer than a line is broken, never cut."""
    wrapped = textwrap.wrap(hold_units(plain(text)), min(width, _WIDEST_PROSE), break_on_hyphens=False)
    return [line.replace(HARD_BLANK, " ") for line in wrapped]


def _encodable(text: str, encoding: str | None) -> str:
    """The text with whatever the stream cannot carry put in ASCII, as on a Windows pipe."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
