"""The lecture's claims as a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from sixnd.lecture.claim import Claim
from sixnd.reporting.report import Column, Report, Table


def lecture_report(rows: Sequence[Claim], later: Mapping[str, str]) -> Report:
    """Claim, what the lecture says, what comes out, verdict; and which rows wait for later work."""
    good = sum(row.ok for row in rows)
    columns = (Column("id"), Column("claim"), Column("the lecture"), Column("ours"), Column("verdict"))
    table = tuple((row.id, row.claim, row.expected, row.value, "holds" if row.ok else "FAILS") for row in rows)
    records = tuple(map(asdict, rows))
    return Report(
        "The lecture's claims",
        f"{good} of {len(rows)} claims hold.",
        good == len(rows),
        (Table("claims", columns, table, records=records),),
        ("each row calls the functions that the other commands call; none is stored",),
        tuple(f"{ids}: {why}" for ids, why in later.items()),
        {"schema": "sixnd.lecture/1", "rows": list(records)},
    )
