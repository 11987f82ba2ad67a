"""If it does not fit, what is the smallest change that makes it; if it fits, what else would?

Changes are ranked by what they cost: first those on the same devices (choices that cost no FLOPs, a smaller
micro-batch with as much more accumulation, recomputation, then state in fewer bytes), then the fewest more devices;
shorter sequences, which train on something else, and many times the
devices come last. A change that another one is no dearer
than in any respect is left out. Each is worked out with the same ledger as the account itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from sixnd.machines import Cluster
from sixnd.models.architecture import Architecture
from sixnd.plan import Plan, Recompute
from sixnd.planning.answers import Remedy, Room
from sixnd.planning.build import build
from sixnd.planning.memory import fits

MOST_DEVICES = 65536
MOST_REMEDIES = 5
MANY_TIMES = 8
Rank = tuple[bool, int, bool, float]  # drastic (shorter, many more devices), devices, other numerics, extra FLOPs
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
            drastic = tried.seq < plan.seq or where.n_devices > MANY_TIMES * cluster.n_devices
            rank = (drastic, where.n_devices, numerics, extra)
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
    yield from _same_devices(model, plan, cluster)
    full = replace(plan, recompute=Recompute("full"))
    yield from _more_devices(model, plan, cluster, "", plan)
    if plan.recompute.policy != "full":
        yield from _more_devices(model, plan, cluster, " with full recompute", full)
    yield from _shorter(model, plan, cluster, "", "")


Choice = tuple[str, str, dict[str, object]]  # in words, as options, as fields of the plan


def _same_devices(model: Architecture, plan: Plan, cluster: Cluster) -> Iterator[Candidate]:
    """Every combination of choices on the same devices, those with fewest changes first.

    The strongest combination is tried before all others: where it does not fit, none does.
    """
    groups = [_kernel_choices(plan), _shard_choices(plan, cluster), _recompute_choices(plan), _state_choices(plan)]
    strongest = _chosen(plan, [group[-1] for group in groups if group])
    if not fits(model, replace(strongest, micro_batch=1), cluster)[0]:
        return
    smaller = plan.micro_batch == 1  # whether a smaller micro-batch has been found, or there is none
    for combination in sorted(product(*([None, *group] for group in groups)), key=lambda c: len(c) - c.count(None)):
        choices = [choice for choice in combination if choice is not None]
        tried = _chosen(plan, choices)
        words, options = [choice[0] for choice in choices], [choice[1] for choice in choices]
        if choices:
            yield " and ".join(words), " ".join(options), tried, cluster
        if not smaller:
            found = list(_smaller_batch(model, tried, cluster, words, options))
            smaller = bool(found)
            yield from found


def _chosen(plan: Plan, choices: list[Choice]) -> Plan:
    for _, _, fields in choices:
        plan = replace(plan, **fields)  # type: ignore[arg-type]
    return plan


def _kernel_choices(plan: Plan) -> list[Choice]:
    """A fused attention kernel, a fused optimizer: these cost nothing."""
    found: list[Choice] = []
    if plan.attention == "math":
        found.append(("flash attention", "--attention flash", {"attention": "flash"}))
    if plan.foreach:
        found.append(("the fused optimizer", "without --foreach", {"foreach": False}))
    return found


def _shard_choices(plan: Plan, cluster: Cluster) -> list[Choice]:
    """More of the state shared out than now, the least first."""
    levels = ["none", "ddp", "zero1", "zero2", "zero3"]
    if cluster.n_devices == 1:
        return []
    stronger = [level for level in levels[2:] if levels.index(level) > levels.index(plan.shard)]
    return [
        (f"share out by {level.replace('zero', 'ZeRO-')}", f"--shard {level}", {"shard": level}) for level in stronger
    ]


def _recompute_choices(plan: Plan) -> list[Choice]:
    found: list[Choice] = []
    if plan.recompute.policy == "none" and plan.attention == "math":
        only = Recompute("selective")
        found.append(("recompute the attention core", "--recompute selective", {"recompute": only}))
    if plan.recompute.policy in ("none", "selective"):
        found.append(("recompute every block", "--recompute full", {"recompute": Recompute("full")}))
    return found


def _state_choices(plan: Plan) -> list[Choice]:
    if plan.optimizer not in ("adam", "adamw"):
        return []
    return [("eight-bit optimizer state", "--optimizer adam8bit", {"optimizer": "adam8bit"})]


def _smaller_batch(
    model: Architecture, plan: Plan, cluster: Cluster, words: list[str], options: list[str]
) -> Iterator[Candidate]:
    """The largest micro-batch that fits, with accumulation making up for it."""
    if fits(model, plan, cluster)[0] or not fits(model, replace(plan, micro_batch=1), cluster)[0]:
        return
    batch = largest(lambda n: fits(model, replace(plan, micro_batch=n), cluster)[0], 1, plan.micro_batch - 1)
    while plan.micro_batch % batch:
        batch -= 1
    times = plan.accumulation * plan.micro_batch // batch
    change = " and ".join([*words, f"micro-batch {batch}, accumulated {times} times"])
    option = " ".join([*options, f"--batch {batch} --accumulation {times}"])
    yield change, option, replace(plan, micro_batch=batch, accumulation=times), cluster


def _more_devices(model: Architecture, plan: Plan, cluster: Cluster, words: str, changed: Plan) -> Iterator[Candidate]:
    """The fewest devices, doubling, over which ZeRO-3 makes it fit."""
    shared = replace(changed, shard="zero3")
    if fits(model, replace(shared, micro_batch=1) if cluster.n_devices > 1 else changed, cluster)[0]:
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
