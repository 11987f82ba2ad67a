"""How long does a step take, ideally and by estimate, and what bounds it?

*Ideal* is the lecture's roofline: each op takes max(FLOPs / peak, bytes / bandwidth), nothing waits, and all
communication hides behind computation. *Estimated* prices the same ops with the share of peak and of bandwidth that
has been reached in published measurements, adds a launch overhead for each, and hides only such communication as the
schedule can hide: gathers of parameters and reductions of gradients overlap with the rest of forward and backward; a
collective that a line itself waits for does not.

Where a fused kernel skips masked pairs, it is priced by the pairs that are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from sixnd.ledger import Collective, Ledger, Op
from sixnd.machines import Cluster, Rates, collective_seconds, engine_rates
from sixnd.notation.kinds import Work
from sixnd.planning.answers import Bound, Operation

# An evaluation of exp, tanh or rsqrt counts as this many vector FLOPs when it is priced: GELU's 8 adds and multiplies
# and one tanh then make the lecture's "about 20 operations".
TRANSCENDENTAL_FLOPS = 12
_OVERLAPPED = (".parameters", ".gradients")


def overlapped(path: str) -> bool:
    """Whether an op is a gather of parameters or a reduction of gradients, which run beside computation."""
    return path.endswith(_OVERLAPPED)


class Price(msgspec.Struct, frozen=True):
    """One op's times, all its repetitions together. `seconds` is the estimate without what is hidden."""

    op: Op
    count: int
    ideal_seconds: float
    seconds: float
    overhead_seconds: float
    bound: str

    @property
    def overlaps(self) -> bool:
        """Whether it is communication that runs beside computation."""
        return self.op.collective is not None and overlapped(self.op.path)


class Estimate(msgspec.Struct, frozen=True):
    """The times of a whole step."""

    prices: tuple[Price, ...]
    ideal_seconds: float
    seconds: float
    communication_seconds: float
    exposed_seconds: float
    bound: Bound


def estimate(ledger: Ledger, cluster: Cluster, engine: str) -> Estimate:
    """Price every op of a step on a cluster; `engine` is the format that the policy multiplies in."""
    rates: dict[str, Rates] = {}
    prices = tuple(price(op, count, cluster, engine, rates) for op, count in ledger.counted)
    communication = sum(p.seconds for p in prices if p.op.collective)
    hidden = sum(p.seconds for p in prices if p.overlaps)
    work = sum(p.seconds for p in prices if not p.op.collective)
    cover = sum(p.seconds for p in prices if not p.op.collective and p.op.phase != "optimizer")
    exposed = communication - hidden + max(0.0, hidden - cover)
    ideal_work = sum(p.ideal_seconds for p in prices if not p.op.collective)
    ideal_communication = sum(p.ideal_seconds for p in prices if p.op.collective)
    seconds = work + exposed
    return Estimate(
        prices,
        max(ideal_work, ideal_communication),
        seconds,
        communication,
        exposed,
        _bound(prices, exposed, seconds),
    )


def price(op: Op, count: int, cluster: Cluster, engine: str, known: dict[str, Rates]) -> Price:
    """Price one op done `count` times; `known` are the rates looked up so far, by engine.

    Work without a contraction runs on no matrix engine: whichever the policy has, only its vector rate is used.
    """
    if op.collective is not None:
        each = _exchange_seconds(op.collective, cluster)
        return Price(op, count, each * count, each * count, 0.0, "communication")
    cost = op.cost
    named = op.engine if cost.matrix_flops else engine
    if named not in known:
        known[named] = engine_rates(cluster.machine, named)
    rates = known[named]
    matrix = cost.masked_matrix_flops if op.skips_masked else cost.matrix_flops
    vector = cost.vector_flops + cost.comparisons + TRANSCENDENTAL_FLOPS * cost.transcendentals
    if op.skips_masked and cost.matrix_flops:
        vector = vector * cost.masked_matrix_flops // cost.matrix_flops
    compute = matrix / rates.peak_flop_per_second + vector / rates.vector_flop_per_second
    memory = cost.moved_bytes / rates.bytes_per_second
    real_compute = matrix / rates.reached_flop_per_second + vector / rates.vector_flop_per_second
    real_memory = cost.moved_bytes / rates.reached_bytes_per_second
    launches = 0.0 if not (matrix or vector or cost.moved_bytes) else rates.overhead_seconds
    bound = "compute" if real_compute >= real_memory else "memory"
    if launches > max(real_compute, real_memory):
        bound = "overhead"
    each = launches + max(real_compute, real_memory)
    return Price(op, count, max(compute, memory) * count, each * count, launches * count, bound)


def _exchange_seconds(move: Collective, cluster: Cluster) -> float:
    """The time of a collective; none where the link is not recorded, and `links_recorded` tells who prints it."""
    if not links_recorded(cluster, move.group_size):
        return 0.0
    return collective_seconds(move.name, move.n_bytes, move.group_size, cluster)


def links_recorded(cluster: Cluster, group_size: int) -> bool:
    """Whether the machine's entry knows the links that a group talks over."""
    machine = cluster.machine
    if group_size == 1:
        return True
    inside = machine.devices_per_node == 1 or machine.intra_node is not None
    return inside and (group_size <= machine.devices_per_node or machine.inter_node is not None)


def work_flops(work: Work) -> int:
    """A kind's work for one element as vector FLOPs, as it is priced.

    >>> from sixnd.notation.kinds import GELU
    >>> work_flops(GELU.forward)
    20
    """
    return work.vector + work.comparisons + TRANSCENDENTAL_FLOPS * work.transcendentals


def _bound(prices: Iterable[Price], exposed: float, seconds: float) -> Bound:
    if seconds <= 0:
        return Bound(0.0, 0.0, 0.0, 1.0)
    shares: dict[str, float] = defaultdict(float)
    for p in prices:
        if p.op.collective is None:
            shares["overhead"] += p.overhead_seconds
            shares["memory" if p.bound == "memory" else "compute"] += p.seconds - p.overhead_seconds
    return Bound(
        shares["compute"] / seconds, shares["memory"] / seconds, exposed / seconds, shares["overhead"] / seconds
    )


def operations(prices: Iterable[Price]) -> tuple[Operation, ...]:
    """One row for each operation of the model: the ops of one path, kind and phase together, totals over the count."""
    groups: dict[tuple[str, str, str], list[Price]] = {}
    for p in prices:
        groups.setdefault((p.op.path, p.op.kind, p.op.phase), []).append(p)
    return tuple(_operation(path, kind, phase, group) for (path, kind, phase), group in groups.items())


def _operation(path: str, kind: str, phase: str, group: list[Price]) -> Operation:
    flops = sum(p.op.cost.flops * p.count for p in group)
    moved = sum((p.op.cost.moved_bytes or p.op.cost.wire_bytes) * p.count for p in group)
    longest = max(group, key=lambda p: p.seconds)
    return Operation(
        path,
        kind,
        phase,
        max(p.count for p in group),
        flops,
        moved,
        flops / moved if moved else 0.0,
        sum(p.seconds for p in group),
        sum(p.ideal_seconds for p in group),
        longest.bound,
        longest.op.line,
        " + ".join(p.op.formula for p in group if p.op.formula),
    )
