"""Machines as reports: the catalogue in a table, one machine's data sheet, and rooflines side by side."""

from __future__ import annotations

from collections.abc import Sequence

from sixnd.machines import Link, Machine, ridge
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import (
    format_bytes,
    format_bytes_per_second,
    format_flop_per_second,
    format_intensity,
    format_percent,
    format_seconds,
)

PEAKS = ("fp32", "bf16", "fp16", "fp8", "fp4")


def catalogue_report(machines: Sequence[Machine]) -> Report:
    """Every machine in one table."""
    columns = (
        Column("machine"),
        Column("year", "right"),
        *(Column(name, "right") for name in PEAKS),
        Column("memory", "right"),
        Column("bandwidth", "right"),
        Column("ridge", "right"),
        Column("confidence"),
    )
    return Report(
        "Machines",
        f"{len(machines)} accelerators: dense peaks in TFLOP/s, memory as the driver reports it where known.",
        None,
        (Table("machines", columns, tuple(map(_row, machines))),),
        (
            "ridge: FLOP per byte from which work is bound by compute, in bf16 (or the best format of two bytes)",
            "`sixnd machines NAME` shows one with its sources; `sixnd machines add` records your own",
        ),
        data={"schema": "sixnd.machines/1", "machines": [machine_data(m) for m in machines]},
    )


def _row(machine: Machine) -> tuple[str, ...]:
    peaks = machine.peak_flop_per_second
    return (
        machine.name,
        str(machine.year or ""),
        *(f"{peaks[name] / 1e12:,.4g}" if name in peaks else "-" for name in PEAKS),
        format_bytes(machine.memory_bytes),
        format_bytes_per_second(machine.memory_bytes_per_second),
        f"{ridge(machine, main_format(machine)):.0f}",
        machine.confidence,
    )


def main_format(machine: Machine) -> str:
    """The format that a machine's headline is about: bf16, or fp16, or the first it has."""
    return next(
        (name for name in ("bf16", "fp16") if name in machine.peak_flop_per_second),
        next(iter(machine.peak_flop_per_second)),
    )


def machine_report(machine: Machine) -> Report:
    """One machine's data sheet, every figure with where it comes from."""
    peaks = tuple(
        (
            name,
            format_flop_per_second(rate),
            format_intensity(rate / machine.memory_bytes_per_second),
            *_reached(machine, name),
        )
        for name, rate in machine.peak_flop_per_second.items()
    )
    facts = (
        ("made by", f"{machine.vendor} {machine.form_factor} {machine.year or ''}".strip()),
        (
            "memory",
            f"{format_bytes(machine.memory_bytes)} usable ({machine.memory_note}), "
            f"{machine.nameplate_bytes / 1e9:g} GB by name",
        ),
        ("bandwidth", format_bytes_per_second(machine.memory_bytes_per_second)),
        ("vector peak", _or_unknown(machine.vector_flop_per_second, format_flop_per_second)),
        ("in the node", _link(machine.intra_node) + f", {machine.devices_per_node} devices"),
        ("between nodes", _link(machine.inter_node)),
        ("to the host", _or_unknown(machine.host_link_bytes_per_second, format_bytes_per_second)),
        ("power", f"{machine.tdp_watts:g} W" if machine.tdp_watts else "not recorded"),
        ("source", f"{machine.source} ({machine.date}; confidence {machine.confidence})"),
    )
    columns = (
        Column("format"),
        Column("dense peak", "right"),
        Column("ridge", "right"),
        Column("best matmul", "right"),
        Column("source of that"),
    )
    notes = tuple(note for note in (machine.alias_note, machine.notes) if note)
    bandwidth, launch = machine.efficiency.bandwidth, machine.efficiency.launch_seconds
    return Report(
        machine.name,
        f"{machine.name}: {_headline(machine)}",
        None,
        (
            Table("Facts", (Column("what"), Column("value")), facts),
            Table("Peaks", columns, peaks),
        ),
        (
            *notes,
            f"estimates reach {format_percent(bandwidth.value)} of the bandwidth ({bandwidth.source}) and take "
            f"{format_seconds(launch.value)} to launch a kernel ({launch.source})",
        ),
        data={"schema": "sixnd.machine/1", **machine_data(machine)},
    )


def _headline(machine: Machine) -> str:
    name = main_format(machine)
    return (
        f"{format_flop_per_second(machine.peak_flop_per_second[name])} dense {name}, "
        f"{format_bytes_per_second(machine.memory_bytes_per_second)}, {ridge(machine, name):.0f} FLOP per byte."
    )


def _reached(machine: Machine, name: str) -> tuple[str, str]:
    reached = machine.efficiency.matmul.get(name)
    return (format_percent(reached.value), reached.source) if reached else ("", "")


def _link(link: Link | None) -> str:
    if link is None:
        return "not recorded"
    return f"{link.name}, {format_bytes_per_second(link.bytes_per_second)} a direction"


def _or_unknown(value: float | None, form: object) -> str:
    return "not recorded" if value is None else form(value)  # type: ignore[operator]


def machine_data(machine: Machine) -> dict[str, object]:
    """A machine as plain data, keys as `sixnd machines NAME --json` prints them."""
    peaks = dict(machine.peak_flop_per_second)
    return {
        "name": machine.name,
        "vendor": machine.vendor,
        "year": machine.year,
        "peak_flop_per_second": peaks,
        "vector_flop_per_second": machine.vector_flop_per_second,
        "memory_bytes": machine.memory_bytes,
        "nameplate_bytes": machine.nameplate_bytes,
        "memory_bytes_per_second": machine.memory_bytes_per_second,
        "intensity": {name: rate / machine.memory_bytes_per_second for name, rate in peaks.items()},
        "devices_per_node": machine.devices_per_node,
        "intra_node_bytes_per_second": machine.intra_node.bytes_per_second if machine.intra_node else None,
        "inter_node_bytes_per_second": machine.inter_node.bytes_per_second if machine.inter_node else None,
        "tdp_watts": machine.tdp_watts,
        "source": machine.source,
        "date": machine.date,
        "confidence": machine.confidence,
    }
