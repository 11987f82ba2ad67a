"""Rooflines: machines side by side, and where operations lie under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sixnd.formats import get_format, storage_bytes
from sixnd.machines import Machine, attainable_flop_per_second, ridge, roofline_seconds
from sixnd.notation.cost import contraction, contraction_flops
from sixnd.notation.kinds import GELU, RELU
from sixnd.planning.account import account
from sixnd.planning.answers import Account
from sixnd.planning.estimate import work_flops
from sixnd.reporting.machine_report import main_format
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import (
    format_bytes,
    format_bytes_per_second,
    format_flop_per_second,
    format_flops,
    format_intensity,
    format_percent,
    format_seconds,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_OPERATIONS = 16
LECTURE_ELEMENTS = 2**20
LECTURE_SIDE = 1024


@dataclass(frozen=True)
class Point:
    """One operation under a roofline: its FLOPs and bytes, its share of the step, and the phase it belongs to."""

    label: str
    phase: str
    flops: int
    n_bytes: int
    share: float

    @property
    def intensity(self) -> float:
        """FLOPs for each byte moved."""
        return self.flops / self.n_bytes


def lecture_operations(machine: Machine) -> tuple[Point, ...]:
    """The lecture's operations in bf16: ReLU, GELU, dot product, matrix-vector, matrix-matrix."""
    bf16 = get_format("bfloat16")

    def points(label: str, flops: int, *shapes: int) -> tuple[str, int, int]:
        return label, flops, sum(storage_bytes(bf16, n) for n in shapes)

    n, side = LECTURE_ELEMENTS, LECTURE_SIDE
    sizes = {"i": side, "j": side, "k": side, "one": 1}
    matrix = contraction_flops(contraction((("i", "j"), ("j", "k")), ("i", "k")), sizes).matrix
    vector = contraction_flops(contraction((("i", "j"), ("j",)), ("i",)), sizes).matrix
    dot = contraction_flops(contraction((("j",), ("j",)), ()), sizes).matrix
    rows = (
        points("ReLU", work_flops(RELU.forward) * n, n, n),
        points("GELU", work_flops(GELU.forward) * n, n, n),
        points("dot product", dot, side, side, 1),
        points("matrix x vector", vector, side * side, side, side),
        points("matrix x matrix", matrix, side * side, side * side, side * side),
    )
    return tuple(Point(label, "forward", flops, n_bytes, 1 / len(rows)) for label, flops, n_bytes in rows)


def model_operations(
    model: str, on: str, *, batch: int, seq: int | None, phase: str, precision: str, attention: str
) -> tuple[Point, ...]:
    """The operations of one step of a model that take most of its time on a machine."""
    answer = account(
        model, on=on, batch=batch, seq=seq, phase=phase, precision=precision, attention=attention, advise=False
    )
    return account_points(answer)


def account_points(answer: Account) -> tuple[Point, ...]:
    """The operations of an account that take most of its time."""
    counted = [o for o in answer.operations if o.flops and o.bytes]
    total = answer.time.seconds or 1.0
    longest = sorted(counted, key=lambda o: -o.seconds)[:MOST_OPERATIONS]
    return tuple(Point(o.path, o.phase, o.flops, o.bytes, o.seconds / total) for o in longest)


def roofline_report(machines: Sequence[Machine], points: Sequence[Point], model: str | None) -> Report:
    """Ridges of the machines, and for every operation what bounds it on each of them."""
    columns = (
        Column("operation"),
        Column("phase"),
        Column("FLOPs", "right"),
        Column("bytes", "right"),
        Column("intensity", "right"),
        *(Column(f"on {m.name}", "right") for m in machines),
    )
    rows = tuple(
        (
            p.label,
            p.phase,
            format_flops(p.flops),
            format_bytes(p.n_bytes),
            format_intensity(p.intensity),
            *(_bound(p, m) for m in machines),
        )
        for p in points
    )
    about = f"operations of {model}" if model else "the lecture's operations"
    ridges = "; ".join(f"{m.name} {ridge(m, main_format(m)):.0f}" for m in machines)
    return Report(
        "Roofline",
        f"Compute-bound from this many FLOP per byte: {ridges}.",
        None,
        (_machine_table(machines), Table(f"Roofline: {about}", columns, rows, tuple(p.share for p in points))),
        (
            "ideal: time is max(FLOPs / peak, bytes / bandwidth), with perfect overlap (Williams et al. 2009)",
            "attention counts every pair; `sixnd account` prices flash attention by the pairs that are let through",
            "a transcendental counts as several vector FLOPs here, as in `sixnd account`",
        ),
        data={
            "schema": "sixnd.roofline/1",
            "machines": [
                {
                    "name": m.name,
                    "format": main_format(m),
                    "ridge": ridge(m, main_format(m)),
                    "peak_flop_per_second": m.peak_flop_per_second[main_format(m)],
                    "memory_bytes_per_second": m.memory_bytes_per_second,
                }
                for m in machines
            ],
            "operations": [
                {
                    "path": p.label,
                    "phase": p.phase,
                    "flops": p.flops,
                    "bytes": p.n_bytes,
                    "intensity": p.intensity,
                    "bound": {m.name: roofline_seconds(p.flops, p.n_bytes, m, main_format(m)).bound for m in machines},
                }
                for p in points
            ],
        },
    )


def _machine_table(machines: Sequence[Machine]) -> Table:
    columns = (
        Column("machine"),
        Column("format"),
        Column("dense peak", "right"),
        Column("bandwidth", "right"),
        Column("ridge", "right"),
    )
    rows = []
    for m in machines:
        name = main_format(m)
        rows.append(
            (
                m.name,
                name,
                format_flop_per_second(m.peak_flop_per_second[name]),
                format_bytes_per_second(m.memory_bytes_per_second),
                format_intensity(ridge(m, name)),
            )
        )
    return Table("Machines", columns, tuple(rows))


def _bound(point: Point, machine: Machine) -> str:
    time = roofline_seconds(point.flops, point.n_bytes, machine, main_format(machine))
    reached = point.flops / time.seconds / machine.peak_flop_per_second[main_format(machine)]
    return f"{time.bound}, {format_seconds(time.seconds)}, {format_percent(reached)} of peak"


def roofline_figure(machines: Sequence[Machine], points: Sequence[Point], title: str = "Roofline") -> Figure:
    """Draw the rooflines with the operations under the first machine's."""
    from sixnd.reporting import figures

    roofs = [figures.Roof(m.name, m.peak_flop_per_second[main_format(m)], m.memory_bytes_per_second) for m in machines]
    drawn = [
        figures.Point(
            p.label,
            p.intensity,
            attainable_flop_per_second(p.intensity, machines[0], main_format(machines[0])),
            p.share,
            p.phase,
        )
        for p in points
    ]
    return figures.roofline(roofs, drawn, title=title)
