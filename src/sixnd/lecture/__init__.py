"""The lecture's claims, each recomputed by the functions that every command uses. Nothing here is a stored answer."""

from __future__ import annotations

from sixnd.lecture import lines, napkin, roofline, training
from sixnd.lecture.claim import Claim

ROOMS = (napkin, lines, roofline, training)
LATER = {
    "L05-L08, T6": "values are rounded to formats, and no row or picture shows it yet",
    "L13, T1, T3": "nothing is measured or calibrated yet, so no prediction is held against a clock",
    "L22, L24": "there is no trainer yet, and gradients are counted and not computed",
    "L26": "there are no scaling laws yet: they need small training runs",
    "T5": "accelerators are not yet compared over generations",
    "of L23, L25, L29": "what bf16 states do to training, checkpointing as measured, and copies from pageable memory",
}
"""Rows of the lecture's table that wait for later work, and what is missing; then what is missing of rows above."""


def claims() -> tuple[Claim, ...]:
    """Recompute every row, in the order of the lecture.

    >>> all(claim.ok for claim in claims())
    True
    """
    return tuple(sorted((row() for room in ROOMS for row in room.ROWS), key=lambda claim: claim.id))
