"""Does the report say how many claims hold, show every row, and name what waits?"""

from __future__ import annotations

from msgspec.structs import asdict

from sixnd.lecture import LATER, claims
from sixnd.lecture.claim import Claim
from sixnd.reporting.lecture_report import lecture_report

GOOD = Claim("L01", "how long", "143.9 days", "143.9 days", True)
BAD = Claim("L03", "a tensor", "128 bytes", "127 bytes", False)


def test_all_hold() -> None:
    rows = claims()
    report = lecture_report(rows, LATER)
    assert report.verdict == f"{len(rows)} of {len(rows)} claims hold."
    assert report.ok
    assert report.data == {"schema": "sixnd.lecture/1", "rows": [asdict(row) for row in rows]}
    assert [column.heading for column in report.tables[0].columns] == ["id", "claim", "the lecture", "ours", "verdict"]
    assert len(report.tables[0].rows) == len(rows)
    assert report.uncounted == tuple(f"{ids}: {why}" for ids, why in LATER.items())


def test_one_fails() -> None:
    report = lecture_report((GOOD, BAD), {})
    assert report.verdict == "1 of 2 claims hold."
    assert not report.ok
    assert report.tables[0].rows[1] == ("L03", "a tensor", "128 bytes", "127 bytes", "FAILS")
    assert report.data["rows"][1]["ok"] is False
    assert report.uncounted == ()
