"""If it does not fit, what is the smallest change that makes it; if it fits, what else would?

Changes are ranked by what they cost: first those on the same devices (choices that cost no FLOPs, a smaller
micro-batch with as much more accumulation, recomputation, then state in fewer bytes), then the fewest more devices;
what shortens the sequences comes last, because it trains on something else. A change that another one is no dearer
than in any respect is left out. Each is worked out with the same ledger as the account itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sixnd.machines import Cluster
from sixnd.models.architecture import Architecture
from sixnd.plan import Plan, Recompute
from sixnd.planning.answers import Remedy, Room
from sixnd.planning.build import build
from sixnd.planning.memory import fits

MOST_DEVICES = 65536
MOST_REMEDIES = 5
Rank = tuple[bool, int, bool, float]  # shorter sequences, devices, other numerics, extra FLOPs
Candidate = tuple[str, str, Plan, Cluster]


def find_remedies(model: Architecture, plan: Plan, cluster: Cluster) -> tuple[Remedy, ...]:
    """The changes that make it fit, cheapest first."""
    found: list[tuple[Rank, Remedy]] = []
    base = _flops(model, plan, cluster)
    for change, options, tried, where in _candidates(model, plan, cluster):
        ok, device = fits(model, tried, where)
        if ok:
            extra = _flops(model, tried, where) / base - 1
            numerics = (tried.optimizer, tried.precision) != (plan.optimizer, plan.precision)
            rank = (tried.seq < plan.seq, where.n_devices, numerics, extra)
            found.append((rank, Remedy(change, options, device, extra, where.n_devices)))
    found.sort(key=lambda pair: pair[0])
    kept = [pair for i, pair in enumerate(found) if not any(_no_dearer(found[j][0], pair[0]) for j in range(i))]
    return tuple(remedy for _, remedy in kept[:MOST_REMEDIES])


def _no_dearer(one: Rank, other: Rank) -> bool:
    """Whether a change costs no more than another in any respect, FLOPs to a thousandth."""
    return one[0] <= other[0] and one[1] <= other[1] and one[2] <= other[2] and one[3] <= other[3] + 1e-3


def find_room(model: Architecture, plan: Plan, cluster: Cluster) -> Room:
    """The largest micro-batch and, apart from that, the longest sequence that fit."""
    batch = largest(lambda n: fits(model, replace(plan, micro_batch=n), cluster)[0], plan.micro_batch, 1 << 20)
    longest = model.max_positions if model.positions == "learned" else 1 << 24
    seq = largest(lambda n: fits(model, replace(plan, seq=n), cluster)[0], plan.seq, max(longest, plan.seq))
    return Room(batch, seq)


def largest(works: Callable[[int], bool], start: int, most: int) -> int:
    """The largest number up to `most` that works, given that `start` does and that less does where more does;
    within 1.6 % above 64.

    >>> largest(lambda n: n <= 1000, 1, 1 << 20)
    1000
    """
    low, high = start, start * 2
    while high <= most and works(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def _candidates(model: Architecture, plan: Plan, cluster: Cluster) -> Iterator[Candidate]:
    if plan.phase != "train":
        yield from _inference_candidates(model, plan, cluster)
        return
    yield from _free(plan, cluster)
    yield from _smaller_batch(model, plan, cluster)
    full = replace(plan, recompute=Recompute("full"))
    if plan.recompute.policy in ("none", "selective"):
        if plan.attention == "math":
            yield (
                "recompute the attention core",
                "--recompute selective",
                replace(plan, recompute=Recompute("selective")),
                cluster,
            )
        yield "recompute every block", "--recompute full", full, cluster
        one = replace(full, micro_batch=1, accumulation=plan.accumulation * plan.micro_batch)
        if plan.micro_batch > 1:
            yield (
                "micro-batch 1 and recompute every block",
                f"--batch 1 --accumulation {one.accumulation} --recompute full",
                one,
                cluster,
            )
    if plan.optimizer in ("adam", "adamw"):
        yield "eight-bit optimizer state", "--optimizer adam8bit", replace(plan, optimizer="adam8bit"), cluster
    yield from _more_devices(model, plan, cluster, "", plan)
    if plan.recompute.policy != "full":
        yield from _more_devices(model, plan, cluster, " with full recompute", full)
    if plan.recompute.policy != "full" and not fits(model, full, cluster)[0]:
        yield from _shorter(model, full, cluster, " with full recompute", " --recompute full")
    yield from _shorter(model, plan, cluster, "", "")


def _free(plan: Plan, cluster: Cluster) -> Iterator[Candidate]:
    """Choices that cost no FLOPs: a fused kernel, the state shared out."""
    if plan.attention == "math":
        yield "use flash attention", "--attention flash", replace(plan, attention="flash"), cluster
    if plan.foreach:
        yield "use the fused optimizer", "without --foreach", replace(plan, foreach=False), cluster
    if cluster.n_devices > 1 and plan.shard != "zero3":
        yield (
            "share parameters, gradients and state out (ZeRO-3)",
            "--shard zero3",
            replace(plan, shard="zero3"),
            cluster,
        )


def _smaller_batch(model: Architecture, plan: Plan, cluster: Cluster) -> Iterator[Candidate]:
    """The largest micro-batch that fits, with accumulation making up for it."""
    if plan.micro_batch == 1 or not fits(model, replace(plan, micro_batch=1), cluster)[0]:
        return
    batch = largest(lambda n: fits(model, replace(plan, micro_batch=n), cluster)[0], 1, plan.micro_batch - 1)
    while plan.micro_batch % batch:
        batch -= 1
    times = plan.accumulation * plan.micro_batch // batch
    smaller = replace(plan, micro_batch=batch, accumulation=times)
    yield f"micro-batch {batch}, accumulated {times} times", f"--batch {batch} --accumulation {times}", smaller, cluster


def _more_devices(model: Architecture, plan: Plan, cluster: Cluster, words: str, changed: Plan) -> Iterator[Candidate]:
    """The fewest devices, doubling, over which ZeRO-3 makes it fit."""
    shared = replace(changed, shard="zero3")
    if changed is not plan and fits(model, changed, cluster)[0]:
        return  # it fits without more devices
    if not fits(model, shared, Cluster(cluster.machine, MOST_DEVICES))[0]:
        return  # what one device has of its own is too much already
    n = cluster.n_devices * 2
    while n <= MOST_DEVICES:
        where = Cluster(cluster.machine, n)
        if fits(model, shared, where)[0]:
            more = " --recompute full" if changed is not plan else ""
            name = f"{n}x{cluster.machine.name}"
            yield f"share out over {n} devices{words}", f"--on {name} --shard zero3{more}", shared, where
            return
        n *= 2


def _shorter(model: Architecture, plan: Plan, cluster: Cluster, words: str, more: str) -> Iterator[Candidate]:
    one = replace(plan, micro_batch=1)
    if plan.seq == 1 or fits(model, one, cluster)[0] or not fits(model, replace(one, seq=1), cluster)[0]:
        return
    seq = largest(lambda n: fits(model, replace(one, seq=n), cluster)[0], 1, plan.seq - 1)
    seq = seq - seq % 128 if seq >= 128 else seq
    yield f"sequences of {seq}{words}", f"--batch 1 --seq {seq}{more}", replace(one, seq=seq), cluster


def _inference_candidates(model: Architecture, plan: Plan, cluster: Cluster) -> Iterator[Candidate]:
    if plan.micro_batch > 1 and fits(model, replace(plan, micro_batch=1), cluster)[0]:
        batch = largest(lambda n: fits(model, replace(plan, micro_batch=n), cluster)[0], 1, plan.micro_batch - 1)
        yield f"serve {batch} sequences at a time", f"--batch {batch}", replace(plan, micro_batch=batch), cluster
    for precision in ("int8", "int4", "int2"):
        lower = replace(plan, precision=precision)
        yield f"weights in {precision}", f"--precision {precision}", lower, cluster
        if fits(model, lower, cluster)[0]:
            break
    if fits(model, replace(plan, seq=1), cluster)[0]:
        seq = largest(lambda n: fits(model, replace(plan, seq=n), cluster)[0], 1, plan.seq - 1)
        yield f"a context of {seq}", f"--seq {seq}", replace(plan, seq=seq), cluster


def _flops(model: Architecture, plan: Plan, cluster: Cluster) -> float:
    """FLOPs for each token of the step without the optimizer's, so that plans of different batch compare."""
    ledger = build(model, plan, cluster.n_devices).ledger
    total = sum(op.cost.flops * count for op, count in ledger.counted if op.phase != "optimizer")
    return total / (plan.micro_batch * plan.seq * plan.accumulation)
