"""How does a report look as a page? One file that needs nothing else: no script, no request, readable on paper.

Every text is escaped; the figures are SVG that `sixnd.reporting.figures` drew, which escapes what it writes. The
page's own policy forbids scripts and requests on top of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from itertools import zip_longest

from sixnd.reporting.plain import hold_units, plain
from sixnd.reporting.report import Column, Report, Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_OPTION = re.compile(r"--[\w-]+")
_DOT_OF_A_PATH = re.compile(r"(?<=[A-Za-z_]\.)(?=[A-Za-z_])")


def render(report: Report) -> str:
    """A report as one self-contained HTML document.

    >>> page = render(Report("Account of <b>", "It fits.", ok=True))
    >>> page.startswith("<!doctype html>"), "<b>" in page, "&lt;b&gt;" in page
    (True, False, True)
    """
    return "\n".join(["<!doctype html>", '<html lang="en">', *_head(report), *_body(report), "</html>", ""])


def _head(report: Report) -> Iterator[str]:
    style = files("sixnd.reporting").joinpath("page.css").read_text(encoding="utf-8")
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{_text(report.title or report.verdict)}</title>"
    yield f"<style>\n{style}</style>"
    yield "</head>"


def _body(report: Report) -> Iterator[str]:
    mark, name = {True: ("✓", "good"), False: ("✗", "bad"), None: ("", "plain")}[report.ok]
    yield "<body>\n<main>"
    if report.title:
        yield f"<h1>{_text(report.title)}</h1>"
    sign = f'<span class="mark" aria-hidden="true">{mark}</span>' if mark else ""
    yield f'<p class="verdict {name}">{sign}<span>{_shown(report.verdict)}</span></p>'
    for title, svg in report.figures.items():
        yield f"<figure>\n{svg}\n<figcaption>{_text(title)}</figcaption>\n</figure>"
    for table in report.tables:
        yield from _table(table)
    yield from _listed("Assumed", "assumed", report.notes)
    yield from _listed("Not counted", "uncounted", report.uncounted)
    yield "</main>\n</body>"


def _table(table: Table) -> Iterator[str]:
    drawn = bool(table.rows) and max(table.bars, default=0.0) > 0
    yield f'<div class="table" tabindex="0" role="region" aria-label="{_text(table.title or "table")}">\n<table>'
    if table.title:
        yield f"<caption>{_text(table.title)}</caption>"
    headings = "".join(f'<th scope="col"{_class(c)}>{_shown(c.heading)}</th>' for c in table.columns)
    yield f"<thead><tr>{headings}{'<td></td>' if drawn else ''}</tr></thead>"
    yield "<tbody>"
    for row, share in zip_longest(table.rows, table.bars if drawn else ()):
        bar = _bar(share / max(table.bars)) if drawn else ""
        yield f"<tr>{_cells(table.columns, row)}{bar}</tr>"
    yield "</tbody>\n</table>"
    if table.caption:
        yield f'<p class="caption">{_shown(table.caption)}</p>'
    yield "</div>"


def _cells(columns: tuple[Column, ...], row: tuple[str, ...]) -> str:
    """The cells of a row; its first is its heading."""
    (first, head), *others = zip(columns, row, strict=True)
    cells = "".join(f"<td{_class(column)}>{_shown(cell)}</td>" for column, cell in others)
    return f'<th scope="row"{_class(first)}>{_shown(head)}</th>{cells}'


def _bar(share: float) -> str:
    """A bar beside its row, for the eye only: the number stands in a cell."""
    return f'<td class="bar" aria-hidden="true"><i style="width:{min(max(share, 0.0), 1.0):.1%}"></i></td>'


def _listed(heading: str, name: str, notes: tuple[str, ...]) -> Iterator[str]:
    if notes:
        items = "".join(f"\n<li>{_shown(note)}</li>" for note in notes)
        yield f'<section class="{name}">\n<h2>{heading}</h2>\n<ul>{items}\n</ul>\n</section>'


def _class(column: Column) -> str:
    return ' class="number"' if column.align == "right" else ""


def _shown(text: str) -> str:
    """Text that breaks where a reader would: after the dots of a path, not within an option or before a unit."""
    return _OPTION.sub(r'<span class="whole">\g<0></span>', _DOT_OF_A_PATH.sub("<wbr>", _text(hold_units(text))))


def _text(text: str) -> str:
    return escape(plain(text))
