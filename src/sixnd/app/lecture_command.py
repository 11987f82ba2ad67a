"""`sixnd lecture`: the lecture's claims, each recomputed."""

from __future__ import annotations

from sixnd.app.output import TABLES, Output, emit


def lecture(*, output: Output = TABLES) -> int:
    """The claims of the lecture, each recomputed by the functions that every other command uses."""
    from sixnd.lecture import LATER, claims
    from sixnd.reporting.lecture_report import lecture_report

    rows = claims()
    emit(lecture_report(rows, LATER), output)
    return 0 if all(row.ok for row in rows) else 1
