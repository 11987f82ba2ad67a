"""`time` and `largest` as reports."""

from __future__ import annotations

from sixnd.machines import Cluster
from sixnd.plan import Plan
from sixnd.planning.napkin import Largest, TrainingTime, compute_optimal
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import format_bytes, format_count, format_flop_per_second, format_flops, format_percent

_QUANTITY = (Column("quantity"), Column("value", "right"), Column("formula, filled in"))


def time_report(answer: TrainingTime, cluster: Cluster) -> Report:
    """Lay the napkin out: the unknown in the first line, all five quantities below it."""
    return Report(
        "Training time",
        _time_verdict(answer, cluster),
        None if answer.possible else False,
        (Table("Training time", _QUANTITY, _time_rows(answer, cluster)),),
        (
            "FLOPs are 6 x parameters x tokens (Kaplan et al. 2020): attention is left out; `sixnd account` counts it",
            "peak is dense, for one device; MFU is the share of it that the model's own FLOPs reach",
        ),
        data=_time_data(answer),
    )


def _time_verdict(answer: TrainingTime, cluster: Cluster) -> str:
    where = f"{answer.devices:,} x {cluster.machine.name}"
    if answer.unknown == "flops":
        n, d = compute_optimal(answer.flops)
        return (
            f"{answer.days:g} days on {where} at MFU {format_percent(answer.mfu)} are {format_flops(answer.flops)}: "
            f"by 20 tokens a parameter best spent on {format_count(n)} parameters and {format_count(d)} tokens."
        )
    assert answer.params is not None
    assert answer.tokens is not None
    run = f"{format_count(answer.params)} parameters on {format_count(answer.tokens)} tokens"
    if not answer.possible:
        return f"{run} in {answer.days:g} days on {where} cannot be: it needs {format_percent(answer.mfu)} of the peak."
    return f"{run}: {answer.days:,.1f} days on {where} at MFU {format_percent(answer.mfu)} of {_peak(answer)}."


def _peak(answer: TrainingTime) -> str:
    return f"{format_flop_per_second(answer.peak_flop_per_second)} dense"


def _time_rows(answer: TrainingTime, cluster: Cluster) -> tuple[tuple[str, ...], ...]:
    rate = f"{answer.devices:,} x {format_flop_per_second(answer.peak_flop_per_second)} x {answer.mfu:.4g}"
    rows = [
        ("devices", f"{answer.devices:,}", cluster.machine.name),
        ("MFU", format_percent(answer.mfu), f"of {_peak(answer)}"),
    ]
    if answer.params is not None and answer.tokens is not None:
        rows = [
            ("parameters", format_count(answer.params), f"{answer.params:,}"),
            (
                "tokens",
                format_count(answer.tokens),
                f"{answer.tokens:,}, {answer.tokens / answer.params:.3g} a parameter",
            ),
            *rows,
        ]
        filled = f"6 x {answer.params:,} x {answer.tokens:,}"
    else:
        filled = f"{rate} x {answer.days:g} x 86,400 s"
    rows.append(("FLOPs", format_flops(answer.flops), filled))
    rows.append(("days", f"{answer.days:,.2f}", f"{answer.flops:.4g} / ({rate}) / 86,400 s"))
    rows.append(("device-hours", f"{answer.days * 24 * answer.devices:,.0f}", "days x 24 x devices"))
    return tuple(
        (name + (" (worked out)" if name.lower() == _shown(answer.unknown) else ""), *rest) for name, *rest in rows
    )


def _shown(unknown: str) -> str:
    return {"params": "parameters"}.get(unknown, unknown)


def _time_data(answer: TrainingTime) -> dict[str, object]:
    return {
        "schema": "sixnd.time/1",
        "unknown": answer.unknown,
        "flops": answer.flops,
        "days": answer.days,
        "seconds": answer.seconds,
        "params": answer.params,
        "tokens": answer.tokens,
        "devices": answer.devices,
        "mfu": answer.mfu,
        "peak_flop_per_second": answer.peak_flop_per_second,
        "possible": answer.possible,
    }


def largest_report(answer: Largest, cluster: Cluster, plan: Plan, chosen: tuple[str, ...]) -> Report:
    """Lay out the largest trainable model, by nameplate, by usable memory, and with activations."""
    each = f"{answer.bytes_per_param:g}"
    rows = (
        ("bytes per parameter", each, answer.bytes_per_param_text),
        (
            "by nameplate memory",
            format_count(answer.params),
            f"{cluster.n_devices} x {cluster.machine.nameplate_bytes / 1e9:g} GB / {each}",
        ),
        (
            "by usable memory",
            format_count(answer.params_usable),
            f"{cluster.n_devices} x {format_bytes(cluster.machine.memory_bytes)} / {each}",
        ),
        (
            "with activations",
            format_count(answer.params_with_activations),
            f"{answer.shape}, shaped like {answer.like}; {plan.micro_batch} x {plan.seq} tokens a device",
        ),
    )
    verdict = (
        f"{cluster.n_devices} x {cluster.machine.name} hold the training state of {format_count(answer.params)} "
        f"parameters; with activations of {plan.micro_batch} x {plan.seq} tokens a device "
        f"{format_count(answer.params_with_activations)} remain."
    )
    return Report(
        "Largest model",
        verdict,
        None,
        (Table("Largest model", _QUANTITY, rows),),
        (
            f"precision {plan.precision}, optimizer {plan.optimizer}, recompute {plan.recompute.policy}",
            "state is shared out evenly over the devices",
            "with activations counts buffers, allocator fragments and the context, too",
            *chosen,
        ),
        data={
            "schema": "sixnd.largest/1",
            "bytes_per_param": answer.bytes_per_param,
            "capacity_bytes": answer.capacity_bytes,
            "usable_bytes": answer.usable_bytes,
            "params": answer.params,
            "params_usable": answer.params_usable,
            "params_with_activations": answer.params_with_activations,
            "like": answer.like,
            "batch": answer.batch,
            "seq": answer.seq,
        },
    )
