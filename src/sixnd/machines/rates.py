"""At what rates does one engine of a machine work, at best and as reached?"""

from __future__ import annotations

from dataclasses import dataclass

from sixnd.machines.peaks import peak_engine, vector_peak
from sixnd.machines.record import Machine


@dataclass(frozen=True)
class Rates:
    """What pricing an op needs: peaks, what real kernels reach of them with the words for it, and a kernel's launch."""

    peak_flop_per_second: float
    vector_flop_per_second: float
    bytes_per_second: float
    reached_flop_per_second: float
    reached_bytes_per_second: float
    overhead_seconds: float
    matmul_source: str
    bandwidth_source: str


def engine_rates(machine: Machine, format: str) -> Rates:
    """The rates of the engine that computes a format.

    Raises:
        InputError: the machine has no engine for it.

    >>> from sixnd.machines import resolve
    >>> rates = engine_rates(resolve("h100"), "bfloat16")
    >>> round(rates.reached_flop_per_second / rates.peak_flop_per_second, 2)
    0.8
    """
    engine = peak_engine(machine, format)
    peak, efficiency = machine.peak_flop_per_second[engine], machine.efficiency
    matmul = efficiency.matmul[engine]
    return Rates(
        peak,
        vector_peak(machine).flop_per_second,
        machine.memory_bytes_per_second,
        peak * matmul.value,
        machine.memory_bytes_per_second * efficiency.bandwidth.value,
        efficiency.launch_seconds.value,
        matmul.source,
        efficiency.bandwidth.source,
    )
