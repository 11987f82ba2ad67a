"""An account as a report: the verdict, what was asked, and the tables a person reads before spending a GPU-month."""

from __future__ import annotations

from msgspec.structs import asdict

from sixnd.ledger import CATEGORIES
from sixnd.planning.answers import Account, Operation, Project, Published, Room
from sixnd.planning.estimate import overlapped
from sixnd.planning.experience import ANY
from sixnd.planning.explain import explained
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import (
    format_bytes,
    format_bytes_per_second,
    format_count,
    format_flop_per_second,
    format_flops,
    format_intensity,
    format_percent,
    format_seconds,
)

MOST_OPERATIONS = 12


def account_report(account: Account, *, explain: bool = False, every_operation: bool = False) -> Report:
    """Lay an account out; `explain` adds each headline number's formula, `every_operation` all rows."""
    tables = [_plan_table(account), _flops_table(account), _memory_table(account)]
    if len(account.memory.phase_peaks) > 1:
        tables.append(_moments_table(account))
    tables.append(_time_table(account))
    tables.append(_operations_table(account, every_operation or explain))
    if account.remedies:
        tables.append(_remedies_table(account))
    if explain:
        tables.append(_explain_table(account))
    return Report(
        f"Account of {account.model.name}",
        account.verdict,
        account.memory.fits,
        tuple(tables),
        account.notes,
        account.uncounted,
        account.to_dict(),
    )


def _plan_table(account: Account) -> Table:
    work, params, memory = account.workload, account.model.params, account.memory
    active = "" if params.active == params.total else f", {format_count(params.active)} active"
    rows = [
        ("model", f"{account.model.name} ({account.model.family}), {format_count(params.total)} parameters{active}"),
        ("on", f"{work.devices} x {work.on}, {format_bytes(memory.capacity_bytes)} each{_shard(account)}"),
        ("step", _step(account)),
        ("precision", f"{work.precision}: {work.bytes_per_param} bytes per parameter"),
        ("plan", _choices(account)),
    ]
    if account.project:
        rows.append(("whole run", _project(account.project)))
    if account.room:
        rows.append(("also fits", _room(account, account.room)))
    return Table("Asked", (Column("what"), Column("value")), tuple(rows))


def _choices(account: Account) -> str:
    work, plan = account.workload, account.plan
    kernels = f"attention {work.attention}, kernels {plan.kernels}"
    return f"optimizer {work.optimizer}, {kernels}, recompute {work.recompute}" if work.phase == "train" else kernels


def _project(project: Project) -> str:
    slower = f" ({project.published_days:,.1f} as published runs went)" if project.published_days else ""
    return (
        f"{format_count(project.tokens)} tokens in {project.steps:,} steps: {project.days:,.1f} days{slower}, "
        f"{project.device_hours:,.0f} device-hours, {format_flops(project.flops)} executed, "
        f"{format_flops(project.model_flops)} of them the model's"
    )


def _room(account: Account, room: Room) -> str:
    """The largest micro-batch and the longest sequence, each with the other as asked."""
    batch = f"--batch {room.batch} at this sequence" if room.batch > account.workload.batch else "no larger micro-batch"
    seq = f"--seq {room.seq} at this batch" if room.seq > account.workload.seq else "no longer sequence"
    if room.seq > account.built.model.max_positions:
        seq += f" (its context is {account.built.model.max_positions:,})"
    return f"{batch}; {seq}"


def _shard(account: Account) -> str:
    machine, devices = account.cluster.machine, account.workload.devices
    if devices == 1:
        return ""
    links = [machine.intra_node] if machine.intra_node and machine.devices_per_node > 1 else []
    links += [machine.inter_node] if machine.inter_node and devices > machine.devices_per_node else []
    rates = "; ".join(f"{link.name}: {format_bytes_per_second(link.bytes_per_second)} a device" for link in links)
    return f", {account.workload.shard}" + (f"; {rates}" if rates else "")


def _step(account: Account) -> str:
    work = account.workload
    if work.phase == "decode":
        return f"decode: one token for each of {work.batch} sequences with {work.seq:,} of context"
    times = f" x {work.accumulation} accumulated" if work.accumulation > 1 else ""
    each = f"{work.batch} x {work.seq:,} tokens a device{times}"
    return f"{work.phase}: {each}, {work.tokens_per_step:,} tokens a step in all"


def _flops_table(account: Account) -> Table:
    flops = account.flops
    columns = (
        Column("FLOPs, a device and step"),
        Column("matrix", "right"),
        Column("causal only", "right"),
        Column("vector", "right"),
    )
    rows = []
    for name in ("forward", "backward", "recompute", "optimizer"):
        part = getattr(flops, name)
        if part.matrix or part.vector:
            label = "recompute (scores of flash)" if name == "recompute" and _only_scores(account) else name
            rows.append((label, format_flops(part.matrix), format_flops(part.matrix_causal), format_flops(part.vector)))
    ratio = (
        f"{flops.model / flops.six_n_d:.3f} x {'6ND' if account.workload.phase == 'train' else '2ND'}"
        if flops.six_n_d
        else ""
    )
    rows.append(("model (what MFU divides)", format_flops(flops.model), ratio, ""))
    return Table("FLOPs", columns, tuple(rows))


def _only_scores(account: Account) -> bool:
    """Without a recompute policy, what backward makes again are the scores that flash attention does not store."""
    return account.workload.recompute == "none"


