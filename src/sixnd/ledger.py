"""What does one step do, and what is alive at each moment of it?

A `Ledger` is a tree: `Op`s in order make a `Block`, and a `Repeat` stands for a body that is done `count` times.
Repeated blocks are stored once, so every question costs by distinct blocks and not by layers. Two folds answer
everything here:

- `totals` adds up costs under any key (path, kind, phase), each op times how often it is done;
- `memory` scans what each op allocates and frees. Within a repeated body the level moves by the same amount each time,
  so its highest point lies in the first repetition or in the last: two looks are enough, however many layers there are.

Counts are exact integers. A multiply is one FLOP and an add is one FLOP.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar, get_args

import msgspec

from sixnd.formats import Format, storage_bytes

Phase = Literal["forward", "backward", "recompute", "optimizer"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Role = Literal[
    "parameter",
    "gradient",
    "optimizer",
    "master",
    "input",
    "activation",
    "statistic",
    "mask",
    "activation_gradient",
    "temporary",
    "communication",
    "kv_cache",
]
Category = Literal[
    "parameters",
    "gradients",
    "optimizer",
    "master",
    "activations",
    "temporaries",
    "communication",
    "kv_cache",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
_CATEGORY_OF: dict[Role, int] = {
    "parameter": 0,
    "gradient": 1,
    "optimizer": 2,
    "master": 3,
    "input": 4,
    "activation": 4,
    "statistic": 4,
    "mask": 4,
    "activation_gradient": 5,
    "temporary": 5,
    "communication": 6,
    "kv_cache": 7,
}
Key = TypeVar("Key", bound=Hashable)


class TensorSpec(msgspec.Struct, frozen=True, dict=True):
    """One tensor as one device holds it: named dims, their local sizes, its format and what it is for."""

    name: str
    dims: tuple[str, ...]
    n_elements: int
    format: Format
    role: Role

    @cached_property
    def n_bytes(self) -> int:
        """Bytes it takes in its format, scales of blocks included."""
        return storage_bytes(self.format, self.n_elements)

    @property
    def category(self) -> Category:
        """The memory category its role is shown under."""
        return CATEGORIES[_CATEGORY_OF[self.role]]


class Cost(msgspec.Struct, frozen=True):
    """What one op costs on one device. Adds and scales; every field is an exact integer.

    `matrix_flops` are those of contractions, with masked attention counted dense (every query x key pair);
    `masked_matrix_flops` count only the pairs that the mask lets through. `vector_flops` are other adds and multiplies.
    Comparisons and transcendental evaluations (exp, tanh, rsqrt) are counts of their own, outside both.
    `wire_bytes` is what this device sends over links.
    """

    matrix_flops: int = 0
    masked_matrix_flops: int = 0
    vector_flops: int = 0
    comparisons: int = 0
    transcendentals: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    wire_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.matrix_flops + other.matrix_flops,
            self.masked_matrix_flops + other.masked_matrix_flops,
            self.vector_flops + other.vector_flops,
            self.comparisons + other.comparisons,
            self.transcendentals + other.transcendentals,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            self.wire_bytes + other.wire_bytes,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(
            self.matrix_flops * times,
            self.masked_matrix_flops * times,
            self.vector_flops * times,
            self.comparisons * times,
            self.transcendentals * times,
            self.read_bytes * times,
            self.written_bytes * times,
            self.wire_bytes * times,
        )

    @property
    def flops(self) -> int:
        """Matrix and vector FLOPs together."""
        return self.matrix_flops + self.vector_flops

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written in the device's own memory."""
        return self.read_bytes + self.written_bytes


class Collective(msgspec.Struct, frozen=True):
    """What an op moves between devices: the collective's name, the mesh axes it runs over and their product."""

    name: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
    axes: tuple[str, ...]
    group_size: int
    n_bytes: int  # the larger of what one device holds before and after


