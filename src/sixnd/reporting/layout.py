"""How does a table fit a width without losing a digit?

Right-aligned columns hold numbers and keep their full width. Left-aligned columns give way, the widest first, and wrap.
Where that would chop the first column small, it stands on a line of its own above the rest of its row; where rows would
grow tall, each is a paragraph with its headings down the side. What is still too wide stays too wide: the terminal may
fold its lines, but nothing is cut. For that promise, and because a piped report then imports next to nothing,
`rich.table` is not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from sixnd.reporting.plain import HARD_BLANK, hold_units, plain
from sixnd.reporting.report import Align, Table

GAP = "  "
NARROWEST_BAR, WIDEST_BAR = 8, 24
MOST_LINES = 2  # of the first cell of a row, before it moves above the row
TALLEST_ROW = 5  # before rows become paragraphs
LONG_WORD = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WORD = re.compile(r"[^ ]* *")
_PART = re.compile(r"[^./·]*(?:[./·]+|$)")


@dataclass(frozen=True)
class Span:
    """A stretch of text in one style, spelled as rich spells styles."""

    text: str
    style: str = ""


Line = tuple[Span, ...]
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table's columns, laid out: the lines of its heading, and those of each row."""

    heading: list[Line]
    rows: list[list[Line]]


def lay_out(table: Table, width: int) -> list[Line]:
    """The lines of a table: heading, a thin rule, rows; with its bars where the width has room for them.

    >>> from sixnd.reporting.report import Column, Table
    >>> table = Table("", (Column("what"), Column("bytes", "right")), (("weights", "15 GiB"),), bars=(1.0,))
    >>> for line in lay_out(table, 26): print("".join(span.text for span in line))
    what      bytes
    ───────────────
    weights  15 GiB  █████████
    """
    aligns = tuple(column.align for column in table.columns)
    headings = [plain(column.heading) for column in table.columns]
    columns = list(zip(headings, *[map(plain, row) for row in table.rows], strict=True))
    widths = _widths(columns, aligns, width)
    heights = [max(len(wrap(cell, of)) for cell in cells[1:]) for cells, of in zip(columns, widths, strict=True)]
    if len(columns) > 2 and max(heights[1:]) > TALLEST_ROW:
        return [line for row in range(1, len(columns[0])) for line in _paragraph(columns, row, width)]
    if len(columns) > 2 and (heights[0] > MOST_LINES or _total(widths) > width):
        grid = _grid(columns[1:], aligns[1:], table.bars, width - len(GAP))
        return _stacked(columns[0], grid, width)
    grid = _grid(columns, aligns, table.bars, width)
    return [*grid.heading, *(line for row in grid.rows for line in row)]


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most `width`; a number keeps its unit, and what cannot be broken stays whole.

    >>> wrap("layers.attention.query", 17), wrap("of 989 TFLOP/s dense", 10)
    (['layers.attention.', 'query'], ['of', '989 TFLOP/s', 'dense'])
    """
    lines, line = [], ""
    for piece in _pieces(text):
        if line and cell_width((line + piece).rstrip()) > width:
            lines.append(line)
            line = ""
        line += piece
    return [line.rstrip().replace(HARD_BLANK, " ") for line in [*lines, line]]


def bar(share: float, width: int) -> str:
    """A share of `width` columns, in eighths of a block.

    >>> bar(0.5, 5), bar(0.0, 5)
    ('██▌', '')
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _grid(columns: list[Cells], aligns: tuple[Align, ...], shares: tuple[float, ...], width: int) -> Grid:
    """Columns (a heading, then a cell for each row) side by side, and the bars beside them."""
    widths = _widths(columns, aligns, width)
    full = _total(widths)
    headings, *rows = zip(*columns, strict=True)
    heading: list[Line] = []
    if any(headings):
        heading = [(Span(line, "dim"),) for line in _row(headings, widths, aligns)]
        heading.append((Span("─" * full, "dim"),))
    laid: list[list[Line]] = []
    for row, drawn in zip_longest(rows, _bars(shares, width - full - len(GAP)), fillvalue=""):
        first, *others = _row(tuple(row), widths, aligns)
        beside: Line = (Span(first.ljust(full) + GAP), Span(drawn, "cyan")) if drawn else (Span(first),)
        laid.append([beside, *((Span(other),) for other in others)])
    return Grid(heading, laid)


def _stacked(firsts: Cells, grid: Grid, width: int) -> list[Line]:
    """Each row below its first cell."""
    lines: list[Line] = [(Span(line, "dim"),) for line in wrap(firsts[0], width) if line]
    lines += [(Span(GAP), *line) for line in grid.heading]
    for first, row in zip(firsts[1:], grid.rows, strict=True):
        lines += [(Span(line),) for line in wrap(first, width)]
        lines += [(Span(GAP), *line) for line in row]
    return lines


def _paragraph(columns: list[Cells], row: int, width: int) -> list[Line]:
    """One row as its first cell and, below it, the others behind their headings."""
    side = max(cell_width(cells[0]) for cells in columns[1:])
    lines: list[Line] = [(Span(line, "bold"),) for line in wrap(columns[0][row], width)]
    for cells in columns[1:]:
        first, *others = wrap(cells[row], width - side - 2 * len(GAP))
        if first:
            lines.append((Span(GAP + _aligned(cells[0], side, "left") + GAP, "dim"), Span(first)))
            lines += [(Span(GAP + " " * side + GAP + other),) for other in others]
    return lines


def _bars(shares: tuple[float, ...], room: int) -> list[str]:
    """A bar for each row, the largest share as wide as there is room; none where there is too little."""
    width, most = min(room, WIDEST_BAR), max(shares, default=0.0)
    if width < NARROWEST_BAR or most <= 0:
        return []
    return [bar(share / most, width) for share in shares]


def _widths(columns: list[Cells], aligns: tuple[Align, ...], width: int) -> list[int]:
    """The width of each column: numbers in full, the widest text giving way until the table fits or text cannot."""
    floors = [
        max(max(map(_longest_piece, cells)), 0 if align == "left" else max(map(cell_width, cells[1:]), default=0))
        for cells, align in zip(columns, aligns, strict=True)
    ]
    widths = [max(map(cell_width, cells)) for cells in columns]
    while _total(widths) > width and (loose := [i for i, floor in enumerate(floors) if widths[i] > floor]):
        widths[max(loose, key=lambda i: (widths[i], i))] -= 1
    return widths


def _total(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _row(cells: Cells, widths: list[int], aligns: tuple[Align, ...]) -> list[str]:
    """The lines of one row, its cells wrapped and aligned, without blanks at the ends of lines."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = zip_longest(*wrapped, fillvalue="")
    return [GAP.join(map(_aligned, line, widths, aligns)).rstrip() for line in lines]


def _aligned(text: str, width: int, align: Align) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if align == "right" else text + blanks


def _pieces(text: str) -> list[str]:
    """Where a text may break: after blanks, and in long words such as paths after their dots and slashes."""
    pieces: list[str] = []
    for word in filter(None, _WORD.findall(hold_units(text))):
        pieces += filter(None, _PART.findall(word)) if len(word) > LONG_WORD else [word]
    return pieces


def _longest_piece(text: str) -> int:
    return max((cell_width(piece.rstrip()) for piece in _pieces(text)), default=0)
