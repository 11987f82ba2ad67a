"""Where does each label go, so that none covers another?

Each label tries places around its point, the nearest first, and takes the first that is free of everything placed
before it; where none is free, the one that covers least. All is in pixels. That is not the best of all placements, but
it is quick, always the same, and good for a dozen labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_DISTANCES = (7, 16, 28, 42, 58, 76, 96, 120, 150, 185)
BELOW = (-45, -90, 0, -135, 180, 45, 135, 90, -22, -68, -112, -158)  # angles in degrees, the best first
ABOVE = (135, 90, 180, 45, 0, -135, -45, -90)


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels from the lower left."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The area that two boxes share.

        >>> Box(0, 0, 2, 2).overlap(Box(1, 1, 3, 3))
        1
        """
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0) * max(height, 0)

    @property
    def area(self) -> float:
        """Its size in square pixels."""
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Wanted:
    """A label of a size, for a round mark of a radius around a point."""

    x: float
    y: float
    radius: float
    width: float
    height: float
    prefer: tuple[int, ...] = BELOW


def place(wanted: Sequence[Wanted], inside: Box, taken: Iterable[Box]) -> list[Box]:
    """A box for each label, in the order of their importance, inside the frame and off what is taken if that can be.

    >>> place([Wanted(50, 50, 0, 20, 10)], Box(0, 0, 100, 100), [])[0].overlap(Box(50, 50, 100, 100))
    0
    """
    occupied, placed = list(taken), []
    for label in wanted:
        best = _best(label, inside, occupied)
        occupied.append(best)
        placed.append(best)
    return placed


def _best(label: Wanted, inside: Box, occupied: list[Box]) -> Box:
    """The first candidate that is free, or else the one that covers least."""
    best, least = None, math.inf
    for box in _candidates(label):
        cost = _cost(box, inside, occupied)
        if cost < least:
            best, least = box, cost
        if cost == 0:
            break
    assert best is not None
    return best


def _candidates(label: Wanted) -> Iterator[Box]:
    for distance in _DISTANCES:
        for angle in label.prefer:
            dx, dy = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            reach = label.radius + distance
            x = label.x + dx * reach - _lean(dx) * label.width
            y = label.y + dy * reach - _lean(dy) * label.height
            yield Box(x, y, x + label.width, y + label.height)


def _lean(direction: float) -> float:
    """Which part of the label lies towards its point: its near edge, or its middle when straight above or beside."""
    return 0.5 - 0.5 * max(-1.0, min(1.0, direction * 1.5))


def _cost(box: Box, inside: Box, occupied: list[Box]) -> float:
    """Square pixels that are outside the frame, which is worst, or on something else."""
    outside = box.area - box.overlap(inside)
    return 10 * outside + sum(box.overlap(other) for other in occupied)
