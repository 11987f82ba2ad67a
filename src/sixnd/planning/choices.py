"""From the words of a command to a `Plan`, or one clear sentence about what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import cast, get_args

import msgspec

from sixnd.errors import InputError, UsageError, near_miss
from sixnd.machines import Machine, peak
from sixnd.models.architecture import Architecture
from sixnd.plan import AttentionKernel, Kernels, Mesh, Plan, Recompute, RecomputePolicy, Shard, WorkPhase
from sixnd.planning.build import DATA_AXIS
from sixnd.planning.policies import get_optimizer, get_precision, precision_names

DEFAULT_CONTEXT = 8192
LONGEST = 10**9
LARGEST_BATCH = 10**9
MOST_TOKENS = 10**18
MOST_ROUNDING = 0.1


class Choices(msgspec.Struct, frozen=True):
    """A plan, and what had to be assumed to make it."""

    plan: Plan
    notes: tuple[str, ...]


def read_choices(
    model: Architecture,
    n_devices: int,
    *,
    batch: int,
    seq: int | None,
    phase: str,
    precision: str,
    optimizer: str,
    recompute: str,
    attention: str,
    accumulation: int,
    shard: str | None,
    mesh: str | Mapping[str, int] | None,
    foreach: bool,
    kernels: str = "fused",
    global_batch: int | None,
) -> Choices:
    """Check every choice and put them together; raises `UsageError`."""
    notes: list[str] = []
    work = cast(WorkPhase, one_of("--phase", phase, get_args(WorkPhase)))
    kernel = cast(AttentionKernel, one_of("--attention", attention, get_args(AttentionKernel)))
    within("--batch", batch, LARGEST_BATCH)
    within("--accumulation", accumulation, LARGEST_BATCH)
    fusion = cast(Kernels, one_of("--kernels", kernels, get_args(Kernels)))
    context = _context(model, seq, notes)
    _check_policy(work, precision)
    get_optimizer(optimizer)
    check_mesh(mesh, n_devices)
    sharding = _shard(shard, n_devices, work, notes)
    if global_batch is not None:
        within("--global-batch", global_batch, MOST_TOKENS)
        if accumulation != 1:
            raise UsageError("--global-batch sets the accumulation: give one of the two")
        accumulation = _accumulation(global_batch, batch * context * n_devices, notes)
    if work != "train" and accumulation != 1:
        raise UsageError("--accumulation is for training: prefill and decode have no optimizer step")
    redo = read_recompute(recompute, len(model.layers))
    if work != "train" and redo.policy != "none":
        raise UsageError("--recompute is for training: prefill and decode keep nothing for a backward")
    plan = Plan(
        batch,
        context,
        work,
        accumulation,
        precision.lower(),
        optimizer.lower(),
        redo,
        kernel,
        sharding,
        foreach,
        fusion,
        Mesh({DATA_AXIS: n_devices}),
    )
    return Choices(plan, tuple(notes))


def one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return the choice; raises `UsageError` that lists the allowed ones."""
    if str(value).lower() not in allowed:
        raise UsageError(f"{option} {value!r} is none of {', '.join(allowed)}{near_miss(str(value), allowed)}")
    return value.lower()


def within(option: str, value: int, most: int) -> int:
    """Return a size from one to `most`; raises `UsageError` otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError(f"{option} {value!r}: give a whole number from 1 to {most}")
    return value


def _context(model: Architecture, seq: int | None, notes: list[str]) -> int:
    if seq is None:
        context = min(model.max_positions, DEFAULT_CONTEXT)
        notes.append(f"--seq was not given: {context}, the model's context up to {DEFAULT_CONTEXT}")
        return context
    within("--seq", seq, LONGEST)
    if seq > model.max_positions:
        if model.positions == "learned":
            raise UsageError(
                f"--seq {seq}: {model.name} has a learned table of {model.max_positions} positions and cannot go beyond"
            )
        notes.append(f"--seq {seq} is beyond the {model.max_positions} positions that {model.name} was made for")
    return seq


def _check_policy(phase: WorkPhase, precision: str) -> None:
    if phase == "train" and get_precision(precision).weight_only:
        raise UsageError(
            f"--precision {precision} stores weights alone, for inference; training needs gradients and a finer copy: "
            "see bf16-master or fp8-training"
        )


def check_engine(machine: Machine, plan: Plan) -> None:
    """Check that the machine multiplies in the policy's format; raises `UsageError` naming policies it could run."""
    engine = get_precision(plan.precision).engine
    if runs(machine, engine):
        return
    trains = plan.phase == "train"
    policies = [get_precision(name) for name in precision_names()]
    able = [p.name for p in policies if runs(machine, p.engine) and not (trains and p.weight_only)]
    raise UsageError(
        f"--precision {plan.precision} multiplies in {engine}, which {machine.name} has no engine for; it could run "
        f"{', '.join(able) or 'none of the policies'}"
    )


