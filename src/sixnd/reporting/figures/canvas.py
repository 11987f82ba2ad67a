"""What is every figure drawn on, and how does it become a file?

Figures are matplotlib's, without pyplot: no window and no global state but its settings, which are put to known values
while we draw, whatever the user's own say, and put back. The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixnd.errors import MissingDependencyError, UsageError
from sixnd.reporting.files import write_bytes
from sixnd.reporting.plain import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, SOFT, LINE, WASH, PAPER, WARNING = "#1f2328", "#59636e", "#d1d9e0", "#f1f4f7", "#ffffff", "#b3132a"
SMALL, NORMAL, LARGE = 9, 10.5, 13  # points

# What a page calls our colours, so that a figure in it is dark where the page is.
_PAGE_COLOURS = {INK: "--ink", SOFT: "--soft", LINE: "--line", WASH: "--wash", PAPER: "--page", WARNING: "--bad"}
# What makes a file depend on the day or the version is left out of it.
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": NORMAL,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.parse_math": False,
    "svg.fonttype": "path",
}
_UNTOUCHED = ("backend", "interactive", "toolbar", "webagg", "tk.", "timezone", "date.", "docstring", "figure.max_open")
_DRAWING = threading.RLock()


@contextmanager
def drawing(**settings: object) -> Iterator[None]:
    """Keep matplotlib to its own defaults and to ours, for as long as something is drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(
            "figures need matplotlib, which is not installed: pip install 'sixnd[plot]'"
        ) from error
    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if not name.startswith(_UNTOUCHED)
    }
    with _DRAWING, matplotlib.rc_context(defaults | _SETTINGS | settings):
        yield


def new_figure(title: str, width: float, height: float) -> Figure:
    """An empty figure of so many inches; its title is also its label, which names it to those who cannot see it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100, facecolor=PAPER, label=plain(title))
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .svg, .png or .pdf, by the suffix of `path`: whole, or not at all.

    Raises `UsageError` for another suffix, or where the file cannot be written.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in _METADATA:
        allowed = ", ".join(f".{name}" for name in _METADATA)
        raise UsageError(f"cannot draw {os.fspath(path)!r}: its name must end in one of {allowed}")
    write_bytes(path, _drawn(figure, kind))


def svg_text(figure: Figure) -> str:
    """A figure as an `<svg>` element for a page: its text stays text, its ink and paper take the page's colours."""
    text = _drawn(figure, "svg", **{"svg.fonttype": "none"}).decode("utf-8")
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z0-9.]+_[0-9]+"', "", text)  # "axes_1": of no use, and the same in every figure
    for colour, name in _PAGE_COLOURS.items():
        text = text.replace(colour, f"var({name}, {colour})")
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)  # a hundredth of a point is finer than any screen
    label = f'<svg role="img" aria-label="{escape(str(figure.get_label()))}"'
    return re.sub(r'^<svg| (?:width|height)="[0-9.]+pt"', lambda m: label if m[0] == "<svg" else "", text, count=3)


def _drawn(figure: Figure, kind: str, **settings: object) -> bytes:
    """The bytes of a figure; ids in an SVG are hashed with the figure's label, so that two on a page differ."""
    file = io.BytesIO()
    with drawing(**{"svg.hashsalt": f"sixnd {figure.get_label()}", **settings}):
        figure.savefig(file, format=kind, dpi=160, facecolor=PAPER, metadata=_METADATA[kind])
    return file.getvalue()
