"""One claim of the lecture, and what the program makes of it."""

from __future__ import annotations

from collections.abc import Callable
from math import isclose

import msgspec


class Claim(msgspec.Struct, frozen=True):
    """A row of the lecture's table: what it says, what it expects, what comes out here, and whether they agree."""

    id: str
    claim: str
    expected: str
    value: str
    ok: bool


Row = Callable[[], Claim]


def near(value: float, expected: float, tolerance: float = 1e-9) -> bool:
    """Whether two numbers agree to a relative tolerance.

    >>> near(143.9, 143.93, 1e-3)
    True
    """
    return isclose(value, expected, rel_tol=tolerance)
