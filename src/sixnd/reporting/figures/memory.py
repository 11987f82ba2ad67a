"""What fills the memory, and when? Bytes alive by category over the operations of one step, as a stacked area."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from sixnd.ledger import CATEGORIES, Category, Sample
from sixnd.reporting.figures.canvas import INK, LARGE, LINE, PAPER, SMALL, SOFT, WARNING, WASH, drawing, new_figure
from sixnd.reporting.plain import plain
from sixnd.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BINS = 600  # more than a figure has columns to show
FAR_ABOVE = 3.0  # a capacity so many times the peak is told, not drawn
# What is always there lies at the bottom, in blues of one family; what comes and goes is above it. Okabe and Ito 2008.
_COLOURS: dict[Category, str] = {
    "parameters": "#2f6690",
    "master": "#6ca0c8",
    "optimizer": "#b4d0e5",
    "kv_cache": "#f0e442",
    "gradients": "#e69f00",
    "activations": "#009e73",
    "temporaries": "#cc79a7",
    "communication": "#8a8d91",
}
_STEADY = ("parameters", "master", "optimizer", "kv_cache")


@dataclass(frozen=True)
class Band:
    """A stretch of operations of one phase, from `start` up to `stop`; backward includes what it recomputes."""

    phase: str
    start: int
    stop: int


def memory_timeline(
    samples: Iterable[Sample], capacity_bytes: int | None, title: str, capacity_is: str = "capacity"
) -> Figure:
    """Draw what is alive at each operation of a step (`Ledger.timeline`), its peak, and the device's capacity.

    Raises `MissingDependencyError` without matplotlib, `ValueError` where there is no sample.
    """
    told = list(samples)
    if not told:
        raise ValueError("a memory timeline needs at least one operation")
    peak = max(range(len(told)), key=lambda i: sum(told[i].levels))
    with drawing():
        figure = new_figure(title, 10, 5.4)
        axes = figure.add_axes((0.085, 0.11, 0.705, 0.74))
        shown = _stack(axes, told)
        top = _limits(axes, len(told), sum(told[peak].levels), capacity_bytes)
        _phases(axes, bands(told), len(told))
        _capacity(axes, capacity_bytes, capacity_is, top, left=peak > len(told) / 2)
        _peak(axes, told[peak], peak / len(told), peak)
        _legend(figure, axes, told[peak], shown)
        figure.text(0.085, 0.94, plain(title), fontsize=LARGE, fontweight="bold", va="bottom")
    return figure


def binned(samples: Sequence[Sample], most: int = MOST_BINS) -> list[tuple[int, Sample]]:
    """At most `most` samples: of each stretch of equal length, where it starts and the one that holds most."""
    n = len(samples)
    starts = [k * n // most for k in range(most + 1)] if n > most else list(range(n + 1))
    picked = [max(range(a, b), key=lambda i: sum(samples[i].levels)) for a, b in pairwise(starts)]
    return [(start, samples[i]) for start, i in zip(starts, picked, strict=False)]


def bands(samples: Sequence[Sample]) -> list[Band]:
    """The step cut into phases, recompute counted to the backward pass that it is done for.

    >>> bands([Sample("a", "forward", (0,)), Sample("a", "recompute", (0,)), Sample("a", "backward", (0,))])
    [Band(phase='forward', start=0, stop=1), Band(phase='backward', start=1, stop=3)]
    """
    found, start = [], 0
    for phase, group in groupby("backward" if s.phase == "recompute" else s.phase for s in samples):
        stop = start + len(list(group))
        found.append(Band(phase, start, stop))
        start = stop
    return found


def _stack(axes: Axes, samples: Sequence[Sample]) -> list[Category]:
    """Draw the areas, from the bottom up; the categories that there are."""
    picked = binned(samples)
    places = [float(place) for place, _ in picked] + [float(len(samples))]
    below = [0] * len(places)
    shown: list[Category] = []
    for category, colour in _COLOURS.items():
        index = CATEGORIES.index(category)
        heights = [sample.levels[index] for _, sample in picked]
        if any(heights):
            above = [b + h for b, h in zip(below, [*heights, heights[-1]], strict=True)]
            axes.fill_between(places, below, above, step="post", color=colour, linewidth=0)
            if category in _STEADY:
                axes.step(places, above, where="post", color=PAPER, linewidth=0.8)
            below = above
            shown.append(category)
    return shown


def _limits(axes: Axes, n: int, peak_bytes: int, capacity_bytes: int | None) -> float:
    """Set both axes; the top of the vertical one in bytes."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

    highest = max(peak_bytes, capacity_bytes or 0) if not _is_far(capacity_bytes, peak_bytes) else peak_bytes
    top = 1.16 * max(highest, 1)
    axes.set_xlim(0, n)
    axes.set_ylim(0, top)
    axes.set_xlabel("operations of the step, in order")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(x):,}"))
    axes.yaxis.set_major_locator(MultipleLocator(_tick_bytes(top)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_bytes(round(y))))
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, labelsize=SMALL)
    return top


