"""`sixnd roofline`: machines side by side, and where a model's operations lie under them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sixnd.app.output import TABLES, Output, emit
from sixnd.app.plan_options import WHOLE
from sixnd.errors import UsageError


def roofline(
    model: str | None = None,
    /,
    *,
    on: str = "h100",
    batch: Annotated[int, WHOLE] = 1,
    seq: Annotated[int | None, WHOLE] = None,
    phase: str = "train",
    precision: str = "bf16-master",
    attention: str = "flash",
    plot: Path | None = None,
    output: Output = TABLES,
) -> int:
    """The roofline of one or several machines, with the operations of a model as points.

    Parameters
    ----------
    model
        A known name or a config.json. Without it: the lecture's operations.
    on
        Machines, with commas: h100,b200,mi300x.
    batch
        Sequences of the step.
    seq
        Tokens of a sequence; in decode, the context.
    phase
        train, prefill or decode.
    precision
        The policy that numbers are stored by.

    Attention:
        flash or math.
    plot
        Write the figure (.svg, .png, .pdf).
    """
    from sixnd.machines import resolve
    from sixnd.reporting.roofline_report import lecture_operations, model_operations, roofline_report

    names = [name for name in on.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--on {on!r} names no machine: write names with commas, as in h100,b200")
    machines = tuple(resolve(name.strip()) for name in names)
    if model is None:
        operations = lecture_operations(machines[0])
    else:
        operations = model_operations(
            model, machines[0].name, batch=batch, seq=seq, phase=phase, precision=precision, attention=attention
        )
    report = roofline_report(machines, operations, model)
    if plot is not None or output.html is not None:
        from dataclasses import replace

        from sixnd.reporting import figures
        from sixnd.reporting.roofline_report import roofline_figure

        figure = roofline_figure(machines, operations, f"{model}: {phase}" if model else "The lecture's operations")
        if plot is not None:
            figures.save(figure, plot)
        report = replace(report, figures={"Roofline": figures.svg_text(figure)})
    emit(report, output)
    return 0
