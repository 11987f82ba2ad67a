"""Two plans side by side."""

from __future__ import annotations

from collections.abc import Callable

from sixnd.planning.answers import Account
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import format_bytes, format_count, format_flops, format_percent, format_seconds

Row = tuple[str, Callable[[Account], float], Callable[[float], str]]
_ROWS: tuple[Row, ...] = (
    ("devices", lambda a: a.workload.devices, format_count),
    ("tokens a step", lambda a: a.workload.tokens_per_step, format_count),
    ("FLOPs a device and step", lambda a: a.flops.total, format_flops),
    ("parameters", lambda a: a.memory.parameters_bytes, format_bytes),
    ("gradients", lambda a: a.memory.gradients_bytes, format_bytes),
    ("master copy", lambda a: a.memory.master_bytes, format_bytes),
    ("optimizer state", lambda a: a.memory.optimizer_bytes, format_bytes),
    ("activations", lambda a: a.memory.activations_bytes, format_bytes),
    ("temporaries", lambda a: a.memory.temporaries_bytes, format_bytes),
    ("communication buffers", lambda a: a.memory.communication_bytes, format_bytes),
    ("kv cache", lambda a: a.memory.kv_cache_bytes, format_bytes),
    ("on the device", lambda a: a.memory.device_bytes, format_bytes),
    ("ideal time", lambda a: a.time.ideal_seconds, format_seconds),
    ("estimated time", lambda a: a.time.seconds, format_seconds),
    ("tokens per second", lambda a: a.time.tokens_per_second, format_count),
    ("a device", lambda a: a.time.tokens_per_second_per_device, format_count),
    ("MFU", lambda a: a.time.mfu, format_percent),
)


def compare_report(first: Account, second: Account, changed: str) -> Report:
    """Set two accounts of one model side by side, with the ratio of the second to the first."""
    rows = [("fits", *("yes" if a.memory.fits else "no" for a in (first, second)), "")]
    for name, value, form in _ROWS:
        one, two = value(first), value(second)
        if one or two:
            rows.append((name, form(one), form(two), f"{two / one:.2f}" if one else "-"))
    faster = second.time.tokens_per_second_per_device / first.time.tokens_per_second_per_device
    fuller = second.memory.device_bytes / first.memory.device_bytes
    columns = (Column("quantity"), Column("this plan", "right"), Column(changed, "right"), Column("ratio", "right"))
    return Report(
        f"{first.model.name}: two plans",
        f"With {changed}: {faster:.2f} x the tokens per second of a device, {fuller:.2f} x its memory.",
        None,
        (Table("Two plans", columns, tuple(rows)),),
        tuple(dict.fromkeys((*first.notes, *second.notes))),
        first.uncounted,
        {"schema": "sixnd.comparison/1", "changed": changed, "first": first.to_dict(), "second": second.to_dict()},
    )
