"""Where does each label go, so that none covers another and no line crosses one?

Points under a roof rise to the right and then run level, and the space below them is free. So labels hang below their
points as a staircase: from right to left each is lower than the one before it, and each begins at the line that comes
down from its point. Then a line never meets a label: those of points further right end higher, those further left
pass on the left. All is in pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_STEP = 2.0  # pixels that a label gives way to a mark at a time
_BELOW = 5.0  # pixels between a mark and its label


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels from the lower left."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Whether two boxes share more than an edge.

        >>> Box(0, 0, 2, 2).meets(Box(1, 1, 3, 3)), Box(0, 0, 2, 2).meets(Box(2, 0, 3, 2))
        (True, False)
        """
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )


@dataclass(frozen=True)
class Label:
    """A text's size, for a round mark of a radius at a point; the text begins `indent` right of the point."""

    x: float
    y: float
    radius: float
    width: float
    height: float
    indent: float = 9.0


def arrange(labels: Sequence[Label], marks: Sequence[Box], floor: float) -> list[Box | None]:
    """A box for each label, in the order given; None for one that finds no place above the floor.

    >>> arrange([Label(10, 100, 3, 50, 10), Label(20, 100, 3, 50, 10)], [], 0)
    [Box(left=19.0, bottom=72.0, right=69.0, top=82.0), Box(left=29.0, bottom=82.0, right=79.0, top=92.0)]
    """
    boxes: dict[int, Box | None] = {}
    ceiling = float("inf")
    for number, label in sorted(enumerate(labels), key=lambda pair: (-pair[1].x, -pair[1].y)):
        box = _hung(label, ceiling, marks)
        boxes[number] = box if box.bottom >= floor else None
        ceiling = box.bottom if box.bottom >= floor else ceiling
    return [boxes[number] for number in range(len(labels))]


def _hung(label: Label, ceiling: float, marks: Sequence[Box]) -> Box:
    """The highest box below a label's mark, below the labels so far and off every mark."""
    top = min(label.y - label.radius - _BELOW, ceiling)
    left = label.x + label.indent
    box = Box(left, top - label.height, left + label.width, top)
    while any(box.meets(mark) for mark in marks):
        box = Box(box.left, box.bottom - _STEP, box.right, box.top - _STEP)
    return box


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights, from the highest down, moved down as little as keeps them `gap` apart.

    >>> spread([100, 95, 20], 10)
    [100, 90, 20]
    """
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - gap) if moved else height)
    return moved
