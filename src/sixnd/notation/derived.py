"""What can one block do in a step? Forward keeping or not, backward, forward again: each variant derived once.

`Derived` holds a program with its sizes and sharding, and makes the `Block` of a variant when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from sixnd.ledger import Block, Collective, Cost, Phase, TensorSpec
from sixnd.notation.derive import Derivation, Draft, again
from sixnd.notation.kinds import CAST
from sixnd.notation.liveness import finish, read_before_made
from sixnd.notation.program import Program, Sizes, Tensor
from sixnd.notation.shard import CollectiveName, Sharding, collective, wire_bytes


@dataclass(frozen=True, eq=False)
class Derived:
    """Everything one program can do in a step, derived once; each variant is a `Block` made when first asked for.

    `accumulates` are parameters whose gradient an earlier block or micro-batch has begun. `leaves` are those that a
    later block adds to and reduces over devices; where gradients are stored split, each contribution is scattered.
    """

    program: Program
    sizes: Sizes
    sharding: Sharding
    selective: bool = False
    accumulates: Callable[[Tensor], bool] = lambda tensor: False
    leaves: Callable[[Tensor], bool] = lambda tensor: False
    reduces: bool = True
    prefetches: bool = False
    _blocks: dict[tuple[object, ...], Block] = field(default_factory=dict)
    _pieces: dict[tuple[str, bool], tuple[Block, ...]] = field(default_factory=dict)

    @cached_property
    def derivation(self) -> Derivation:
        """The drafts of both directions."""
        derivation = Derivation(self.program, self.sizes, self.sharding, accumulates=self.accumulates)
        derivation.run_forward()
        if self.program.trains:
            derivation.run_backward(lambda region: self.selective)
        return derivation

    @cached_property
    def kept(self) -> dict[str, TensorSpec]:
        """What forward leaves for backward, by name; parameters gathered for a while are gathered again instead."""
        if not self.program.trains:
            return {}
        gathered = {spec.name for spec in self.derivation.gathers}
        given = f"{self.exit_name}.grad"
        needed = read_before_made(self.derivation.backward)
        again = {spec.name for draft in self.recasts for spec in draft.writes}
        made_again = gathered | again | {given}
        return {name: spec for name, spec in needed.items() if name not in made_again}

    @cached_property
    def recasts(self) -> list[Draft]:
        """Casts of gathered parameters: their copies are let go with what they are copies of, and made again."""
        gathered = {spec.name for spec in self.derivation.gathers}
        casts = (draft for draft in self.derivation.forward if draft.kind == CAST.name)
        return [draft for draft in casts if all(spec.name in gathered for spec in draft.reads)]

    @cached_property
    def entry(self) -> TensorSpec | None:
        """The tensor that arrives, as this block sees it."""
        return None if self.derivation.arrived is None else self.derivation.arrived.spec

    @cached_property
    def exit_name(self) -> str:
        """The name of the tensor that leaves."""
        return "" if self.program.exit is None else self.derivation.tensors[self.program.exit].spec.name

    @cached_property
    def keeps_exit(self) -> bool:
        """Whether this block's own backward reads its result."""
        return self.exit_name in self.kept

    def forward(
        self, *, keep: bool, entry_owned: bool, phase: Phase = "forward", drop_exit: bool = False, release: bool = True
    ) -> Block:
        """Forward, keeping for backward or not. `entry_owned`: the entry is freed here once nothing reads it."""
        key = ("forward", keep, entry_owned, phase, drop_exit, release)
        if key not in self._blocks:
            keeps = set(self.kept) if keep else set()
            if not (drop_exit and not self.keeps_exit):
                keeps.add(self.exit_name)
            entry = [self.entry] if self.entry is not None and entry_owned else []
            gathers = [*self.derivation.gathers, *self._next]
            drafts = [*self._gather("forward" if phase == "forward" else "recompute"), *self.derivation.forward]
            held = gathers if release else []
            names = keeps if release else keeps | {spec.name for spec in gathers}
            chosen = None if phase == "forward" else phase
            self._blocks[key] = finish(self.program.path, drafts, arrives=entry, keeps=names, held=held, phase=chosen)
        return self._blocks[key]

    def kept_forward(self, entry_owned: bool) -> tuple[Block, ...]:
        """The plain forward, as a piece of a chain: the same tuple each time, so that runs of it are found quickly."""
        key = ("piece", entry_owned)
        if key not in self._pieces:
            self._pieces[key] = (self.forward(keep=True, entry_owned=entry_owned),)
        return self._pieces[key]

    def backward(self, *, entry_owned: bool, gather: bool = True) -> Block:
        """Backward: frees what was kept, makes the entry's gradient, reduces the parameters' gradients."""
        key = ("backward", entry_owned, gather)
        if key not in self._blocks:
            derivation = self.derivation
            kept = [
                spec for name, spec in self.kept.items() if entry_owned or self.entry is None or name != self.entry.name
            ]
            given = [t for t in read_before_made(derivation.backward).values() if t.name == f"{self.exit_name}.grad"]
            leaves = {derivation.gradients[t].spec.name for t in derivation.gradients if t is self.program.entry}
            if self.entry is not None and not entry_owned:
                leaves.add(self.entry.name)
            casts = [again(draft) for draft in self.recasts]
            gathered = self._gather("backward") if gather else []
            drafts = [*gathered, *casts, *derivation.backward, *self._reductions()]
            self._blocks[key] = finish(
                self.program.path,
                drafts,
                arrives=[*kept, *given],
                keeps=leaves,
                held=[*derivation.gathers, *self._next],
            )
        return self._blocks[key]

    def _gather(self, phase: Phase) -> list[Draft]:
        """Parameters stored split are gathered together at the head of the block."""
        specs = self.derivation.gathers
        if not specs:
            return []
        total = sum(spec.n_bytes for spec in specs)
        move = collective("all_gather", self.sharding.parameters, total, self.sharding.mesh)
        path, made = f"{self.program.path}.parameters", [*specs, *self._next]
        return [_exchange(path, phase, [], list(specs), made, move, wire_bytes(move))]

    @property
    def _next(self) -> list[TensorSpec]:
        """Room for the next block's parameters, gathered while this block computes."""
        gathers = self.derivation.gathers
        if not gathers or not self.prefetches:
            return []
        n = sum(spec.n_elements for spec in gathers)
        return [TensorSpec(f"{self.program.path}.next", ("parameters",), n, gathers[0].format, "communication")]

    def _reductions(self) -> list[Draft]:
        """The gradients that are partial over devices are reduced together, once the block's backward has made them."""
        groups: dict[tuple[str, ...], dict[Tensor, TensorSpec]] = {}
        for tensor, placed in self.derivation.parameter_gradients.items():
            scatters = set(self.sharding.gradients) & set(placed.layout.partial)
            if placed.layout.partial and (scatters or not self.leaves(tensor)):
                groups.setdefault(placed.layout.partial, {})[tensor] = placed.spec
        path, drafts = f"{self.program.path}.gradients", []
        for axes, made in groups.items():
            if set(self.sharding.gradients) & set(axes):
                drafts.extend(self._scatter(path, axes, made))
            elif self.reduces:
                specs = list(made.values())
                total = sum(spec.n_bytes for spec in specs)
                name: CollectiveName = "reduce_scatter" if set(self.sharding.optimizer) & set(axes) else "all_reduce"
                move = collective(name, axes, total, self.sharding.mesh)
                drafts.append(_exchange(path, "backward", specs, specs, [], move, wire_bytes(move)))
        return drafts

    def _scatter(self, path: str, axes: tuple[str, ...], made: dict[Tensor, TensorSpec]) -> list[Draft]:
        """Each device keeps its part of the summed gradients, added to what was left there earlier, if anything was."""
        specs = list(made.values())
        move = collective("reduce_scatter", axes, sum(spec.n_bytes for spec in specs), self.sharding.mesh)
        new = sum(spec.n_elements for tensor, spec in made.items() if not self.accumulates(tensor))
        old = sum(spec.n_elements for tensor, spec in made.items() if self.accumulates(tensor))
        first = TensorSpec(path, ("parameters",), -(-new // move.group_size), specs[0].format, "gradient")
        more = TensorSpec(f"{path}.part", ("parameters",), -(-old // move.group_size), specs[0].format, "temporary")
        parts = [part for part in (first, more) if part.n_elements]
        drafts = [_exchange(path, "backward", specs, parts, parts, move, wire_bytes(move))]
        if old:
            held = TensorSpec(f"{path}.held", more.dims, more.n_elements, more.format, "gradient")
            cost = Cost(vector_flops=more.n_elements, read_bytes=2 * more.n_bytes, written_bytes=more.n_bytes)
            drafts.append(Draft("accumulate", path, "backward", [held, more], [held], [], cost, more.format.name))
        return drafts

    @cached_property
    def local_parameters(self) -> tuple[tuple[Tensor, int], ...]:
        """Each parameter with the elements one device computes with, before any flat splitting of its storage."""
        tensors = self.derivation.tensors
        return tuple((p, tensors[p].spec.n_elements) for p in self.program.parameters if p in tensors)


def _exchange(
    path: str,
    phase: Phase,
    reads: list[TensorSpec],
    writes: list[TensorSpec],
    allocates: list[TensorSpec],
    move: Collective,
    wire: int,
) -> Draft:
    return Draft(move.name, path, phase, reads, writes, allocates, Cost(wire_bytes=wire), "bfloat16", collective=move)
