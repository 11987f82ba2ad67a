"""Is each operation held back by arithmetic or by memory? The roofline of Williams, Waterman and Patterson 2009.

Over its arithmetic intensity I, a machine attains at most min(peak, I · bandwidth). Left of the ridge, at
peak / bandwidth, memory is the limit; right of it, arithmetic. Points are hollow: they are predicted, not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import TYPE_CHECKING

from sixnd.reporting.figures.canvas import INK, LARGE, LINE, SMALL, SOFT, drawing, new_figure
from sixnd.reporting.figures.labels import spread
from sixnd.reporting.figures.points import Point, draw_legend, draw_points, footnote, name_points
from sixnd.reporting.figures.writing import pixels
from sixnd.reporting.plain import plain
from sixnd.units import format_flop_per_second, format_intensity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOM = 0.29  # of the width is left for labels right of the last point; half as much of the height, below the lowest
_NAME_HEIGHT = 54.0  # pixels for a machine's name, peak and ridge
_LONGEST_NAME = 18
_ROOFS = ((INK, "-"), ("#7a828b", "--"), ("#7a828b", "-."), ("#7a828b", ":"))


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
        draw_points(axes, drawn)
        name_points(axes, drawn)
        draw_legend(axes, drawn)
        figure.text(0.085, 0.94, plain(title), fontsize=LARGE, fontweight="bold", va="bottom")
        figure.text(0.085, 0.02, footnote(points, drawn), fontsize=SMALL, color=SOFT)
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
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(window.left, window.right)
    axes.set_ylim(window.bottom, window.top)
    axes.set_xlabel("intensity (FLOP/byte)")
    axes.set_ylabel("attainable FLOP/s")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_intensity(x).removesuffix(" FLOP/B")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_flop_per_second(y).removesuffix("FLOP/s")))
    axes.minorticks_off()
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=SMALL)


def _roofs(axes: Axes, machines: Sequence[Roof], window: Window) -> None:
    """Draw slope, roof and ridge of each machine."""
    for roof, (colour, dashes) in zip(machines, _styles(), strict=False):
        peak = roof.peak_flop_per_second
        slope = roof.bytes_per_second * window.left
        corners = [window.left, roof.ridge, window.right], [slope, peak, peak]
        axes.plot(*corners, color=colour, linestyle=dashes, linewidth=1.8)
        axes.plot([roof.ridge] * 2, [window.bottom, peak], color=colour, linestyle=":", linewidth=0.9)
        axes.plot([roof.ridge], [peak], color=colour, marker="o", markersize=4)


def _styles() -> Iterator[tuple[str, str]]:
    """A colour and a dash for each machine; from the fourth on they repeat, and the names tell."""
    return chain(_ROOFS, cycle(_ROOFS[1:]))


def _name_roofs(axes: Axes, machines: Sequence[Roof]) -> None:
    """Write each machine's name, peak and ridge beside the end of its roof, right of the axes."""
    ordered = sorted(zip(machines, _styles(), strict=False), key=lambda pair: -pair[0].peak_flop_per_second)
    heights = [pixels(axes, 1, roof.peak_flop_per_second)[1] for roof, _ in ordered]
    share_of = axes.transAxes.inverted().transform
    ends, shares = ([share_of((0, up))[1] for up in ups] for ups in (heights, spread(heights, _NAME_HEIGHT)))
    for (roof, (colour, _)), end, share in zip(ordered, ends, shares, strict=True):
        axes.plot([1.002, 1.01], [end, share], color=colour, linewidth=0.7, transform=axes.transAxes, clip_on=False)
        peak, ridge = format_flop_per_second(roof.peak_flop_per_second), format_intensity(roof.ridge)
        axes.text(
            1.014,
            share,
            _clipped(plain(roof.name)),
            transform=axes.transAxes,
            va="center",
            fontsize=SMALL,
            fontweight="bold",
            color=colour,
        )
        axes.annotate(
            f"{peak}\nridge {ridge}",
            (1.014, share),
            (0, -7),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            fontsize=SMALL,
            color=colour,
        )


def _clipped(name: str) -> str:
    """A name that fits beside the axes."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