def _tick_bytes(top: float) -> float:
    """A round number of bytes, in powers of 1024, that gives some five ticks."""
    unit = 1024.0 ** int(math.log(max(top / 5, 1), 1024))
    steps = (m * unit for m in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1024))
    return min(steps, key=lambda step: abs(top / step - 5.5))


def _is_far(capacity_bytes: int | None, peak_bytes: int) -> bool:
    return capacity_bytes is not None and capacity_bytes > FAR_ABOVE * peak_bytes


def _phases(axes: Axes, found: list[Band], n: int) -> None:
    """A strip above the plot: the phases, by name where there is room, the last one's else beside it."""
    if any(_too_narrow(band, n) for band in found if band.phase != "optimizer"):
        axes.set_xlabel(f"{axes.get_xlabel()} (above: light forward, dark backward)")
    for band in found:
        colour = WASH if band.phase == "forward" else LINE
        axes.axvspan(band.start, band.stop, 1.015, 1.065, color=colour, linewidth=0, clip_on=False)
        if not _too_narrow(band, n):
            middle = (band.start + band.stop) / 2
            axes.text(
                middle,
                1.04,
                band.phase,
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="center",
                fontsize=SMALL,
                color=INK,
            )
        elif band.stop == n:
            axes.annotate(
                band.phase,
                (n, 1.04),
                (5, 0),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
                color=INK,
                annotation_clip=False,
            )


def _too_narrow(band: Band, n: int) -> bool:
    """Whether a band cannot bear its phase's name."""
    return (band.stop - band.start) / n < 0.013 * len(band.phase)


def _capacity(axes: Axes, capacity_bytes: int | None, capacity_is: str, top: float, left: bool) -> None:
    if capacity_bytes is None:
        return
    place, align = (0.01, "left") if left else (0.99, "right")
    far = capacity_bytes > top
    if not far:
        axes.axhline(capacity_bytes, color=WARNING, linewidth=1.6, linestyle=(0, (5, 2)))
    axes.annotate(
        f"{capacity_is} {format_bytes(capacity_bytes)}{', far above' if far else ''}",
        (place, 0.97 if far else capacity_bytes),
        (0, 0 if far else 4),
        xycoords="axes fraction" if far else axes.get_yaxis_transform(),
        textcoords="offset points",
        ha=align,
        va="top" if far else "bottom",
        fontsize=SMALL,
        color=WARNING,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
    )


def _peak(axes: Axes, sample: Sample, share: float, place: int) -> None:
    """Mark the fullest moment, with what runs there."""
    n_bytes = sum(sample.levels)
    align = "left" if share < 0.3 else "right" if share > 0.7 else "center"
    axes.plot(
        [place + 0.5],
        [n_bytes],
        marker="o",
        markersize=6,
        color=PAPER,
        markeredgecolor=INK,
        markeredgewidth=1.4,
        clip_on=False,
        zorder=4,
    )
    axes.annotate(
        f"peak {format_bytes(n_bytes)} in {plain(sample.path)} ({sample.phase})",
        (place + 0.5, n_bytes),
        (0, 8),
        textcoords="offset points",
        ha=align,
        va="bottom",
        fontsize=SMALL,
        fontweight="bold",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
    )


def _legend(figure: Figure, axes: Axes, at_peak: Sample, shown: list[Category]) -> None:
    """The categories in the order they are stacked, with what each holds at the peak."""
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor=_COLOURS[category],
            label=f"{category.replace('_', ' ')}\n{format_bytes(at_peak.levels[CATEGORIES.index(category)])}",
        )
        for category in reversed(shown)
    ]
    figure.legend(
        handles=handles,
        title="at the peak",
        loc="upper left",
        bbox_to_anchor=(0.8, 0.8),
        frameon=False,
        fontsize=SMALL,
        title_fontsize=SMALL,
        alignment="left",
        labelspacing=0.8,
        labelcolor=INK,
    )
    axes.spines["left"].set_color(SOFT)
