"""How does a report look in an issue or a README? Tables as GitHub writes them, every cell shown as it is."""

from __future__ import annotations

import re

from sixnd.reporting.plain import plain
from sixnd.reporting.report import Report, Table

# What Markdown, HTML or GitHub's mathematics would act on. An underscore inside a word is only an underscore.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])")
_STARTS_A_BLOCK = re.compile(r"^(\d*)(?=(?:#{1,6}|[+.)-])\s)")


def render(report: Report) -> str:
    r"""A report as GitHub-flavoured Markdown.

    >>> from sixnd.reporting.report import Column, Table
    >>> table = Table("Memory", (Column("what"), Column("bytes", "right")), (("a|b", "15 GiB"),))
    >>> print(render(Report("Account", "It fits.", ok=True, tables=(table,))), end="")
    ## Account
    <BLANKLINE>
    **✓ It fits.**
    <BLANKLINE>
    ### Memory
    <BLANKLINE>
    | what | bytes |
    | :--- | ---: |
    | a\|b | 15 GiB |
    """
    mark = {True: "✓ ", False: "✗ ", None: ""}[report.ok]
    parts = [f"## {escape(report.title)}"] if report.title else []
    parts.append(f"**{mark}{escape(report.verdict).strip()}**")
    for table in report.tables:
        parts += _table(table)
    parts += _listed("Assumed", report.notes)
    parts += _listed("Not counted", report.uncounted)
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""The text such that Markdown shows exactly it.

    >>> print(escape("layers.d_model *2* <b> |x|"))
    layers.d_model \*2\* \<b\> \|x\|
    """
    return _STARTS_A_BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\g<0>", plain(text)))


def _table(table: Table) -> list[str]:
    parts = [f"### {escape(table.title)}"] if table.title else []
    if table.rows:
        rule = ["---:" if column.align == "right" else ":---" for column in table.columns]
        heading = [escape(column.heading) for column in table.columns]
        rows = [[escape(cell) for cell in row] for row in table.rows]
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in [heading, rule, *rows]))
    else:
        parts.append("none")
    return [*parts, escape(table.caption)] if table.caption else parts


def _listed(heading: str, notes: tuple[str, ...]) -> list[str]:
    return [f"**{heading}**", "\n".join(f"- {escape(note)}" for note in notes)] if notes else []
