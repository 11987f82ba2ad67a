"""Is each operation held back by arithmetic or by memory? The roofline of Williams, Waterman and Patterson 2009.

Over its arithmetic intensity I, a machine attains at most min(peak, I · bandwidth). Left of the ridge, at
peak / bandwidth, memory is the limit; right of it, arithmetic. Points are hollow: they are predicted, not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import TYPE_CHECKING

from sixnd.reporting.figures.canvas import INK, LARGE, LINE, PAPER, SMALL, SOFT, drawing, new_figure
from sixnd.reporting.figures.labels import Box, Label, arrange, spread
from sixnd.reporting.figures.writing import label_for, pixels, write
from sixnd.reporting.plain import plain
from sixnd.units import format_flop_per_second, format_intensity, format_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LABELS = 10
ROOM = 0.29  # of the width is left for labels right of the last point; half as much of the height, below the lowest
LARGEST_AREA = 2600.0  # of a point that takes all the time, in square points
SMALLEST_AREA = 14.0
_NEAR = 7.0  # pixels within which points share a label
_NAME_HEIGHT = 54.0  # pixels for a machine's name, peak and ridge
_LONGEST_NAME = 20
_ROOFS = ((INK, "-"), ("#7a828b", "--"), ("#7a828b", "-."), ("#7a828b", ":"))
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
class Roof:
    """A machine's two limits, in one format."""

    name: str
    peak_flop_per_second: float
    bytes_per_second: float

    @property
    def ridge(self) -> float:
        """The intensity, in FLOP per byte, from which on arithmetic is the limit."""
        return self.peak_flop_per_second / self.bytes_per_second


@dataclass(frozen=True)
class Point:
    """One operation: FLOP per byte, the FLOP/s that it attains, its share (0 to 1) of the time and its phase."""

    label: str
    intensity: float
    attained_flop_per_second: float
    share_of_time: float
    phase: str


@dataclass(frozen=True)
class Window:
    """What the axes show."""

    left: float
    right: float
    bottom: float
    top: float


def roofline(machines: Sequence[Roof], points: Sequence[Point] = (), title: str = "Roofline") -> Figure:
    """Draw the roofs of machines and the operations under them; the area of a point is its share of the time.

    Raises `MissingDependencyError` without matplotlib, `ValueError` where there is no machine.
    """
    if not machines:
        raise ValueError("a roofline needs at least one machine")
    drawn = [point for point in points if point.intensity > 0 and point.attained_flop_per_second > 0]
    window = _window(machines, drawn)
    with drawing():
        figure = new_figure(title, 10, 6.2)
        axes = figure.add_axes((0.085, 0.125, 0.745, 0.785))
        _axes(axes, window)
        _roofs(axes, machines, window)
        _name_roofs(axes, machines)
        _points(axes, drawn)
        _name_points(axes, drawn)
        _legend(axes, drawn)
        figure.text(0.085, 0.94, plain(title), fontsize=LARGE, fontweight="bold", va="bottom")
        figure.text(0.085, 0.02, _footnote(points, drawn), fontsize=SMALL, color=SOFT)
    return figure


def _window(machines: Sequence[Roof], points: Sequence[Point]) -> Window:
    """Every point, every ridge, and some air."""
    intensities = [point.intensity for point in points] + [roof.ridge for roof in machines]
    left = min([*intensities, min(roof.ridge for roof in machines) / 30]) / 3
    last = max([*intensities, max(roof.ridge for roof in machines) * 8])
    right = left * (last / left) ** (1 / (1 - ROOM))
    attained = [point.attained_flop_per_second for point in points]
    top = max([*attained, *(roof.peak_flop_per_second for roof in machines)]) * 4
    lowest = min([*attained, *(roof.bytes_per_second * left for roof in machines)])
    return Window(left, right, top * (lowest / top) ** (1 / (1 - ROOM / 2)), top)


def _axes(axes: Axes, window: Window) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(window.left, window.right)
    axes.set_ylim(window.bottom, window.top)
    axes.set_xlabel("intensity (FLOP/byte)")
    axes.set_ylabel("attainable FLOP/s")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_intensity(x).removesuffix(" FLOP/B")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_flop_per_second(y).removesuffix("FLOP/s")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=SMALL)
    axes.tick_params(which="minor", length=0)


def _roofs(axes: Axes, machines: Sequence[Roof], window: Window) -> None:
    """Draw slope, roof and ridge of each machine."""
    for roof, (colour, dashes) in zip(machines, _styles(), strict=False):
        peak = roof.peak_flop_per_second
        slope = roof.bytes_per_second * window.left
        axes.plot([window.left, roof.ridge, window.right], [slope, peak, peak], color=colour, linestyle=dashes, linewidth=1.8)
        axes.plot([roof.ridge] * 2, [window.bottom, peak], color=colour, linestyle=":", linewidth=0.9)
        axes.plot([roof.ridge], [peak], color=colour, marker="o", markersize=4)


def _styles() -> Iterator[tuple[str, str]]:
    """A colour and a dash for each machine; from the fourth on they repeat, and the names tell."""
    return chain(_ROOFS, cycle(_ROOFS[1:]))


def _name_roofs(axes: Axes, machines: Sequence[Roof]) -> None:
    """Write each machine's name, peak and ridge beside the end of its roof, right of the axes."""
    ordered = sorted(zip(machines, _styles(), strict=False), key=lambda pair: -pair[0].peak_flop_per_second)
    heights = [pixels(axes, 1, roof.peak_flop_per_second)[1] for roof, _ in ordered]
    shares = [axes.transAxes.inverted().transform((0, up))[1] for up in spread(heights, _NAME_HEIGHT)]
    for (roof, (colour, _)), share in zip(ordered, shares, strict=True):
        peak, ridge = format_flop_per_second(roof.peak_flop_per_second), format_intensity(roof.ridge)
        axes.text(1.012, share, _clipped(plain(roof.name)), transform=axes.transAxes, va="center", fontsize=SMALL,
                  fontweight="bold", color=colour)
        axes.annotate(f"{peak}\nridge {ridge}", (1.012, share), (0, -7), xycoords="axes fraction",
                      textcoords="offset points", va="top", fontsize=SMALL, color=colour)


def _clipped(name: str) -> str:
    """A name that fits beside the axes."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _points(axes: Axes, points: Sequence[Point]) -> None:
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


def _legend(axes: Axes, points: Sequence[Point]) -> None:
    """The phases that there are, upper left, where no operation can be."""
    from matplotlib.lines import Line2D

    handles = []
    for phase in _phases(points):
        colour, mark = _MARKS.get(phase, _OTHER_MARK)
        handles.append(Line2D([], [], linestyle="", marker=mark, markersize=8, markerfacecolor="none",
                              markeredgecolor=colour, markeredgewidth=1.4, label=plain(phase)))
    if handles:
        axes.legend(handles=handles, loc="upper left", fontsize=SMALL, frameon=False, labelcolor=INK)


def _name_points(axes: Axes, points: Sequence[Point]) -> None:
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


def _footnote(points: Sequence[Point], drawn: Sequence[Point]) -> str:
    if not points:
        return ""
    left = len(points) - len(drawn)
    share = sum(point.share_of_time for point in points if point not in drawn)
    rest = f"  Not drawn, as they do no arithmetic: {left} operations, {format_percent(share)} of the time." if left else ""
    return f"Hollow: predicted. Area: share of the time.{rest}"