def runs(machine: Machine, engine: str) -> bool:
    """Whether a machine has an engine for a format."""
    try:
        return not peak(machine, engine).note  # another engine in its place is not the same policy
    except InputError:
        return False


def check_mesh(mesh: str | Mapping[str, int] | None, n_devices: int) -> None:
    """Check a mesh such as "dp=8"; so far its one axis is data parallelism. Raises `UsageError`."""
    if mesh is None:
        return
    try:
        pairs = (
            dict(mesh)
            if isinstance(mesh, Mapping)
            else {name.strip(): int(size) for name, size in (part.split("=") for part in mesh.split(","))}
        )
    except ValueError:
        raise UsageError(f"--mesh {mesh!r} is not understood: write axes and sizes, as in dp=8") from None
    if not isinstance(mesh, Mapping) and len(pairs) < len(mesh.split(",")):
        raise UsageError(f"--mesh {mesh!r} names an axis twice")
    others = [name for name, size in pairs.items() if name != DATA_AXIS and size != 1]
    if others:
        raise UsageError(
            f"--mesh {mesh}: only the data axis ({DATA_AXIS}) is accounted for so far, not {', '.join(others)}"
        )
    if pairs.get(DATA_AXIS, 1) != n_devices:
        raise UsageError(f"--mesh {mesh} has {pairs.get(DATA_AXIS, 1)} devices, and --on names {n_devices}")


def _shard(shard: str | None, n_devices: int, phase: WorkPhase, notes: list[str]) -> Shard:
    if phase != "train":
        if shard not in (None, "none"):
            raise UsageError("--shard is for training: in prefill and decode every device serves its own copy")
        if n_devices > 1:
            notes.append(f"each of the {n_devices} devices serves its own copy of the model")
        return "none"
    if shard is None:
        return "zero3" if n_devices > 1 else "none"
    shard = "zero3" if str(shard).lower() == "fsdp" else shard
    chosen = cast(Shard, one_of("--shard", shard, get_args(Shard)))
    if n_devices == 1 and chosen != "none":
        notes.append(f"--shard {chosen} has nothing to share on one device")
    return chosen


def _accumulation(global_batch: int, tokens: int, notes: list[str]) -> int:
    """How many micro-batches make a global batch of so many tokens, rounded to the nearest and said."""
    if global_batch < tokens:
        raise UsageError(f"--global-batch {global_batch} tokens is less than one micro-batch on every device: {tokens}")
    times = max(1, round(global_batch / tokens))
    if abs(times * tokens - global_batch) > MOST_ROUNDING * global_batch:
        raise UsageError(
            f"--global-batch {global_batch} is no multiple of the {tokens} tokens of one micro-batch on every device; "
            f"near it are {global_batch // tokens * tokens} and {(global_batch // tokens + 1) * tokens}"
        )
    if times * tokens != global_batch:
        notes.append(f"--global-batch {global_batch} is not a multiple of {tokens} tokens: taken as {times * tokens}")
    return times


def read_recompute(text: str, n_layers: int) -> Recompute:
    """Read none, selective, full, sqrt or every:K.

    >>> read_recompute("sqrt", 126)
    Recompute(policy='every', every=11)
    """
    word = text.lower()
    if word == "sqrt":
        return Recompute("every", max(1, isqrt(n_layers)))
    if word.startswith("every:") and word[6:].isdecimal() and word.isascii() and 1 <= int(word[6:]) <= 10**6:
        return Recompute("every", int(word[6:]))
    allowed = ("none", "selective", "full", "sqrt", "every:K")
    if word not in allowed[:3]:
        raise UsageError(f"--recompute {text!r} is none of {', '.join(allowed)}{near_miss(word, allowed)}")
    return Recompute(cast(RecomputePolicy, word))
