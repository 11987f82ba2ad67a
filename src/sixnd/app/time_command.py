"""`sixnd time`: how long, or whichever of the five quantities is left out."""

from __future__ import annotations

from sixnd.app.output import TABLES, Output, emit
from sixnd.units import parse_count, parse_devices, parse_flop_per_second, parse_fraction, parse_seconds


def time(
    *,
    params: str | None = None,
    tokens: str | None = None,
    on: str = "h100",
    mfu: str | None = None,
    days: str | None = None,
    precision: str = "bf16",
    peak: str | None = None,
    output: Output = TABLES,
) -> int:
    """How long a training run takes. Leave out any one of params, tokens, mfu and days, and it is worked out.

    Parameters
    ----------
    params
        Parameters: 70B.
    tokens
        Training tokens: 15T.
    on
        The devices: 1024xh100. With all else given, a bare name (h100) asks how many.
    mfu
        Share of the peak that is reached: 0.5 or 50%.
    days
        Days that the run takes.
    precision
        The format multiplied in: bf16, fp16, fp8, fp32.
    peak
        Another peak for the device, such as 800TFLOP/s.
    """
    from sixnd.machines import Cluster, parse_cluster, with_peak
    from sixnd.planning.napkin import training_time
    from sixnd.reporting.napkin_report import time_report

    cluster = parse_cluster(on)
    if peak is not None:
        cluster = Cluster(with_peak(cluster.machine, parse_flop_per_second(peak), precision), cluster.n_devices)
    answer = training_time(
        cluster,
        params=None if params is None else parse_count(params, minimum=1, what="--params"),
        tokens=None if tokens is None else parse_count(tokens, minimum=1, what="--tokens"),
        mfu=None if mfu is None else parse_fraction(mfu, "--mfu"),
        days=None
        if days is None
        else parse_seconds(f"{days}d" if days.replace(".", "", 1).isdigit() else days) / 86400,
        devices_given=on.strip().lower() != parse_devices(on).machine,
        engine=precision,
    )
    emit(time_report(answer, cluster), output)
    return 0 if answer.possible else 1
