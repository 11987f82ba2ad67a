"""Which operations lie where under the roof? Their marks, their names and what the marks mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sixnd.reporting.figures.canvas import INK, SMALL
from sixnd.reporting.figures.labels import Box, Label, arrange
from sixnd.reporting.figures.writing import label_for, pixels, write
from sixnd.reporting.plain import plain
from sixnd.units import format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS = 10
LARGEST_AREA = 2600.0  # of a point that takes all the time, in square points
SMALLEST_AREA = 14.0
_NEAR = 7.0  # pixels within which points share a label
_MARKS = {  # colours that stay apart for every kind of sight (Okabe and Ito 2008), and shapes that do without them
    "forward": ("#0072b2", "o"),
    "backward": ("#d55e00", "s"),
    "recompute": ("#cc79a7", "D"),
    "optimizer": ("#009e73", "^"),
    "prefill": ("#0072b2", "o"),
    "decode": ("#d55e00", "s"),
}
_OTHER_MARK = ("#59636e", "v")


@dataclass(frozen=True)
class Point:
    """One operation: FLOP per byte, the FLOP/s that it attains, its share (0 to 1) of the time and its phase."""

    label: str
    intensity: float
    attained_flop_per_second: float
    share_of_time: float
    phase: str


def draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the operations."""
    for phase in _phases(points):
        colour, mark = _MARKS.get(phase, _OTHER_MARK)
        here = [point for point in points if point.phase == phase]
        axes.scatter(
            [point.intensity for point in here],
            [point.attained_flop_per_second for point in here],
            s=[_area(point) for point in here],
            marker=mark,
            facecolors="none",
            edgecolors=colour,
            linewidths=1.4,
            zorder=3,
        )


def _area(point: Point) -> float:
    return max(LARGEST_AREA * min(point.share_of_time, 1.0), SMALLEST_AREA)


def _phases(points: Iterable[Point]) -> list[str]:
    return list(dict.fromkeys(point.phase for point in points))


def draw_legend(axes: Axes, points: Sequence[Point]) -> None:
    """The phases that there are, upper left, where no operation can be."""
    from matplotlib.lines import Line2D

    handles = []
    for phase in _phases(points):
        colour, mark = _MARKS.get(phase, _OTHER_MARK)
        handles.append(
            Line2D(
                [],
                [],
                linestyle="",
                marker=mark,
                markersize=8,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=1.4,
                label=plain(phase),
            )
        )
    if handles:
        axes.legend(handles=handles, loc="upper left", fontsize=SMALL, frameon=False, labelcolor=INK)


def name_points(axes: Axes, points: Sequence[Point]) -> None:
    """Name what takes most of the time; points that lie on one another share a label."""
    labels, texts = [], []
    for group in _grouped(axes, points)[:MOST_LABELS]:
        text, label = _label(axes, group)
        texts.append(text)
        labels.append(label)
    boxes = arrange(labels, [_mark(axes, point) for point in points], axes.bbox.y0 + 2)
    for label, text, box in zip(labels, texts, boxes, strict=True):
        if box:
            write(axes, text, box, label)


def _label(axes: Axes, group: Sequence[Point]) -> tuple[str, Label]:
    """What a group of points is called, with as many names as there is room for."""
    share = format_percent(sum(point.share_of_time for point in group))
    names = [plain(point.label) for point in group]
    radius = max(map(_radius, group))
    for most in (3, 2, 1):
        text = f"{_shared_name(names, most)} {share}"
        label = label_for(axes, text, group[0].intensity, group[0].attained_flop_per_second, radius)
        if label.x + label.indent + label.width < axes.bbox.x1:
            break
    return text, label


def _mark(axes: Axes, point: Point) -> Box:
    """What a point's mark takes."""
    x, y = pixels(axes, point.intensity, point.attained_flop_per_second)
    radius = _radius(point)
    return Box(x - radius, y - radius, x + radius, y + radius)


def _radius(point: Point) -> float:
    """Of a point's mark, in pixels of the figure's 100 dots an inch."""
    return math.sqrt(_area(point)) / 2 * 100 / 72 + 1


def _grouped(axes: Axes, points: Sequence[Point]) -> list[list[Point]]:
    """Points that lie on one another, the largest share first."""
    groups: list[list[Point]] = []
    for point in sorted(points, key=lambda point: -point.share_of_time):
        x, y = pixels(axes, point.intensity, point.attained_flop_per_second)
        for group in groups:
            other_x, other_y = pixels(axes, group[0].intensity, group[0].attained_flop_per_second)
            if abs(x - other_x) <= _NEAR and abs(y - other_y) <= _NEAR:
                group.append(point)
                break
        else:
            groups.append([point])
    return sorted(groups, key=lambda group: -sum(point.share_of_time for point in group))


def _shared_name(names: Sequence[str], most: int = 3) -> str:
    """One name for several: the first, a few of its siblings by the ends of their paths, and how many more.

    >>> _shared_name(["layers.mlp.up", "layers.mlp.gate", "head.logits"])
    'layers.mlp.up, gate + 1 more'
    """
    first, *others = dict.fromkeys(names)
    parent = first[: first.rfind(".") + 1]
    siblings = [other.removeprefix(parent) for other in others if other.startswith(parent)][: most - 1]
    left = len(others) - len(siblings)
    return ", ".join([first, *siblings]) + (f" + {left} more" if left else "")


def footnote(points: Sequence[Point], drawn: Sequence[Point]) -> str:
    """What the marks mean, and what is not among them."""
    if not points:
        return ""
    left = len(points) - len(drawn)
    share = sum(point.share_of_time for point in points if point not in drawn)
    text = "Hollow: predicted. Area: share of the time."
    rest = f"  Not drawn, as they do no arithmetic: {left} operations, {format_percent(share)} of the time."
    return text + rest if left else text
