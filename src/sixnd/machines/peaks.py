"""At what rate does a machine multiply matrices in a format?

A number format is computed by the engine for its width: both 8-bit floats and mxfp8 by the fp8 engine, nvfp4 and mxfp4
by fp4, the 6-bit floats at the rate of fp8 (as Blackwell does). A machine without tf32 computes float32 as such; any
other format that it has no engine for is an error, because computing it in some other way is another plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sixnd.errors import InputError
from sixnd.formats import get_format
from sixnd.machines.record import PEAK_KEYS, Machine, Sourced
from sixnd.units import Amount, parse_flop_per_second

_KEY_OF_FORMAT: Mapping[str, str] = {
    "float64": "fp64",
    "float32": "fp32",
    "tf32": "tf32",
    "bfloat16": "bf16",
    "float16": "fp16",
    **dict.fromkeys(("e4m3", "e5m2", "mxfp8", "e3m2", "e2m3", "mxfp6-e3m2", "mxfp6-e2m3"), "fp8"),
    **dict.fromkeys(("e2m1", "mxfp4", "nvfp4"), "fp4"),
    **dict.fromkeys(("int8", "mxint8"), "int8"),
}


@dataclass(frozen=True)
class Peak:
    """A peak rate and the engine that has it: a key of the machine's peaks, or "vector"; `note` says what stood in."""

    engine: str
    flop_per_second: float
    note: str = ""


def peak(machine: Machine, format: str) -> Peak:
    """The machine's peak for matmuls in a format: dense, per device.

    Raises:
        InputError: the machine has no engine for the format.
        UsageError: there is no such format.

    >>> from sixnd.machines import resolve
    >>> peak(resolve("a100"), "bfloat16")
    Peak(engine='bf16', flop_per_second=312000000000000.0, note='')
    >>> peak(resolve("v100"), "tf32")
    Peak(engine='fp32', flop_per_second=15700000000000.0, note='v100-sxm2-32gb has no tf32 engine: fp32 is taken')
    """
    engine = peak_engine(machine, format)
    wanted = peak_key(format)
    note = "" if wanted == engine else f"{machine.name} has no {wanted} engine: {engine} is taken"
    return Peak(engine, machine.peak_flop_per_second[engine], note)


def vector_peak(machine: Machine) -> Peak:
    """The machine's peak for element-wise work, which the matrix engine does not do.

    Where it is not recorded, the slowest matmul peak stands in, and the note says so: too fast, but element-wise work
    is bound by memory by far.

    >>> from sixnd.machines import resolve
    >>> vector_peak(resolve("h100")).flop_per_second
    66900000000000.0
    """
    if machine.vector_flop_per_second is not None:
        return Peak("vector", machine.vector_flop_per_second)
    engine, rate = min(machine.peak_flop_per_second.items(), key=lambda item: item[1])
    return Peak(engine, rate, f"the vector rate of {machine.name} is not recorded: {engine} is taken")


def with_peak(machine: Machine, rate: Amount, format: str = "bf16") -> Machine:
    """The same machine with another peak for one format; the fraction of it that matmuls reach stays as it was.

    Args:
        machine: the machine.
        rate: in FLOP/s, a number or a text such as "2300TFLOP/s".
        format: the format whose engine is meant.

    Raises:
        UnitError: `rate` is no rate above zero.
        InputError: no machine has an engine for the format.

    >>> from sixnd.machines import resolve
    >>> with_peak(resolve("b200"), "2300TFLOP/s").peak_flop_per_second["bf16"]
    2300000000000000.0
    """
    key, matmul = peak_key(format), machine.efficiency.matmul
    given = Sourced(next(iter(matmul.values())).value, "that of another format on the same machine")
    return replace(
        machine,
        peak_flop_per_second={**machine.peak_flop_per_second, key: parse_flop_per_second(rate)},
        efficiency=replace(machine.efficiency, matmul={key: given, **matmul}),
        notes=f"{machine.notes}{'; ' if machine.notes else ''}the {key} peak was given by the user",
    )


def peak_engine(machine: Machine, format: str) -> str:
    """The key of the machine's peaks that computes a format.

    Raises:
        InputError: the machine has no engine for it.
        UsageError: there is no such format.
    """
    peaks = machine.peak_flop_per_second
    if format in peaks:
        return format
    key = peak_key(format)
    if key in peaks:
        return key
    if key == "tf32" and "fp32" in peaks:
        return "fp32"
    raise InputError(f"{machine.name} has no {key} engine: it has {', '.join(peaks)}; choose a format among these")


def peak_key(format: str) -> str:
    """The spelling under which peaks are recorded for a format.

    >>> [peak_key(name) for name in ("float32", "bf16", "mxfp8", "nvfp4")]
    ['fp32', 'bf16', 'fp8', 'fp4']
    """
    if format in PEAK_KEYS:
        return format
    name = get_format(format).name
    if name not in _KEY_OF_FORMAT:
        raise InputError(
            f"format {format!r} is for storage and no machine multiplies in it: expected one of "
            f"{', '.join(_KEY_OF_FORMAT)}"
        )
    return _KEY_OF_FORMAT[name]
