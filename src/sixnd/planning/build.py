"""From an architecture and a plan to the ledger of one step on one device.

    Architecture + Plan -> programs (models) -> Derived, placed on the mesh -> a chain -> forward, backward, optimizer

The chain is derived once for each role a micro-batch plays: the first makes the gradients, the ones between add to
them, and the last also reduces them over devices. Without accumulation one micro-batch plays all roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgspec

from sixnd.formats import Format
from sixnd.ledger import Block, Ledger, Node, Repeat, TensorSpec
from sixnd.models.architecture import Architecture, Experts, Layer
from sixnd.models.blocks import (
    Workload,
    base_sizes,
    embedding_program,
    head_program,
    layer_program,
    layer_sizes,
)
from sixnd.notation.derived import Derived
from sixnd.notation.program import Program, Sizes, Tensor, product
from sixnd.notation.shard import Sharding
from sixnd.notation.step import Stage, backward_nodes, forward_nodes
from sixnd.plan import Mesh, Plan
from sixnd.planning.policies import Optimizer, Precision, get_optimizer, get_precision, state_format
from sixnd.planning.update import Held, optimizer_block

DATA_AXIS = "dp"


class Part(msgspec.Struct, frozen=True, eq=False):
    """One distinct block of the model: its program, its sizes, and how often the model has it."""

    program: Program
    sizes: Sizes
    count: int


@dataclass(frozen=True, eq=False)
class Built:
    """The parts of a model under a plan, and the ledger of its step."""

    model: Architecture
    plan: Plan
    precision: Precision
    optimizer: Optimizer
    parts: tuple[Part, ...]
    order: tuple[int, ...]  # which part each block of the chain is, in the order a token passes them
    sharding: Sharding

    @cached_property
    def parameters(self) -> tuple[tuple[Tensor, int], ...]:
        """Every parameter of the whole model with its number of elements, layers written out as a count each."""
        return tuple(
            (p, product(p.dims, part.sizes) * part.count) for part in self.parts for p in part.program.parameters
        )

    @cached_property
    def n_params(self) -> int:
        """All parameters, a tied one once."""
        return sum(n for _, n in self.parameters)

    @cached_property
    def resident(self) -> tuple[TensorSpec, ...]:
        """What one device holds all the time."""
        return _resident(self)

    @cached_property
    def ledger(self) -> Ledger:
        """What one device does in one step and holds meanwhile."""
        if self.plan.phase == "train":
            body = _micro_steps(self)
            return Ledger((*body, _update(self, body)), self.resident)
        chain = _chain(self, accumulates=False, reduces=False)
        return Ledger(forward_nodes(chain, self.plan.recompute), self.resident)


@lru_cache(maxsize=64)
def build(model: Architecture, plan: Plan, n_devices: int = 1) -> Built:
    """Write the model's lines for a plan and place them on `n_devices`; serving, each device has its own copy."""
    n_devices = n_devices if plan.phase == "train" else 1
    precision, optimizer = get_precision(plan.precision), get_optimizer(plan.optimizer)
    gathered = plan.shard == "zero3" and n_devices > 1
    numerics = precision.numerics(fused=plan.kernels == "fused", gathered=gathered)
    programs = _programs(model, Workload(numerics, plan.phase, plan.attention))
    base = base_sizes(model, plan.micro_batch * n_devices, plan.seq, plan.phase)
    parts = tuple(
        Part(program, base if layer is None else layer_sizes(layer, base, plan.phase), count)
        for program, layer, count in programs.parts
    )
    return Built(model, plan, precision, optimizer, parts, programs.order, _sharding(plan, n_devices))


class _Programs(msgspec.Struct, frozen=True, eq=False):
    """A model's programs: (program, the layer it is or None, how often), and which one each block of the chain is."""

    parts: tuple[tuple[Program, Layer | None, int], ...]
    order: tuple[int, ...]


@lru_cache(maxsize=16)
def _programs(model: Architecture, work: Workload) -> _Programs:
    """Write the embedding, each distinct layer once, and the head. Sizes come later: one program serves all."""
    embedding = embedding_program(model, work)
    distinct = Counter(model.layers)
    labels = _labels(list(distinct))
    layers = [(layer_program(model, layer, labels[layer], work), layer, n) for layer, n in distinct.items()]
    head = head_program(model, work, embedding.parameters[0] if model.tied else None)
    index = {layer: i + 1 for i, layer in enumerate(distinct)}
    order = (0, *(index[layer] for layer in model.layers), len(layers) + 1)
    return _Programs(((embedding, None, 1), *layers, (head, None, 1)), order)


def _labels(layers: list[Layer]) -> dict[Layer, str]:
    """Name each distinct layer by what sets it apart: layers, layers.moe, layers.window-4096."""
    several_kinds = len({type(layer.feed_forward) for layer in layers}) > 1
    several_windows = len({layer.window for layer in layers}) > 1
    labels: dict[Layer, str] = {}
    for layer in layers:
        words = ["layers"]
        if several_kinds:
            words.append("moe" if isinstance(layer.feed_forward, Experts) else "dense")
        if several_windows:
            words.append(f"window-{layer.window}" if layer.window else "global")
        label = ".".join(words)
        taken = sum(label == other or other.startswith(f"{label}#") for other in labels.values())
        labels[layer] = f"{label}#{taken + 1}" if taken else label
    return labels


