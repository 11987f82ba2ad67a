"""`sixnd account`: the main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from sixnd.app.output import TABLES, Output, emit
from sixnd.units import parse_count, parse_flop_per_second

if TYPE_CHECKING:
    from sixnd.planning.answers import Account
    from sixnd.reporting.report import Report


def account(
    model: str,
    /,
    *,
    on: str = "h100",
    batch: int = 1,
    seq: int | None = None,
    phase: str = "train",
    precision: str = "bf16-master",
    optimizer: str = "adamw",
    recompute: str = "none",
    attention: str = "flash",
    accumulation: int = 1,
    shard: str | None = None,
    mesh: str | None = None,
    global_batch: str | None = None,
    tokens: str | None = None,
    foreach: Annotated[bool, Parameter(negative="")] = False,
    mfu_convention: str = "exact",
    peak: str | None = None,
    explain: Annotated[bool, Parameter(negative="")] = False,
    vs: str | None = None,
    plot: Path | None = None,
    output: Output = TABLES,
) -> int:
    """What a step of a model costs, how long it takes, and whether it fits.

    Parameters
    ----------
    model
        A known name (llama-3-8b), a config.json, or a folder that holds one.
    on
        The devices: h100, 8xh100, 1024xb200.
    batch
        Sequences in the micro-batch of one device.
    seq
        Tokens of a sequence; in decode, the context. Default: the model's own, up to 8192.
    phase
        train, prefill or decode.
    precision
        The policy that numbers are stored by: bf16-master, bf16, fp32, amp-bf16, fp8-training; int8, int4 to serve.
    optimizer
        sgd, momentum, adagrad, rmsprop, adam, adamw, adam8bit, adafactor, lion, muon.
    recompute
        What backward makes again: none, selective, full, sqrt or every:K blocks.

    Attention:
        flash (no scores stored) or math (all of them).
    accumulation
        Micro-batches for each optimizer step.
    shard
        none, ddp, zero1, zero2 or zero3. Default: zero3 on several devices.
    mesh
        Devices by axis, such as dp=8.
    global_batch
        Tokens for each optimizer step over all devices (4M); sets the accumulation.
    tokens
        Tokens of the whole run (15T); adds days and device-hours.
    foreach
        The optimizer's many-tensor form, which needs a temporary.
    mfu_convention
        exact, 6N, 6N+12LHT, 6Nmm+12LHT or 6Nmm+6LHT.
    peak
        Another peak for the device, such as 800TFLOP/s.
    explain
        Show every headline number with its formula and the numbers filled in.
    vs
        Options of a second plan to set beside this one, such as "--recompute full --batch 4".
    plot
        Write a figure (.svg, .png, .pdf): memory over the step, and the roofline beside it as FILE-roofline.
    """
    from sixnd.planning.account import account as work_out
    from sixnd.reporting.account_report import account_report

    options: dict[str, Any] = dict(
        on=on,
        batch=batch,
        seq=seq,
        phase=phase,
        precision=precision,
        optimizer=optimizer,
        recompute=recompute,
        attention=attention,
        accumulation=accumulation,
        shard=shard,
        mesh=mesh,
        foreach=foreach,
        mfu_convention=mfu_convention,
        global_batch=None if global_batch is None else parse_count(global_batch, minimum=1, what="--global-batch"),
        tokens=None if tokens is None else parse_count(tokens, minimum=1, what="--tokens"),
        peak=None if peak is None else parse_flop_per_second(peak),
    )
    answer = work_out(model, **options)
    if vs is not None:
        from sixnd.app.compare import second_plan
        from sixnd.reporting.compare_report import compare_report

        other = work_out(model, **{**options, **second_plan(vs)})
        emit(compare_report(answer, other, vs), output)
        return 0 if answer.memory.fits or other.memory.fits else 1
    report = account_report(answer, explain=explain, every_operation=output.csv)
    if plot is not None or output.html is not None:
        report = _with_figures(answer, report, plot, page=output.html is not None)
    emit(report, output)
    return 0 if answer.memory.fits else 1


def _with_figures(answer: Account, report: Report, plot: Path | None, page: bool) -> Report:
    """Draw memory over the step and the roofline; write them where asked, and put them on the page."""
    from sixnd.reporting import figures
    from sixnd.reporting.roofline_report import account_points, roofline_figure

    memory = figures.memory_timeline(tuple(answer.ledger.timeline()), answer.memory.capacity_bytes, answer.model.name)
    roof = roofline_figure((answer.cluster.machine,), account_points(answer))
    if plot is not None:
        figures.save(memory, plot)
        figures.save(roof, plot.with_name(f"{plot.stem}-roofline{plot.suffix}"))
    return (
        replace(report, figures={"Memory over the step": figures.svg_text(memory), "Roofline": figures.svg_text(roof)})
        if page
        else report
    )