class Op(msgspec.Struct, frozen=True):
    """One thing done: what it reads, what it makes, what of that its backward will read, and what it costs.

    `allocates` and `frees` are what changes in memory: outputs that are views or written in place allocate nothing,
    and a tensor is freed by its last reader. `formula` is the count in the line's own names. `engine` is the format
    that its arithmetic runs in.
    """

    kind: str
    path: str
    phase: Phase
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    saved: tuple[TensorSpec, ...] = ()
    cost: Cost = Cost()
    allocates: tuple[TensorSpec, ...] = ()
    frees: tuple[TensorSpec, ...] = ()
    engine: str = "bfloat16"
    line: str = ""
    formula: str = ""
    collective: Collective | None = None
    skips_masked: bool = False


@dataclass(frozen=True, eq=False)
class Block:
    """Ops done one after another, known by their place in the model ("layers")."""

    path: str
    ops: tuple[Op, ...]

    @cached_property
    def profile(self) -> Profile:
        """How memory moves over this block, measured from the level at its start."""
        return _scan_ops(self)


@dataclass(frozen=True, eq=False)
class Repeat:
    """A body done `count` times."""

    body: tuple[Node, ...]
    count: int

    @cached_property
    def profile(self) -> Profile:
        """How memory moves over all repetitions, from the profile of one."""
        return _repeated(_chained([node.profile for node in self.body]), self.count)


Node = Block | Repeat


Levels = tuple[int, ...]
_ZERO: Levels = (0,) * len(CATEGORIES)


class Moment(msgspec.Struct, frozen=True):
    """What is alive while one op runs."""

    phase: Phase
    path: str
    levels: Levels


class Profile(msgspec.Struct, frozen=True):
    """Memory over a stretch of ops, relative to its start: the net change, the fullest moment (the first, of equals),
    that of each phase, and the highest level of each category.
    """

    net: Levels
    peak: Moment
    peaks: dict[Phase, Moment]
    maxima: Levels


class Memory(msgspec.Struct, frozen=True):
    """What a step holds at its fullest moment. `by_category` sums to `peak_bytes`; `maxima` are each one's own.

    `phase_peaks` are the fullest moments of forward, backward, recompute and optimizer, in that order.
    """

    peak_bytes: int
    peak_at: str
    by_category: dict[Category, int]
    maxima: dict[Category, int]
    resident: dict[Category, int]
    phase_peaks: tuple[tuple[str, int], ...]


