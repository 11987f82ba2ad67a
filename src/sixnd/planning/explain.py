"""Where does each headline number come from? Its formula, the formula with the numbers filled in, and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sixnd.ledger import CATEGORIES
from sixnd.notation.program import Size, product
from sixnd.planning.answers import Account
from sixnd.units import format_bytes, format_count, format_flop_per_second, format_flops, format_percent, format_seconds

MOST_SHOWN = 4


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
    flops = account.flops
    rows = [_phase(account, name) for name in ("forward", "backward") if getattr(flops, name).matrix]
    rows.append(
        Explained(
            "model FLOPs",
            format_flops(flops.model),
            "forward + backward, matrix, without recompute",
            f"{flops.forward.matrix:,} + {flops.backward.matrix:,} = {flops.model:,}",
            f"what MFU divides (convention exact); {flops.per_token:,} a token of {account.workload.seq} context",
        )
    )
    return rows


def _phase(account: Account, name: str) -> Explained:
    """The operations that make up most of a phase, each with its line's product and the sizes in it."""
    part = getattr(account.flops, name)
    counted = sorted((o for o in account.operations if o.phase == name and o.flops), key=lambda o: -o.flops)
    shown, rest = counted[:MOST_SHOWN], sum(o.flops for o in counted[MOST_SHOWN:])
    formulas = "; ".join(f"{o.path}: {o.formula}" for o in shown)
    filled = "; ".join(
        f"{o.path}: {o.count} x ({fill(o.formula, local_sizes(account, o.path))}) = {o.flops:,}" for o in shown
    )
    whole = part.matrix + part.vector
    return Explained(
        f"{name} FLOPs",
        format_flops(whole),
        formulas,
        f"{filled}; all others {rest:,}; together {whole:,}, of them matrix {part.matrix:,}",
        "2 x every name of each line that sums one; attention dense; per device and step",
    )


def local_sizes(account: Account, path: str) -> dict[str, Size]:
    """The sizes that one device walks over in the block of an operation."""
    part = max((p for p in account.built.parts if path.startswith(p.program.path)), key=lambda p: len(p.program.path))
    sizes = dict(part.sizes)
    for name in ("batch", "slot"):
        if name in sizes:
            sizes[name] /= Fraction(account.built.sharding.mesh.size(tuple(account.built.sharding.mesh.axes)))
    return sizes


def fill(formula: str, sizes: Mapping[str, Size]) -> str:
    """Write sizes for the names of a formula.

    >>> fill("2·batch·seq + 3·seq", {"batch": 4, "seq": 8})
    '2·4·8 + 3·8'
    """
    terms = (term.split("·") for term in formula.split(" + "))
    return " + ".join("·".join(str(sizes.get(name, name)) for name in names) for names in terms)


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
    held = [(name, getattr(memory, f"{name}_bytes")) for name in CATEGORIES]
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
