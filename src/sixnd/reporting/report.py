"""What is a report? A verdict, tables, notes: any result in the one form that every renderer takes.

Cells are text that `units.py` has formatted already, so that a terminal, Markdown and HTML print the same.
CSV is read by programs: it prints a table's `records`, where it has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Align = Literal["left", "right"]


@dataclass(frozen=True)
class Column:
    """A column's heading and alignment. Numbers are right-aligned."""

    heading: str
    align: Align = "left"


@dataclass(frozen=True)
class Table:
    """A titled table. `bars` are shares (0 to 1, one for each row) that a renderer may draw, the largest in full.

    `records` are the same rows for a program: plain numbers, under keys that end in their unit. CSV prints them.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[float, ...] = ()
    caption: str = ""
    records: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class Report:
    """A verdict first, then tables, then notes on what is assumed and what is not counted.

    `ok` colours the verdict (None: neither good nor bad). `data` is the JSON of the same result. `figures` are SVG
    documents by title, made only when asked for.
    """

    title: str
    verdict: str
    ok: bool | None = None
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    data: dict[str, object] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