def _sharding(plan: Plan, n_devices: int) -> Sharding:
    """Data parallelism: every device has its own sequences. ZeRO-1, 2 and 3 store more and more of the state split."""
    if n_devices == 1:
        return Sharding()
    axes = (DATA_AXIS,)
    level = {"none": 0, "ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3}[plan.shard]
    return Sharding(
        Mesh({DATA_AXIS: n_devices}),
        {"batch": axes, "slot": axes},
        parameters=axes if level >= 3 else (),
        gradients=axes if level >= 2 else (),
        optimizer=axes if level >= 1 else (),
    )


def _chain(built: Built, *, accumulates: bool, reduces: bool) -> list[Stage]:
    """The blocks in order. The head makes a tied table's gradient and leaves it to the embedding, which adds to it."""
    last = len(built.parts) - 1
    table = built.parts[0].program.parameters[0]
    selective = built.plan.recompute.policy == "selective"
    made: list[Derived] = []

    def shared(tensor: Tensor) -> bool:
        return built.model.tied and tensor is table

    for i, part in enumerate(built.parts):
        adds = _always if accumulates else shared if i == 0 else _never
        leaves = shared if i == last else _never
        made.append(Derived(part.program, part.sizes, built.sharding, selective, adds, leaves, reduces, part.count > 1))
    return [Stage(made[i], recomputable=0 < i < last) for i in built.order]


def _always(tensor: Tensor) -> bool:
    return True


def _never(tensor: Tensor) -> bool:
    return False


def _micro_steps(built: Built) -> tuple[Node, ...]:
    """Forward and backward of every micro-batch of the step."""
    recompute, times = built.plan.recompute, built.plan.accumulation

    def once(*, accumulates: bool, reduces: bool) -> tuple[Node, ...]:
        chain = _chain(built, accumulates=accumulates, reduces=reduces)
        return forward_nodes(chain, recompute) + backward_nodes(chain, recompute)

    if times == 1:
        return once(accumulates=False, reduces=True)
    first, last = once(accumulates=False, reduces=False), once(accumulates=True, reduces=True)
    if times == 2:
        return (*first, *last)
    return (*first, Repeat(once(accumulates=True, reduces=False), times - 2), *last)


def _stored(built: Built, axes: tuple[str, ...]) -> list[tuple[Part, Format, int]]:
    """What one device stores of each part's parameters, by format, split flat over some axes.

    Parameters that are gathered narrowed (autocast under ZeRO-3) are stored in the policy's own format.
    """
    parts = built.sharding.mesh.size(axes)
    found: list[tuple[Part, Format, int]] = []
    for part in built.parts:
        sums: dict[Format, int] = {}
        for p in part.program.parameters:
            sums[p.format] = sums.get(p.format, 0) + product(p.dims, part.sizes)
        for held, n in sums.items():
            narrowed = held == built.precision.compute and not built.precision.weight_only
            found.append((part, built.precision.parameter if narrowed else held, -(-n // parts) * part.count))
    return found


def _resident(built: Built) -> tuple[TensorSpec, ...]:
    """What a device holds all the time: parameters, master copy, optimizer state, the batch, the caches."""
    sharding, precision = built.sharding, built.precision
    stored = _stored(built, sharding.parameters)
    specs = [TensorSpec(f"{part.program.path}.parameters", (), n, held, "parameter") for part, held, n in stored]
    if built.plan.phase == "train":
        updated = [(part, n) for part, _, n in _stored(built, sharding.optimizer)]
        if precision.master is not None:
            specs += [
                TensorSpec(f"{part.program.path}.master", (), n, precision.master, "master") for part, n in updated
            ]
        held = state_format(precision, built.optimizer)
        specs += [TensorSpec("optimizer.state", (), n, held, "optimizer") for n in _held(built).state_counts]
    specs += [_cache(built, part, cache) for part in built.parts for cache in part.program.caches]
    return tuple(specs)


def _cache(built: Built, part: Part, cache: Tensor) -> TensorSpec:
    n = product(cache.dims, part.sizes) * part.count // built.sharding.mesh.size(tuple(built.sharding.mesh.axes))
    return TensorSpec(cache.name, cache.dims, n, cache.format, "kv_cache")


def _held(built: Built) -> Held:
    """What the optimizer works on, as one device's share of it."""
    rows = ((p, part.sizes, part.count) for part in built.parts for p in part.program.parameters)
    return Held.of(built.optimizer, rows, built.sharding.mesh.size(built.sharding.optimizer), _hidden)


def _hidden(tensor: Tensor) -> bool:
    """Matrices between embedding and head: what Muon takes."""
    return bool(tensor.summed) and tensor.name.startswith("layers")


def _update(built: Built, body: Iterable[Node]) -> Block:
    gradients = sum(node.profile.net[1] for node in body)
    return optimizer_block(
        built.precision, built.optimizer, _held(built), built.sharding, gradients, built.plan.foreach
    )
