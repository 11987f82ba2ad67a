"""How is a label written into axes? Measures, places in pixels, and the line from a label to its point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sixnd.reporting.figures.canvas import PAPER, SMALL, SOFT
from sixnd.reporting.figures.labels import Box, Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AIR = 3.0  # pixels above and below a text


def pixels(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where a point of the data lies."""
    across, up = axes.transData.transform((x, y))
    return float(across), float(up)


def label_for(axes: Axes, text: str, x: float, y: float, radius: float) -> Label:
    """A label for a mark around a point of the data, in the size that its text will have."""
    artist = axes.text(0, 0, text, fontsize=SMALL)
    canvas: Any = axes.figure.canvas  # Agg's, which can measure
    extent = artist.get_window_extent(canvas.get_renderer())
    artist.remove()
    return Label(*pixels(axes, x, y), radius, float(extent.width), float(extent.height) + 2 * _AIR)


def write(axes: Axes, text: str, box: Box, label: Label) -> None:
    """Write a label into its box, with a thin line down from its mark and across to the text."""
    middle = (box.bottom + box.top) / 2
    left = min(box.left, axes.bbox.x1 - 4 - label.width)
    corners = [(label.x, label.y - label.radius), (label.x, middle), (left - 3, middle)]
    if label.x < left - 3:
        line = [_share(axes, x, y) for x, y in corners]
        axes.plot([x for x, _ in line], [y for _, y in line], color=SOFT, linewidth=0.7, transform=axes.transAxes)
    axes.text(
        *_share(axes, left, middle),
        text,
        fontsize=SMALL,
        va="center_baseline",
        transform=axes.transAxes,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        zorder=5,
    )


def _share(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """A place in pixels as shares of the axes, which hold at any resolution."""
    across, up = axes.transAxes.inverted().transform((x, y))
    return float(across), float(up)
