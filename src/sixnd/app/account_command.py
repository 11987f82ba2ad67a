"""`sixnd account`: the main job."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from sixnd.app.output import TABLES, Output, check_form, emit, json_text
from sixnd.app.plan_options import ONE_STEP, PlanOptions, keywords

if TYPE_CHECKING:
    from sixnd.planning.answers import Account
    from sixnd.reporting.report import Report


def account(
    model: str,
    /,
    *,
    plan: PlanOptions = ONE_STEP,
    explain: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    vs: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    plot: Path | None = None,
    output: Output = TABLES,
) -> int:
    """What a step of a model costs, how long it takes, and whether it fits.

    Parameters
    ----------
    model
        A known name (llama-3-8b), a config.json, or a folder that holds one.
    explain
        Show every headline number with its formula and the numbers filled in.
    vs
        The options of a second plan to set beside this one, such as "--recompute full --batch 4".
    plot
        Write two figures (.svg, .png, .pdf): FILE, memory over the step, and FILE-roofline.
    """
    from sixnd.planning.account import account as work_out

    check_form(output)
    options = keywords(plan)
    answer = work_out(model, **options)
    if vs is not None:
        from sixnd.app.compare import second_plan
        from sixnd.reporting.compare_report import compare_report

        other = work_out(model, **{**options, **second_plan(vs)})
        emit(compare_report(answer, other, vs), output)
        return 0 if answer.memory.fits or other.memory.fits else 1
    if output.json and output.html is None and plot is None:  # the tables are not laid out to be thrown away
        sys.stdout.write(json_text(answer.to_dict()))
        return 0 if answer.memory.fits else 1
    from sixnd.reporting.account_report import account_report

    report = account_report(answer, explain=explain, every_operation=output.csv)
    if plot is not None or output.html is not None:
        report = _with_figures(answer, report, plot, page=output.html is not None)
    emit(report, output)
    return 0 if answer.memory.fits else 1


def _with_figures(answer: Account, report: Report, plot: Path | None, page: bool) -> Report:
    """Draw memory over the step and the roofline; write them where asked, and put them on the page."""
    from sixnd.reporting import figures
    from sixnd.reporting.roofline_report import account_points, roofline_figure

    title = f"{answer.model.name} on {answer.workload.devices} x {answer.workload.on}: memory of a device over the step"
    held = answer.memory
    room = held.capacity_bytes - (held.device_bytes - held.peak_bytes)  # fragments and the context take the rest
    memory = figures.memory_timeline(tuple(answer.ledger.timeline()), room, title, "room for tensors")
    roof = roofline_figure(
        (answer.cluster.machine,), account_points(answer), f"{answer.model.name}: roofline of a step"
    )
    if plot is not None:
        figures.save(memory, plot)
        figures.save(roof, plot.with_name(f"{plot.stem}-roofline{plot.suffix}"))
    return (
        replace(report, figures={"Memory over the step": figures.svg_text(memory), "Roofline": figures.svg_text(roof)})
        if page
        else report
    )
