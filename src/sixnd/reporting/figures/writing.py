"""How is text written into axes so that it covers nothing? Sizes and places in pixels, for `labels` to arrange."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from sixnd.reporting.figures.canvas import SMALL, SOFT
from sixnd.reporting.figures.labels import Box, Wanted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

_STEP = 5.0  # pixels between the boxes that stand for a line
_FAR = 13.0  # pixels from which a label needs a line to its point


def pixels(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a point of the data lies."""
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


def frame(axes: Axes) -> Box:
    """The inside of the axes."""
    extent = axes.bbox
    return Box(extent.x0 + 4, extent.y0 + 4, extent.x1 - 4, extent.y1 - 4)


def box_of(axes: Axes, artist: Artist) -> Box:
    """What something drawn takes."""
    canvas = cast("FigureCanvasAgg", axes.figure.canvas)
    extent = artist.get_window_extent(canvas.get_renderer())
    return Box(extent.x0, extent.y0, extent.x1, extent.y1)


def wanted_label(axes: Axes, text: str, x: float, y: float, radius: float, prefer: tuple[int, ...]) -> Wanted:
    """A label for a mark around a point of the data, in the size that its text will have."""
    artist = axes.text(0.5, 0.5, text, fontsize=SMALL, transform=axes.transAxes)
    box = box_of(axes, artist)
    artist.remove()
    across, up = pixels(axes, x, y)
    return Wanted(across, up, radius, box.right - box.left, box.top - box.bottom, prefer)


def write(axes: Axes, text: str, box: Box, label: Wanted, line: bool = True) -> None:
    """Write a label into its box, with a thin line to its mark where that is not beside it."""
    axes.text(*_share(axes, box.left, box.bottom), text, fontsize=SMALL, transform=axes.transAxes, zorder=5)
    near_x = min(max(label.x, box.left), box.right)
    near_y = min(max(label.y, box.bottom), box.top)
    distance = math.hypot(near_x - label.x, near_y - label.y)
    if line and distance - label.radius > _FAR:
        start, end = label.radius / distance, 1 - 2 / distance
        ends = [_share(axes, label.x + t * (near_x - label.x), label.y + t * (near_y - label.y)) for t in (start, end)]
        axes.plot(*zip(*ends, strict=True), color=SOFT, linewidth=0.7, transform=axes.transAxes, zorder=4)


def _share(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """A place in pixels as shares of the axes, which hold at any resolution."""
    across, up = axes.transAxes.inverted().transform((x, y))
    return float(across), float(up)


def along(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> list[Box]:
    """Small boxes along a line through points of the data, so that labels keep off it."""
    corners = [pixels(axes, x, y) for x, y in zip(xs, ys, strict=True)]
    boxes = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:], strict=False):
        steps = max(int(math.hypot(x1 - x0, y1 - y0) / _STEP), 1)
        for step in range(steps + 1):
            x, y = x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
            boxes.append(Box(x - 2, y - 2, x + 2, y + 2))
    return boxes
