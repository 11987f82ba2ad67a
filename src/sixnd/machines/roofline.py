"""How long does work take at least, and how long will it take?

*Ideal* (the roofline; Williams, Waterman and Patterson 2009): computing and moving overlap fully, each at its peak.

    seconds = max(F / P, B / W)        F FLOPs, P peak FLOP/s, B bytes, W bytes per second

*Estimated* is for one kernel on one accelerator, with the fractions of the peaks that kernels reach:

    seconds = overhead + max(F / (P·e), B / (W·c))

Accelerators overlap the two, so the larger counts; on CPUs they nearly add up, and a sum fits better there. Until a
machine is calibrated its fractions are those of its catalogue entry, each with a source, and no more than plausible:
`e` is the best over matmul shapes, so small and odd shapes will take longer than this says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sixnd.machines.peaks import peak_engine
from sixnd.machines.record import Machine

Bound = Literal["compute", "memory", "overhead"]


@dataclass(frozen=True)
class RooflineTime:
    """How long computing and moving take, how long both together, and which of them decides."""

    compute_seconds: float
    memory_seconds: float
    seconds: float
    bound: Bound


def roofline_seconds(flops: int, n_bytes: int, machine: Machine, format: str) -> RooflineTime:
    """The ideal time of `flops` FLOPs in a format and `n_bytes` bytes moved: max(F/P, B/W).

    Raises:
        InputError: the machine has no engine for the format.

    >>> from sixnd.machines import resolve
    >>> relu = roofline_seconds(10**6, 4 * 10**6, resolve("h100"), "bf16")
    >>> relu.bound, f"{relu.seconds:.2e} s, of which arithmetic {relu.compute_seconds:.1e} s"
    ('memory', '1.19e-06 s, of which arithmetic 1.0e-09 s')
    """
    rate = machine.peak_flop_per_second.get(format) or machine.peak_flop_per_second[peak_engine(machine, format)]
    return bounded_seconds(flops, n_bytes, rate, machine.memory_bytes_per_second)


def estimated_seconds(flops: int, n_bytes: int, machine: Machine, format: str, n_kernels: int = 1) -> RooflineTime:
    """The time to expect of a matmul kernel: overhead + max(F/(P·e), B/(W·c)), with the machine's own efficiencies.

    `compute_seconds` and `memory_seconds` are those after the efficiencies; what is left of `seconds` is overhead.

    Args:
        flops: FLOPs of all kernels together.
        n_bytes: bytes that they move.
        machine: where.
        format: the format that is multiplied in.
        n_kernels: how many kernels, each with its launch.

    Raises:
        InputError: the machine has no engine for the format.

    >>> from sixnd.machines import resolve
    >>> estimated_seconds(10**6, 4 * 10**6, resolve("h100"), "bf16").bound
    'overhead'
    """
    efficiency, engine = machine.efficiency, peak_engine(machine, format)
    return bounded_seconds(
        flops,
        n_bytes,
        machine.peak_flop_per_second[engine] * efficiency.matmul[engine].value,
        machine.memory_bytes_per_second * efficiency.bandwidth.value,
        n_kernels * efficiency.launch_seconds.value,
    )


def bounded_seconds(
    flops: int, n_bytes: int, flop_per_second: float, bytes_per_second: float, overhead_seconds: float = 0.0
) -> RooflineTime:
    """The roofline itself, for any two rates: overhead + max(flops / rate, bytes / rate)."""
    compute, memory = flops / flop_per_second, n_bytes / bytes_per_second
    bound: Bound = "compute" if compute >= memory else "memory"
    longest = compute if compute >= memory else memory
    return RooflineTime(
        compute, memory, overhead_seconds + longest, "overhead" if overhead_seconds > longest else bound
    )


def ridge(machine: Machine, format: str) -> float:
    """The intensity in FLOP per byte from which work is bound by compute: P / W.

    >>> from sixnd.machines import resolve
    >>> round(ridge(resolve("h100"), "bf16"))
    295
    """
    return machine.peak_flop_per_second[peak_engine(machine, format)] / machine.memory_bytes_per_second


def attainable_flop_per_second(intensity: float, machine: Machine, format: str) -> float:
    """The rate that work of an intensity (FLOP per byte) reaches at best: min(P, intensity · W).

    >>> from sixnd.machines import resolve
    >>> attainable_flop_per_second(0.25, resolve("h100"), "bf16") / 1e9
    837.5
    """
    peak = machine.peak_flop_per_second[peak_engine(machine, format)]
    return min(peak, intensity * machine.memory_bytes_per_second)
