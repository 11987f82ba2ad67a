"""How is a report handed over? One set of options for every command, and the one place that prints."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from sixnd.errors import UsageError

if TYPE_CHECKING:
    from sixnd.reporting.report import Report


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """What to print and write. Without any of these: a table for people."""

    json: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print JSON: raw numbers, keys that end in their unit.")
    ] = False
    md: Annotated[bool, Parameter(negative="", show_default=False, help="Print Markdown.")] = False
    csv: Annotated[bool, Parameter(negative="", show_default=False, help="Print the main table as CSV.")] = False
    html: Annotated[Path | None, Parameter(help="Also write one self-contained page.")] = None


TABLES = Output()
"""The default: tables for people."""


def check_form(output: Output) -> None:
    """Raise `UsageError` where more than one form is asked for: one of them would be missing in silence."""
    asked = [f"--{name}" for name in ("json", "md", "csv") if getattr(output, name)]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} are one too many: choose one form")


def emit(report: Report, output: Output) -> None:
    """Print a report in the form asked for, and write the page if one was."""
    check_form(output)
    if output.html is not None:
        from sixnd.reporting import html
        from sixnd.reporting.files import write_text

        write_text(output.html, html.render(report))
    if output.json:
        text = json_text(report.data)
    elif output.md:
        from sixnd.reporting import markdown

        text = markdown.render(report)
    elif output.csv:
        from sixnd.reporting import csv_file

        text = csv_file.render(report)
    else:
        from sixnd.reporting.terminal import print_report

        print_report(report)
        return
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def json_text(data: dict[str, object]) -> str:
    """Plain data as indented JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"
