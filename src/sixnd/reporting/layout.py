"""How does a table fit a width without losing a digit?

Right-aligned columns hold numbers and keep their full width; left-aligned columns give way, the widest first, and wrap
at blanks, dots, slashes and underscores. A table that is still too wide stays too wide: the terminal may fold its
lines, but nothing is cut. That promise, and that a piped report costs no import, is why `rich.table` is not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from sixnd.reporting.plain import plain
from sixnd.reporting.report import Align, Table

GAP = "  "
NARROWEST_BAR, WIDEST_BAR = 8, 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_PIECE = re.compile(r"[^\s./_]*(?:[\s./_]+|$)")


@dataclass(frozen=True)
class Span:
    """A stretch of text in one style, spelled as rich spells styles."""

    text: str
    style: str = ""


Line = tuple[Span, ...]
Cells = tuple[str, ...]


def lay_out(table: Table, width: int) -> list[Line]:
    """The lines of a table: heading, a thin rule, rows; with its bars where the width has room for them.

    >>> from sixnd.reporting.report import Column, Table
    >>> table = Table("", (Column("what"), Column("bytes", "right")), (("weights", "15 GiB"),), bars=(1.0,))
    >>> for line in lay_out(table, 26): print("".join(span.text for span in line))
    what      bytes
    ───────────────
    weights  15 GiB  █████████
    """
    headings = tuple(plain(column.heading) for column in table.columns)
    rows = [tuple(map(plain, row)) for row in table.rows]
    aligns = [column.align for column in table.columns]
    widths = _widths(headings, rows, aligns, width)
    full = sum(widths) + len(GAP) * (len(widths) - 1)
    lines: list[Line] = []
    if any(headings):
        lines = [(Span(line, "dim"),) for line in _row(headings, widths, aligns)]
        lines.append((Span("─" * full, "dim"),))
    bars = _bars(table.bars, min(width - full - len(GAP), WIDEST_BAR))
    for row, bar in zip_longest(rows, bars, fillvalue=""):
        first, *others = _row(tuple(row), widths, aligns)
        lines.append((Span(first + GAP), Span(bar, "cyan")) if bar else (Span(first),))
        lines.extend((Span(other),) for other in others)
    return lines


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most `width`, broken after blanks, dots, slashes and underscores; longer pieces stay whole.

    >>> wrap("layers.attention.query", 17)
    ['layers.attention.', 'query']
    """
    lines, line = [], ""
    for piece in _pieces(text):
        if line and cell_width((line + piece).rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()]


def bar(share: float, width: int) -> str:
    """A share of `width` columns, in eighths of a block.

    >>> bar(0.5, 5), bar(0.0, 5)
    ('██▌', '')
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _bars(shares: tuple[float, ...], width: int) -> list[str]:
    """A bar for each row, the largest share as wide as there is room; none where there is too little."""
    most = max(shares, default=0.0)
    if width < NARROWEST_BAR or most <= 0:
        return []
    return [bar(share / most, width) for share in shares]


def _widths(headings: Cells, rows: list[Cells], aligns: list[Align], width: int) -> list[int]:
    """The width of each column: numbers in full, the widest text giving way until the table fits or text cannot."""
    columns = list(zip(headings, *rows, strict=True))
    floors = [
        max(max(map(_longest_piece, cells)), 0 if align == "left" else max(map(cell_width, cells[1:]), default=0))
        for cells, align in zip(columns, aligns, strict=True)
    ]
    widths = [max(map(cell_width, cells)) for cells in columns]
    room = width - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and (loose := [i for i, floor in enumerate(floors) if widths[i] > floor]):
        widths[max(loose, key=lambda i: (widths[i], i))] -= 1
    return widths


def _row(cells: Cells, widths: list[int], aligns: list[Align]) -> list[str]:
    """The lines of one row, its cells wrapped and aligned, without blanks at the ends of lines."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return [
        GAP.join(_aligned(part, width, align) for part, width, align in zip(parts, widths, aligns, strict=True)).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    ]


def _aligned(text: str, width: int, align: Align) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if align == "right" else text + blanks


def _pieces(text: str) -> list[str]:
    return [piece for piece in _PIECE.findall(text) if piece]


def _longest_piece(text: str) -> int:
    return max((cell_width(piece.rstrip()) for piece in _pieces(text)), default=0)
