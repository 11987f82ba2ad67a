"""What does a result look like? The roofline, and memory over a step. matplotlib is imported when one is drawn."""

from sixnd.reporting.figures.canvas import save, svg_text
from sixnd.reporting.figures.memory import memory_timeline
from sixnd.reporting.figures.points import Point
from sixnd.reporting.figures.roofline import Roof, roofline

__all__ = ["Point", "Roof", "memory_timeline", "roofline", "save", "svg_text"]
