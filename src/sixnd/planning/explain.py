"""Where does each headline number come from? Its formula, the formula with the numbers filled in, and its source."""

from __future__ import annotations

from dataclasses import dataclass

from sixnd.notation.program import product
from sixnd.planning.answers import Account
from sixnd.units import format_bytes, format_count, format_flop_per_second, format_flops, format_percent, format_seconds


@dataclass(frozen=True)
class Explained:
    """One headline number: its formula, the formula with the numbers filled in, and where the rule comes from."""

    name: str
    value: str
    formula: str
    filled: str
    source: str


def explained(account: Account) -> tuple[Explained, ...]:
    """Explain parameters, FLOPs, memory, time and MFU."""
    rows = [_params(account), *_flops(account), _six_n_d(account), *_memory(account), *_time(account)]
    return tuple(rows)


def _params(account: Account) -> Explained:
    sums = []
    for part in account.built.parts:
        one = sum(product(p.dims, part.sizes) for p in part.program.parameters)
        times = f"{part.count} x " if part.count > 1 else ""
        sums.append(f"{part.program.path}: {times}{one:,}")
    total = account.model.params.total
    return Explained(
        "parameters",
        format_count(total),
        "sum over tensors of the product of their dims",
        f"{' + '.join(sums)} = {total:,}",
        "the model's lines; a tied tensor once",
    )


def _flops(account: Account) -> list[Explained]:
    flops, work = account.flops, account.workload
    rows = []
    for name in ("forward", "backward"):
        part = getattr(flops, name)
        if not part.matrix:
            continue
        biggest = sorted((o for o in account.operations if o.phase == name and o.flops), key=lambda o: -o.flops)[:4]
        texts = " + ".join(f"{o.count} x {o.path.split('.', 1)[-1]} {o.formula}" for o in biggest)
        rows.append(
            Explained(
                f"{name} matrix FLOPs",
                format_flops(part.matrix),
                f"{texts} + ...",
                f"{part.matrix:,}",
                "2 x every name of each line; attention dense; per device and step",
            )
        )
    rows.append(
        Explained(
            "model FLOPs",
            format_flops(flops.model),
            "forward + backward, matrix, without recompute",
            f"{flops.forward.matrix:,} + {flops.backward.matrix:,} = {flops.model:,}",
            f"what MFU divides (convention exact); {flops.per_token:,} a token of {work.seq} context",
        )
    )
    return rows


def _six_n_d(account: Account) -> Explained:
    flops, params = account.flops, account.model.params
    passes = 6 if account.workload.phase == "train" else 2
    tokens = account.workload.tokens_per_step // account.workload.devices
    ratio = flops.model / flops.six_n_d if flops.six_n_d else 0.0
    return Explained(
        f"{passes}ND",
        format_flops(flops.six_n_d),
        f"{passes} x (active parameters, an untied input embedding left out) x tokens",
        f"{passes} x {flops.six_n_d // (passes * tokens):,} x {tokens:,} = {flops.six_n_d:,}",
        f"Kaplan et al. 2020; the exact count is {ratio:.3f} of it (attention); {params.active:,} parameters active",
    )


def _memory(account: Account) -> list[Explained]:
    memory, work = account.memory, account.workload
    parts = (
        "parameters",
        "gradients",
        "optimizer",
        "master",
        "activations",
        "temporaries",
        "communication",
        "kv_cache",
    )
    held = [(name, getattr(memory, f"{name}_bytes")) for name in parts]
    filled = " + ".join(f"{name} {format_bytes(value)}" for name, value in held if value)
    return [
        Explained(
            "peak memory",
            format_bytes(memory.peak_bytes),
            "what is alive at the fullest moment, by the ledger's timeline",
            f"{filled}, during {memory.peak_at}",
            f"bytes per parameter, unsharded: {work.bytes_per_param}",
        ),
        Explained(
            "device memory",
            format_bytes(memory.device_bytes),
            "peak + fragments + context",
            " -> ".join(map(format_bytes, (memory.peak_bytes, memory.reserved_bytes, memory.device_bytes))),
            "assumptions in the notes; compared with what the driver reports",
        ),
    ]


def _time(account: Account) -> list[Explained]:
    time, flops = account.time, account.flops
    model = flops.conventions[time.mfu_convention]
    tokens = account.workload.tokens_per_step
    return [
        Explained(
            "ideal time",
            format_seconds(time.ideal_seconds),
            "sum over operations of max(FLOPs / peak, bytes / bandwidth)",
            f"{len(account.operations)} distinct operations",
            "Williams et al. 2009, the roofline; perfect overlap",
        ),
        Explained(
            "estimated time",
            format_seconds(time.seconds),
            "sum over operations of launch + max(FLOPs / reached peak, bytes / reached bandwidth), and what "
            "communication is exposed",
            f"of it exposed communication {format_seconds(time.exposed_communication_seconds)}",
            "fractions reached: see the notes",
        ),
        Explained(
            "MFU",
            format_percent(time.mfu),
            f"model FLOPs ({time.mfu_convention}) / (estimated time x peak)",
            f"{model:,} / ({time.seconds:.4g} s x {format_flop_per_second(time.mfu_peak_flop_per_second)})",
            "PaLM 2022, appendix B; peak is dense",
        ),
        Explained(
            "tokens per second",
            f"{time.tokens_per_second:,.0f}",
            "tokens per step / estimated time",
            f"{tokens:,} / {time.seconds:.4g} s",
            "over all devices",
        ),
    ]
