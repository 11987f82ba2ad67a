"""How does a report look in a spreadsheet or a data frame? One table, one line for each row.

A file of CSV holds one table. Of a report with several it is the one titled "operations", or else the first. Where the
table has `records`, their plain numbers are printed under keys that name the unit; otherwise its cells, as shown.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

from sixnd.reporting.plain import plain
from sixnd.reporting.report import Report, Table

MAIN_TABLE = "operations"
# A spreadsheet runs a cell that starts like this; a number with its unit, or a lone dash, is left alone.
_FORMULA = re.compile(r"[=@]|[+-](?!\d[\d.,]*(?:e[+-]?\d+)?(?: ?[\w/%·]+)?$|$)")


def render(report: Report) -> str:
    r"""The main table of a report as CSV (RFC 4180, but lines end in "\n"); nothing where it has no table.

    >>> from sixnd.reporting.report import Column
    >>> table = Table("operations", (Column("path"),), (("head",),), records=({"path": "head", "seconds": 0.25},))
    >>> print(render(Report("", "", tables=(table,))), end="")
    path,seconds
    head,0.25
    """
    table = _main(report.tables)
    if table is None:
        return ""
    if table.records:
        keys = list(dict.fromkeys(key for record in table.records for key in record))
        return _written([keys, *([record.get(key, "") for key in keys] for record in table.records)])
    return _written([[column.heading for column in table.columns], *table.rows])


def _main(tables: tuple[Table, ...]) -> Table | None:
    named = [table for table in tables if table.title.casefold() == MAIN_TABLE]
    return next(iter([*named, *tables]), None)


def _written(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(cell: object) -> object:
    """The cell, with an apostrophe before text that a spreadsheet would run."""
    if not isinstance(cell, str):
        return cell
    return "'" + plain(cell) if _FORMULA.match(cell.lstrip()) else plain(cell)
