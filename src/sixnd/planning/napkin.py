"""How long, how many devices, how large a model? The questions that fit on a napkin.

    days = 6 N D / (devices x peak x MFU)         any one of the five may be the unknown
    largest N = devices x memory / bytes per parameter

6ND is Kaplan et al. 2020: two FLOPs for each parameter and token forward, four backward; attention is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, isqrt

from sixnd.errors import UsageError
from sixnd.machines import Cluster, peak
from sixnd.models.architecture import Architecture, Experts
from sixnd.plan import Plan
from sixnd.planning.build import build
from sixnd.planning.memory import fits
from sixnd.planning.policies import bytes_per_param_text, get_optimizer, get_precision, stored_per_param

SECONDS_A_DAY = 86400
CHINCHILLA_TOKENS_PER_PARAM = 20  # Hoffmann et al. 2022, table 3, to one digit
MOST_LAYERS = 4096


@dataclass(frozen=True)
class TrainingTime:
    """The answer to `time`: all five quantities, one of them worked out. `unknown` says which."""

    unknown: str
    flops: float
    days: float
    seconds: float
    params: int | None
    tokens: int | None
    devices: int
    mfu: float
    peak_flop_per_second: float

    @property
    def possible(self) -> bool:
        """Whether no device would have to be faster than its peak."""
        return self.mfu <= 1


def training_time(
    cluster: Cluster,
    *,
    params: int | None = None,
    tokens: int | None = None,
    mfu: float | None = None,
    days: float | None = None,
    devices_given: bool = True,
    engine: str = "bfloat16",
) -> TrainingTime:
    """Work out whichever of params, tokens, devices, mfu and days is missing.

    `devices_given` is False where only a machine was named: then the number of devices is the unknown if all else is
    given, and one otherwise. Without params and tokens the answer is the budget of FLOPs. Raises `UsageError` where
    more than one is missing.
    """
    rate = peak(cluster.machine, engine).flop_per_second
    given = {"params": params, "tokens": tokens, "mfu": mfu, "days": days}
    for name, value in given.items():
        if value is not None and not 0 < value < inf:
            raise UsageError(f"--{name} {value}: give a number above zero")
    missing = [name for name, value in given.items() if value is None]
    n = cluster.n_devices
    if not missing and not devices_given:
        assert params
        assert tokens
        assert mfu
        assert days
        flops = 6.0 * params * tokens
        exact = flops / (rate * mfu * days * SECONDS_A_DAY)
        n = max(1, ceil(exact * (1 - 1e-12)))  # the last digit of a float is no device
        return TrainingTime("devices", flops, days, days * SECONDS_A_DAY, params, tokens, n, mfu, rate)
    if missing == ["params", "tokens"]:
        assert mfu
        assert days
        return TrainingTime(
            "flops", rate * n * mfu * days * SECONDS_A_DAY, days, days * SECONDS_A_DAY, None, None, n, mfu, rate
        )
    if len(missing) != 1:
        what = f"leave out exactly one of params, tokens, mfu and days; missing now: {', '.join(missing) or 'none'}"
        raise UsageError(f"{what}. Example: --params 70B --tokens 15T --on 1024xh100 --mfu 0.5")
    return _solve(missing[0], params, tokens, mfu, days, n, rate)


def _solve(
    unknown: str, params: int | None, tokens: int | None, mfu: float | None, days: float | None, n: int, rate: float
) -> TrainingTime:
    budget = rate * n * (mfu or 1.0) * (days or 0.0) * SECONDS_A_DAY
    if unknown == "params":
        assert tokens
        params = int(budget / (6 * tokens))
    elif unknown == "tokens":
        assert params
        tokens = int(budget / (6 * params))
    assert params is not None
    assert tokens is not None
    flops = 6 * params * tokens
    if unknown == "days":
        days = flops / (rate * n * (mfu or 1.0)) / SECONDS_A_DAY
    elif unknown == "mfu":
        mfu = flops / budget
    assert days is not None
    assert mfu is not None
    return TrainingTime(unknown, flops, days, days * SECONDS_A_DAY, params, tokens, n, mfu, rate)


def compute_optimal(flops: float) -> tuple[int, int]:
    """Parameters and tokens that a budget is best spent on, by 20 tokens for each parameter: C = 6 N (20 N).

    >>> compute_optimal(120e18)
    (1000000000, 20000000000)
    """
    params = isqrt(int(flops) // (6 * CHINCHILLA_TOKENS_PER_PARAM))
    return params, CHINCHILLA_TOKENS_PER_PARAM * params


@dataclass(frozen=True)
class Largest:
    """The answer to `largest`: by nameplate, by usable memory, and the model that fits with its activations."""

    bytes_per_param: float
    bytes_per_param_text: str
    capacity_bytes: int
    usable_bytes: int
    params: int
    params_usable: int
    params_with_activations: int
    like: str
    shape: str
    batch: int
    seq: int


def largest_model(cluster: Cluster, like: Architecture, plan: Plan) -> Largest:
    """The most parameters whose training state fits, evenly shared out; and the largest model shaped like `like` that
    fits with ZeRO-3 once activations, buffers, fragments and context are counted.
    """
    precision, optimizer = get_precision(plan.precision), get_optimizer(plan.optimizer)
    per_param = float(sum(stored_per_param(precision, optimizer).values()))
    capacity, usable = (
        cluster.machine.nameplate_bytes * cluster.n_devices,
        cluster.machine.memory_bytes * cluster.n_devices,
    )
    shared = replace(plan, shard="zero3" if cluster.n_devices > 1 else "none")
    found = _largest_scaled(like, shared, cluster)
    n = build(found, shared).n_params if found else 0
    shape = f"{len(found.layers)} layers of d_model {found.d_model}" if found else "none"
    return Largest(
        per_param,
        bytes_per_param_text(precision, optimizer),
        capacity,
        usable,
        int(capacity / per_param),
        int(usable / per_param),
        n,
        like.name,
        shape,
        plan.micro_batch,
        plan.seq,
    )


def _largest_scaled(like: Architecture, plan: Plan, cluster: Cluster) -> Architecture | None:
    low, high = 0, 1
    while high <= MOST_LAYERS and fits(scaled(like, high), plan, cluster)[0]:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(scaled(like, middle), plan, cluster)[0] else (low, middle)
    return scaled(like, low) if low else None


def scaled(like: Architecture, n_layers: int) -> Architecture:
    """A model of another depth in the proportions of `like`: width grows with depth, the head's size stays.

    Kaplan et al. 2020 found loss to depend weakly on shape; keeping the proportions is the plain choice.
    """
    layer = like.layers[-1]
    old, ratio = layer.attention, n_layers / len(like.layers)
    kv, group = old.kv_heads, old.heads // old.kv_heads
    if kv >= group:  # whichever of the two there are more of, so that steps are small
        kv = max(1, round(kv * ratio))
    else:
        group = max(1, round(group * ratio))
    heads = kv * group
    attention = replace(old, heads=heads, kv_heads=kv)
    ff = layer.feed_forward
    grown = max(1, ff.d_ff * heads // old.heads)
    feed_forward = (
        replace(ff, d_ff=grown, d_shared=ff.d_shared * heads // old.heads)
        if isinstance(ff, Experts)
        else replace(ff, d_ff=grown)
    )
    new = replace(layer, attention=attention, feed_forward=feed_forward)
    width = like.d_model * heads // old.heads
    embedding = max(1, like.d_embedding * heads // old.heads) if like.d_embedding else 0
    return replace(like, name=f"{like.name} scaled", d_model=width, d_embedding=embedding, layers=(new,) * n_layers)