class Sample(msgspec.Struct, frozen=True):
    """The bytes alive by category while one op runs, for drawing."""

    path: str
    phase: Phase
    levels: Levels


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everything one device does in one step, and what it holds all the time (`resident`)."""

    body: tuple[Node, ...]
    resident: tuple[TensorSpec, ...] = ()

    @cached_property
    def counted(self) -> tuple[tuple[Op, int], ...]:
        """Each distinct op with how often a step does it, in order of first appearance."""
        counts: dict[int, int] = {}
        blocks: dict[int, Block] = {}
        for block, times in _leaves(self.body, 1):
            counts[id(block)] = counts.get(id(block), 0) + times
            blocks[id(block)] = block
        return tuple((op, counts[key]) for key, block in blocks.items() for op in block.ops)

    def totals(self, by: Callable[[Op], Key]) -> dict[Key, Cost]:
        """Add up costs under a key.

        >>> from sixnd.ledger import Block, Cost, Ledger, Op, Repeat
        >>> layer = Block("layers", (Op("contract", "layers.up", "forward", cost=Cost(matrix_flops=5)),))
        >>> Ledger((Repeat((layer,), 3),)).totals(lambda op: op.phase)["forward"].matrix_flops
        15
        """
        sums: dict[Key, Cost] = {}
        for op, times in self.counted:
            key, cost = by(op), op.cost if times == 1 else op.cost * times
            sums[key] = sums[key] + cost if key in sums else cost
        return sums

    def flops(self, phase: Phase | None = None) -> int:
        """Matrix and vector FLOPs of one phase, or of the whole step."""
        return sum(op.cost.flops * times for op, times in self.counted if phase in (None, op.phase))

    def memory(self) -> Memory:
        """The fullest moment of the step: how many bytes of what, and during which op."""
        base = _held(self.resident)
        profile = _chained([node.profile for node in self.body])
        moments = [profile.peaks[phase] for phase in PHASES if phase in profile.peaks]
        top = profile.peak
        levels = _plus(base, top.levels) if moments else base
        return Memory(
            sum(levels),
            f"{top.phase} {top.path}",
            dict(zip(CATEGORIES, levels, strict=True)),
            dict(zip(CATEGORIES, _plus(base, profile.maxima), strict=True)),
            dict(zip(CATEGORIES, base, strict=True)),
            tuple((f"{m.phase} {m.path}", sum(base) + sum(m.levels)) for m in moments),
        )

    def timeline(self) -> Iterator[Sample]:
        """Walk every op of the step in order, repetitions written out, with what is alive while it runs."""
        levels = _held(self.resident)
        for op in _ops(self.body):
            levels = _plus(levels, _held(op.allocates))
            yield Sample(op.path, op.phase, levels)
            levels = _minus(levels, _held(op.frees))


def _leaves(nodes: tuple[Node, ...], times: int) -> Iterator[tuple[Block, int]]:
    for node in nodes:
        if isinstance(node, Block):
            yield node, times
        else:
            yield from _leaves(node.body, times * node.count)


def _ops(nodes: tuple[Node, ...]) -> Iterator[Op]:
    for node in nodes:
        if isinstance(node, Block):
            yield from node.ops
        else:
            for _ in range(node.count):
                yield from _ops(node.body)


def _held(tensors: tuple[TensorSpec, ...]) -> Levels:
    if not tensors:
        return _ZERO
    levels = [0] * len(CATEGORIES)
    for tensor in tensors:
        levels[_CATEGORY_OF[tensor.role]] += tensor.n_bytes
    return tuple(levels)


def _plus(a: Levels, b: Levels) -> Levels:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _minus(a: Levels, b: Levels) -> Levels:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _highest(a: Levels, b: Levels) -> Levels:
    return tuple(map(max, a, b))


_NOTHING = Moment("forward", "", (-(1 << 200), *_ZERO[1:]))


def _scan_ops(block: Block) -> Profile:
    levels = maxima = _ZERO
    peak, peaks = _NOTHING, dict[Phase, Moment]()
    for op in block.ops:
        if op.allocates:
            levels = _plus(levels, _held(op.allocates))
            maxima = _highest(maxima, levels)
        if op.phase not in peaks or sum(levels) > sum(peaks[op.phase].levels):
            peaks[op.phase] = Moment(op.phase, op.path, levels)
            peak = _fuller(peak, peaks[op.phase])
        if op.frees:
            levels = _minus(levels, _held(op.frees))
    return Profile(levels, peak, peaks, maxima)


def _chained(profiles: list[Profile]) -> Profile:
    net = maxima = _ZERO
    peak, peaks = _NOTHING, dict[Phase, Moment]()
    for profile in profiles:
        peak = _fuller(peak, _moved(profile.peak, net))
        _raise(peaks, profile.peaks, net)
        maxima = _highest(maxima, _plus(net, profile.maxima))
        net = _plus(net, profile.net)
    return Profile(net, peak, peaks, maxima)


def _repeated(one: Profile, count: int) -> Profile:
    before_last = tuple(x * (count - 1) for x in one.net)
    peaks = dict(one.peaks)
    _raise(peaks, one.peaks, before_last)
    peak = _fuller(one.peak, _moved(one.peak, before_last))
    maxima = _highest(one.maxima, _plus(before_last, one.maxima))
    return Profile(tuple(x * count for x in one.net), peak, peaks, maxima)


def _moved(moment: Moment, start: Levels) -> Moment:
    return Moment(moment.phase, moment.path, _plus(start, moment.levels))


def _fuller(one: Moment, later: Moment) -> Moment:
    return later if sum(later.levels) > sum(one.levels) else one


def _raise(peaks: dict[Phase, Moment], others: dict[Phase, Moment], start: Levels) -> None:
    """Take over the moments of a later stretch, which begins at `start`, where they are fuller."""
    for phase, moment in others.items():
        later = _moved(moment, start)
        peaks[phase] = _fuller(peaks[phase], later) if phase in peaks else later
