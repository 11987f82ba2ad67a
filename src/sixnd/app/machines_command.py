"""`sixnd machines`: the catalogue, one machine's data sheet, and your own entries."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from sixnd.app.output import TABLES, Output, emit


def machines(
    name: str | None = None,
    new: str | None = None,
    /,
    *,
    peak: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")] = (),
    memory: str | None = None,
    bandwidth: str | None = None,
    source: str = "given by the user",
    output: Output = TABLES,
) -> int:
    """The catalogue of accelerators; with a name, that machine's data sheet; `machines add NAME` records your own.

    Parameters
    ----------
    name
        A machine (h100), or `add`.
    new
        After `add`: what to call the machine.
    peak
        After `add`: dense peaks by format, such as bf16=2300TFLOP/s fp8=4600TFLOP/s.
    memory
        After `add`: its memory, such as 288GB.
    bandwidth
        After `add`: the bandwidth of its memory, such as 8TB/s.
    source
        After `add`: where the figures come from.
    """
    from sixnd.errors import UsageError
    from sixnd.machines import add_machine, all_machines, own_path, resolve
    from sixnd.reporting.machine_report import catalogue_report, machine_report

    if name == "add":
        if new is None or not peak or memory is None or bandwidth is None:
            raise UsageError(
                "to add a machine write: sixnd machines add NAME "
                "--peak bf16=2300TFLOP/s --memory 288GB --bandwidth 8TB/s"
            )
        entry = {"peak_flop_per_second": _peaks(peak), "memory_bytes": memory, "memory_bytes_per_second": bandwidth}
        emit(machine_report(add_machine(new, {**entry, "source": source})), output)
        print(f"recorded in {own_path()}", file=sys.stderr)
        return 0
    if new is not None or peak or memory or bandwidth:
        raise UsageError("--peak, --memory and --bandwidth go with `sixnd machines add NAME`")
    emit(catalogue_report(all_machines()) if name is None else machine_report(resolve(name)), output)
    return 0


def _peaks(pairs: tuple[str, ...]) -> dict[str, str]:
    from sixnd.errors import UsageError

    peaks = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    if len(peaks) != len(pairs):
        raise UsageError(f"--peak {' '.join(pairs)}: write FORMAT=RATE, as in bf16=2300TFLOP/s")
    return peaks
