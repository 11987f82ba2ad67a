"""`sixnd models`: what is known by name, and the families of config.json that are understood."""

from __future__ import annotations

from sixnd.app.output import TABLES, Output, emit


def models(*, output: Output = TABLES) -> int:
    """The models known by name, and the families that a config.json may be of."""
    from sixnd.reporting.model_report import models_report

    emit(models_report(), output)
    return 0
