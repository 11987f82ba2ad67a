"""The lecture's claims, each recomputed by the functions that every command uses. Nothing here is a stored answer."""

from __future__ import annotations

from sixnd.lecture import lines, napkin, roofline, training
from sixnd.lecture.claim import Claim

ROOMS = (napkin, lines, roofline, training)
LATER = {
    "L05-L08, T6": "number formats and what rounding does",
    "L13, T1, T3": "measuring and calibrating machines",
    "L22, L24": "training",
    "L26": "scaling laws",
    "T5": "accelerators compared over generations",
}
"""Rows of the lecture's table that wait for later work, and for which."""


def claims() -> tuple[Claim, ...]:
    """Recompute every row, in the order of the lecture.

    >>> all(claim.ok for claim in claims())
    True
    """
    return tuple(sorted((row() for room in ROOMS for row in room.ROWS), key=lambda claim: claim.id))
