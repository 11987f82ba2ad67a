"""Where does each label go, so that none covers another?

Each label tries places around its point, the nearest first, and takes the first that is free of everything placed
before it; where none is free, the one that covers least. All is in pixels. That is not the best of all placements, but
it is quick, always the same, and good for a dozen labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Boxes = NDArray[np.float64]

_DISTANCES = (7, 12, 18, 24, 32, 42, 54, 68, 84, 104, 128, 156, 190)
_DOTS = 24  # stand for the line between a label and its mark
_CROSSING = 60.0  # square pixels: what it costs that the line runs over something written
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


def place(wanted: Sequence[Wanted], inside: Box, taken: Iterable[Box], written: Iterable[Box] = ()) -> list[Box]:
    """A box for each label, in the order of their importance: inside the frame, and off all else if that can be.

    `taken` is what no label may cover; `written`, besides, is what no line from a label to its mark may cross.

    >>> place([Wanted(50, 50, 0, 20, 10)], Box(0, 0, 100, 100), [])[0].overlap(Box(50, 50, 100, 100))
    0
    """
    texts = [*written]
    covered = [*taken, *texts]
    placed: list[Box] = []
    for label in wanted:
        box = _best(label, inside, _rows(covered), _rows(texts))
        placed.append(box)
        texts.append(box)
        covered += [box, *(Box(x - 1, y - 1, x + 1, y + 1) for x, y in _line(label, box))]
    return placed


def _best(label: Wanted, inside: Box, covered: Boxes, texts: Boxes) -> Box:
    """The first candidate that is free, or else the one that covers least."""
    candidates = list(_candidates(label))
    best, least = candidates[0], math.inf
    for box in candidates:
        cost = _cost(box, inside, covered)
        if cost < least:
            cost += _CROSSING * _crossings(_line(label, box), texts)
        if cost < least:
            best, least = box, cost
        if least == 0:
            break
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


def _line(label: Wanted, box: Box) -> list[tuple[float, float]]:
    """Dots on the way from a label's mark to its box."""
    x, y = min(max(label.x, box.left), box.right), min(max(label.y, box.bottom), box.top)
    shares = [step / _DOTS for step in range(1, _DOTS)]
    return [(label.x + share * (x - label.x), label.y + share * (y - label.y)) for share in shares]


def _rows(boxes: list[Box]) -> Boxes:
    import numpy as np

    return np.array([astuple(box) for box in boxes], dtype=np.float64).reshape(-1, 4)


def _cost(box: Box, inside: Box, covered: Boxes) -> float:
    """Square pixels that are outside the frame, which is worst, or on something else."""
    import numpy as np

    outside = box.area - box.overlap(inside)
    widths = np.minimum(box.right, covered[:, 2]) - np.maximum(box.left, covered[:, 0])
    heights = np.minimum(box.top, covered[:, 3]) - np.maximum(box.bottom, covered[:, 1])
    return 10 * round(outside, 3) + float((widths.clip(0) * heights.clip(0)).sum())


def _crossings(dots: list[tuple[float, float]], texts: Boxes) -> int:
    """How many dots lie on something written."""
    import numpy as np

    x, y = np.array(dots).T[:, :, None]
    return int(((texts[:, 0] < x) & (x < texts[:, 2]) & (texts[:, 1] < y) & (y < texts[:, 3])).sum())