def _memory_table(account: Account) -> Table:
    memory = account.memory
    held = [(name, getattr(memory, f"{name}_bytes")) for name in CATEGORIES]
    shown = [(name, value) for name, value in held if value]
    rows = [
        (name.replace("_", " "), format_bytes(value), format_percent(value / memory.peak_bytes))
        for name, value in shown
    ]
    bars = [value / memory.peak_bytes for _, value in shown]
    rows += [
        ("peak (allocated)", format_bytes(memory.peak_bytes), ""),
        ("reserved by the allocator", format_bytes(memory.reserved_bytes), ""),
        (
            "on the device",
            format_bytes(memory.device_bytes),
            format_percent(memory.device_bytes / memory.capacity_bytes) + " of it",
        ),
    ]
    if memory.kv_cache_reserved_bytes > memory.kv_cache_bytes:
        rows.append(("kv cache if an engine reserves it all", format_bytes(memory.kv_cache_reserved_bytes), ""))
    columns = (Column("memory of a device at the peak"), Column("bytes", "right"), Column("share", "right"))
    return Table(
        "Memory", columns, tuple(rows), tuple(bars) + (0.0,) * (len(rows) - len(bars)), f"peak during {memory.peak_at}"
    )


def _moments_table(account: Account) -> Table:
    """The fullest moment of each phase: memory over time, in as many rows as there are phases."""
    moments = account.memory.phase_peaks
    resident = sum(account.ledger.memory().resident.values())
    rows = [("between steps", "", format_bytes(resident))]
    for moment, n in moments.items():
        phase, _, path = moment.partition(" ")
        rows.append((phase, path, format_bytes(n)))
    most = max(moments.values())
    shares = (resident / most, *(n / most for n in moments.values()))
    columns = (Column("memory over the step"), Column("fullest during"), Column("allocated", "right"))
    return Table("", columns, tuple(rows), shares)


def _time_table(account: Account) -> Table:
    time, bound = account.time, account.time.bound
    shares = ", ".join(
        f"{name} {format_percent(getattr(bound, name))}" for name in ("compute", "memory", "communication", "overhead")
    )
    peak = format_flop_per_second(time.mfu_peak_flop_per_second)
    rows = [
        (
            "ideal (roofline, perfect overlap)",
            format_seconds(time.ideal_seconds),
            f"MFU {format_percent(time.ideal_mfu)}",
        ),
        (
            "estimated",
            format_seconds(time.seconds),
            f"MFU {format_percent(time.mfu)} ({time.mfu_convention}, of {peak} dense)",
        ),
        ("bound by", "", shares),
        ("throughput", f"{time.tokens_per_second:,.0f} tokens/s", f"{time.tokens_per_second_per_device:,.0f} a device"),
    ]
    if time.published:
        rows.insert(2, _published_row(time.published))
    if time.communication_seconds:
        rows.append(
            (
                "communication",
                format_seconds(time.communication_seconds),
                _exposed(time.exposed_communication_seconds),
            )
        )
    return Table("Time of a step", (Column("time"), Column("value", "right"), Column("of it")), tuple(rows))


def _published_row(published: Published) -> tuple[str, str, str]:
    """What published runs say about the estimate."""
    where = "other machines" if published.machine == ANY else f"a {published.machine}"
    took = f"{published.ratio:.2f} x (10-90 %: {published.low:.2f}-{published.high:.2f})"
    mfu = f"MFU {format_percent(published.mfu)}"
    return (
        "as published runs went",
        format_seconds(published.seconds),
        f"{mfu}: {published.runs} dense runs on {where} took {took} their estimate",
    )


def _exposed(seconds: float) -> str:
    return f"{format_seconds(seconds)} not hidden behind computation" if seconds else "hidden behind computation"


def _operations_table(account: Account, every: bool) -> Table:
    ordered = (
        account.operations if every else tuple(sorted(account.operations, key=lambda o: -o.seconds)[:MOST_OPERATIONS])
    )
    columns = (
        Column("operation"),
        Column("phase"),
        Column("count", "right"),
        Column("FLOPs", "right"),
        Column("bytes", "right"),
        Column("intensity", "right"),
        Column("time", "right"),
        Column("bound"),
    )
    total = account.time.seconds or 1.0
    shown, left = sum(map(_in_the_step, ordered)), len(account.operations) - len(ordered)
    more = f"; {left} more in --json and --explain" if left else ""
    return Table(
        "operations",
        columns,
        tuple(map(_operation_row, ordered)),
        tuple(_in_the_step(o) / total for o in ordered),
        f"{format_percent(shown / total)} of the step{more}",
        tuple(map(asdict, ordered)),
    )


def _in_the_step(o: Operation) -> float:
    """Seconds that an operation adds to the step: communication beside computation adds none by itself."""
    return 0.0 if overlapped(o.path) else o.seconds


def _operation_row(o: Operation) -> tuple[str, ...]:
    return (
        o.path,
        o.phase,
        f"{o.count:,}",
        format_flops(o.flops) if o.flops else "-",
        format_bytes(o.bytes),
        format_intensity(o.intensity) if o.flops else "-",
        format_seconds(o.seconds),
        f"{o.bound}, overlapped" if overlapped(o.path) else o.bound,
    )


def _remedies_table(account: Account) -> Table:
    columns = (
        Column("what would make it fit, cheapest first"),
        Column("options"),
        Column("memory", "right"),
        Column("FLOPs", "right"),
        Column("devices", "right"),
    )
    rows = tuple(
        (
            r.change,
            r.options,
            format_bytes(r.device_bytes),
            f"{r.extra_flops:+.1%}" if abs(r.extra_flops) > 5e-4 else "same",
            str(r.devices),
        )
        for r in account.remedies
    )
    return Table("Remedies", columns, rows)


def _explain_table(account: Account) -> Table:
    columns = (Column("number"), Column("value", "right"), Column("formula"), Column("filled in"), Column("source"))
    rows = tuple((e.name, e.value, e.formula, e.filled, e.source) for e in explained(account))
    return Table("Explained", columns, rows)
