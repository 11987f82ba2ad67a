"""From the statements of one block: its forward ops, its backward ops, and the collectives between them.

The way through it:

    Program --forward--> drafts, each tensor placed on the mesh, a collective wherever a layout changes
            --backward-> drafts in reverse: per operand a gradient, contributions added, parameters' gradients reduced

Drafts are ops that do not yet know what they free: `liveness.py` finishes them. Partial sums are lazy: they pass
through linear kinds and are reduced at the first reader that is not, so q, k and v together cost one all-reduce.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from sixnd.formats import Format
from sixnd.ledger import Collective, Cost, Phase, Role, TensorSpec
from sixnd.notation import cost as costs
from sixnd.notation.program import Names, Program, Sizes, Statement, Tensor
from sixnd.notation.shard import (
    Axes,
    CollectiveName,
    Layout,
    Sharding,
    collective,
    local_elements,
    moves,
    placed,
    summed_axes,
    wire_bytes,
)


class Draft(msgspec.Struct, eq=False):
    """An op before liveness: what it reads, writes and allocates, and its cost."""

    kind: str
    path: str
    phase: Phase
    reads: list[TensorSpec]
    writes: list[TensorSpec]
    allocates: list[TensorSpec]
    cost: Cost
    engine: str
    line: str = ""
    formula: str = ""
    collective: Collective | None = None
    skips_masked: bool = False


class Placed(msgspec.Struct, frozen=True):
    """A tensor as one device holds it, and how it lies on the mesh. `alias`: it shares memory with another."""

    spec: TensorSpec
    layout: Layout
    alias: bool = False


@dataclass
class Derivation:
    """The drafts of one block, and what was found on the way.

    `arrived` is the block's entry as it came, `gathers` are parameters stored split and wanted whole, and `gradients`
    those whose gradient this block makes.
    """

    program: Program
    sizes: Sizes
    sharding: Sharding
    forward: list[Draft] = field(default_factory=list)
    backward: list[Draft] = field(default_factory=list)
    tensors: dict[Tensor, Placed] = field(default_factory=dict)
    arrived: Placed | None = None
    gathers: list[TensorSpec] = field(default_factory=list)
    gradients: dict[Tensor, Placed] = field(default_factory=dict)
    parameter_gradients: dict[Tensor, Placed] = field(default_factory=dict)
    accumulates: Callable[[Tensor], bool] = lambda tensor: False
    _fresh: int = 0
    _gathered: dict[str, Draft] = field(default_factory=dict)

    # --- forward ---------------------------------------------------------------------------------------------------

    def run_forward(self) -> None:
        """Place every statement on the mesh in order."""
        for statement in self.program.statements:
            self._forward(statement)
        out = self.program.exit
        if out is not None and self.tensors[out].layout.partial:
            self._move(out, Layout(self.tensors[out].layout.split), self.forward, "forward")

    def _forward(self, s: Statement) -> None:
        splits = self.sharding.splits(s, self.sizes)
        inputs, carried = self._operands(s, splits)
        sums = not (s.kind.state or s.kind.reindexes)
        partial = tuple(dict.fromkeys((*summed_axes(s.result, splits), *carried))) if sums else ()
        made = [self._made(tensor, names, splits, partial) for tensor, names in _results(s)]
        if s.kind.alias or s.kind.in_place:
            made[0] = _aliased(made[0], inputs[0])
        for tensor, place in zip(s.outputs, made, strict=True):
            self.tensors[tensor] = place
        self._exchange_state(s, inputs[0], splits)
        if not s.kind.alias:
            self.forward.append(self._forward_draft(s, splits, [place.spec for place in inputs], made))

    def _operands(self, s: Statement, splits: dict[str, Axes]) -> tuple[list[Placed], Axes]:
        """Bring every operand into the layout that the line computes in; a linear line may leave it partial."""
        carried: Axes = ()
        activations = [self._held(t, term, splits).layout.partial for t, term in zip(s.inputs, s.terms, strict=True)]
        if s.kind.linear and len(set(activations)) == 1:
            taken = {axis for axes in splits.values() for axis in axes}
            carried = tuple(axis for axis in activations[0] if axis not in taken)
        inputs = []
        for tensor, term in zip(s.inputs, s.terms, strict=True):
            want = placed(term, splits, carried)
            inputs.append(self._move(tensor, want, self.forward, "forward"))
        return inputs, carried

    def _held(self, tensor: Tensor, term: Names, splits: dict[str, Axes]) -> Placed:
        """Where a tensor is now; one that comes from outside the block arrives in the layout it is first read in."""
        if tensor not in self.tensors:
            at = self.sharding.splits_of("add", tensor.dims, self.sizes) if tensor is self.program.entry else splits
            names = tensor.dims if tensor is self.program.entry else term
            place = self._made(tensor, names, at, ())
            if tensor.role == "parameter" and self.sharding.parameters:
                place = Placed(_as(place.spec, "communication", "whole"), place.layout)
                self.gathers.append(place.spec)
            self.tensors[tensor] = place
            if tensor is self.program.entry:
                self.arrived = place
        return self.tensors[tensor]

    def _made(self, tensor: Tensor, names: Names, splits: dict[str, Axes], partial: Axes) -> Placed:
        layout = placed(names, splits, partial)
        n = local_elements(names, self.sizes, layout, self.sharding.mesh)
        return Placed(TensorSpec(tensor.name, tensor.dims, n, tensor.format, tensor.role), layout)

    def _move(self, tensor: Tensor, want: Layout, drafts: list[Draft], phase: Phase) -> Placed:
        moved = self._moved(self.tensors[tensor], want, drafts, phase)
        self.tensors[tensor] = moved
        return moved

    def _moved(self, have: Placed, want: Layout, drafts: list[Draft], phase: Phase) -> Placed:
        """Add the collectives that bring one tensor from the layout it has to the layout wanted."""
        if have.layout == want:
            return have
        mesh, spec = self.sharding.mesh, have.spec
        for name, axes in moves(have.layout, want):
            n = _elements_after(name, spec.n_elements, mesh.size(axes))
            after = spec if name == "all_reduce" else self._resized(spec, n, name)
            move = collective(name, axes, max(spec.n_bytes, after.n_bytes), mesh)
            fresh, cost = [] if after is spec else [after], Cost(wire_bytes=wire_bytes(move))
            drafts.append(
                Draft(name, spec.name, phase, [spec], [after], fresh, cost, spec.format.name, collective=move)
            )
            if name == "all_gather" and phase == "forward" and spec.role != "parameter":
                self._gathered[after.name] = drafts[-1]
            spec = after
        taken = self._part(spec, have.layout, want)
        if taken is not spec and spec.role != "parameter":
            cost = Cost(read_bytes=taken.n_bytes, written_bytes=taken.n_bytes)
            drafts.append(Draft("slice", spec.name, phase, [spec], [taken], [taken], cost, spec.format.name))
        return Placed(taken, want, have.alias and taken is have.spec)

    def _resized(self, spec: TensorSpec, n: int, why: str) -> TensorSpec:
        self._fresh += 1
        return TensorSpec(f"{spec.name}@{why}{self._fresh}", spec.dims, n, spec.format, spec.role)

    def _part(self, spec: TensorSpec, have: Layout, want: Layout) -> TensorSpec:
        """Of a whole tensor, the part that one device reads: nothing is sent."""
        held = {axis for axes in have.split for axis in axes} | set(have.partial)
        fresh = [axis for axes in want.split for axis in axes if axis not in held]
        if not fresh:
            return spec
        return self._resized(spec, spec.n_elements // self.sharding.mesh.size(tuple(fresh)), "part")

    def _exchange_state(self, s: Statement, operand: Placed, splits: dict[str, Axes]) -> None:
        """Where the reduced name of a softmax, norm or loss is split, devices exchange one state per row."""
        reduced = s.terms[0][-1]
        if not s.kind.state or reduced not in splits:
            return
        rows = operand.spec.n_elements // int(self._sizes(splits)[reduced])
        n_bytes = 4 * s.kind.state * rows
        move = collective("all_reduce", splits[reduced], n_bytes, self.sharding.mesh)
        self.forward.append(
            Draft(
                "all_reduce",
                f"{s.path}.state",
                "forward",
                [],
                [],
                [],
                Cost(wire_bytes=wire_bytes(move)),
                "float32",
                collective=move,
            )
        )

    def _sizes(self, splits: dict[str, Axes]) -> Sizes:
        """The sizes that one device walks over."""
        if not splits:
            return self.sizes
        mesh = self.sharding.mesh
        local = dict(self.sizes)
        for name, axes in splits.items():
            size, parts = local[name], mesh.size(axes)
            local[name] = size // parts if isinstance(size, int) else size / parts
        return local

    def _forward_draft(
        self, s: Statement, splits: dict[str, Axes], reads: list[TensorSpec], made: list[Placed]
    ) -> Draft:
        flops = costs.forward_flops(s, self._sizes(splits))
        writes = [place.spec for place in made]
        fresh = writes[1:] if s.kind.in_place else [w for w in writes if w.role != "kv_cache"]
        read = sum(spec.n_bytes for spec in _distinct(reads[1:] if s.kind.in_place else reads))
        if s.kind.indexed is not None:
            read += self._rows_bytes(s, reads, splits) - reads[s.kind.indexed].n_bytes
        if s.share is not None:
            read += int(reads[1].n_bytes * s.share(self._sizes(splits))) - reads[1].n_bytes
        written = 0 if s.kind.in_place else sum(spec.n_bytes for spec in writes)
        return Draft(
            s.kind.name,
            s.path,
            "forward",
            reads,
            writes,
            fresh,
            _cost(flops, read, written),
            self._engine(s),
            s.line,
            flops.formula,
            skips_masked=bool(s.kind.inner),
        )

    def _rows_bytes(self, s: Statement, reads: list[TensorSpec], splits: dict[str, Axes]) -> int:
        """Bytes of the rows that a gather reads: one for each of its results."""
        table = reads[s.kind.indexed or 0]
        layout = placed(s.result, splits)
        n = local_elements(s.result, self.sizes, layout, self.sharding.mesh)
        return TensorSpec(table.name, table.dims, n, table.format, table.role).n_bytes

    def _engine(self, s: Statement) -> str:
        numerics = self.program.numerics
        if s.kind.contracts and s.inputs[0].format == numerics.matmul:
            return numerics.engine or numerics.matmul.name
        return s.inputs[0].format.name if s.inputs[0].format.name != "int64" else numerics.compute.name

    # --- backward --------------------------------------------------------------------------------------------------

    def run_backward(self, recomputes: Callable[[str], bool] = lambda region: False) -> None:
        """Walk the statements in reverse; a region that is recomputed is run again before its backward begins."""
        begun: set[str] = set()
        out = self.program.exit
        if out is not None and out.needs_grad:
            self.gradients[out] = Placed(
                _as(self.tensors[out].spec, "activation_gradient", "grad"), self.tensors[out].layout
            )
        for s in reversed(self.program.statements):
            if s.region and s.region not in begun and recomputes(s.region):
                begun.add(s.region)
                self._run_again(s.region)
            if s.outputs[0].needs_grad and (s.outputs[0] in self.gradients or s.kind.starts_backward):
                self._backward(s)
        self._gather_again()
        entry = self.program.entry
        if entry in self.gradients and entry is not None:
            assert self.arrived is not None
            whole = Layout(self.arrived.layout.split)
            self.gradients[entry] = self._moved(self.gradients[entry], whole, self.backward, "backward")

    def _gather_again(self) -> None:
        """An activation that forward gathered is kept split: its first reader in backward gathers it once more."""
        drafts: list[Draft] = []
        for draft in self.backward:
            for spec in draft.reads:
                if gathering := self._gathered.pop(spec.name, None):
                    drafts.append(again(gathering))
            drafts.append(draft)
        self.backward = drafts

    def _run_again(self, region: str) -> None:
        paths = {s.path for s in self.program.statements if s.region == region}
        self.backward.extend(again(draft) for draft in self.forward if draft.path in paths)

    def _backward(self, s: Statement) -> None:
        splits = self.sharding.splits(s, self.sizes)
        given = self.gradients.pop(s.outputs[0], None)
        if given is not None and s.kind.passes_gradient:
            for tensor in s.inputs:
                self._give(tensor, Placed(given.spec, given.layout, alias=True))
            return
        if given is not None and s.kind.alias:
            split = self.tensors[s.inputs[0]].layout.split
            self._give(s.inputs[0], Placed(given.spec, Layout(split, given.layout.partial), alias=True))
            return
        if given is not None and not (s.kind.linear and given.layout.partial):
            given = self._moved(given, placed(s.result, splits), self.backward, "backward")
        if s.kind.contracts:
            self._contraction_backward(s, splits, given)
        else:
            self._kind_backward(s, splits, given)

    def _contraction_backward(self, s: Statement, splits: dict[str, Axes], given: Placed | None) -> None:
        assert given is not None
        for i, tensor in enumerate(s.inputs):
            if tensor.needs_grad:
                reads = [given.spec, *(self.tensors[t].spec for j, t in enumerate(s.inputs) if j != i)]
                gradient = self._gradient(s, i, splits)
                flops = costs.operand_gradient_flops(s, i, self._sizes(splits))
                self._add_backward(s, reads, [gradient], flops)
                self._give(tensor, gradient)

    def _kind_backward(self, s: Statement, splits: dict[str, Axes], given: Placed | None) -> None:
        """One op makes the gradients of all operands, reading what the kind declared that it keeps."""
        sizes = self._sizes(splits)
        kept = [self.tensors[s.outputs[0] if keep == "output" else s.inputs[int(keep)]].spec for keep in s.kind.keeps]
        reads = [*([given.spec] if given else []), *kept, *(self.tensors[t].spec for t in s.outputs[1:])]
        wanted = [i for i, t in enumerate(s.inputs) if t.needs_grad and not (s.kind.in_place and i == 0)]
        carried = given.layout.partial if given else ()
        made = [self._gradient(s, i, splits, carried) for i in wanted]
        if s.kind.recomputes:
            again_flops = costs.recomputed_flops(s, sizes)
            self.backward.append(
                Draft(
                    s.kind.name,
                    f"{s.path}.scores",
                    "recompute",
                    [],
                    [],
                    [],
                    _cost(again_flops, 0, 0),
                    self._engine(s),
                    s.line,
                    again_flops.formula,
                    skips_masked=True,
                )
            )
        if wanted:
            self._add_backward(s, reads, made, costs.backward_flops(s, sizes))
        if s.kind.in_place and given is not None:
            self._give(s.inputs[0], given)
        for i, gradient in zip(wanted, made, strict=True):
            self._give(s.inputs[i], gradient)

    def _gradient(self, s: Statement, operand: int, splits: dict[str, Axes], carried: Axes = ()) -> Placed:
        """The gradient of an operand: split as it is, partial over the split names that it does not have."""
        tensor, term = s.inputs[operand], s.terms[operand]
        sums = () if s.kind.reindexes else summed_axes(term, splits)
        layout = placed(term, splits, tuple(dict.fromkeys((*sums, *carried))))
        n = local_elements(term, self.sizes, layout, self.sharding.mesh)
        role: Role = "gradient" if tensor.role == "parameter" else "activation_gradient"
        held: Format = self.program.numerics.gradient if tensor.role == "parameter" else tensor.format
        if role == "gradient" and self.sharding.gradients:
            role = "communication"
        elif role == "gradient" and (self.accumulates(tensor) or tensor in self.parameter_gradients):
            role = "temporary"
        self._fresh += 1
        return Placed(TensorSpec(f"{tensor.name}.grad{self._fresh}", term, n, held, role), layout)

    def _add_backward(self, s: Statement, reads: list[TensorSpec], made: list[Placed], flops: costs.Flops) -> None:
        writes = [place.spec for place in made]
        read, written = sum(t.n_bytes for t in _distinct(reads)), sum(t.n_bytes for t in writes)
        self.backward.append(
            Draft(
                s.kind.name,
                s.path,
                "backward",
                reads,
                writes,
                list(writes),
                _cost(flops, read, written),
                self._engine(s),
                s.line,
                flops.formula,
                skips_masked=bool(s.kind.inner),
            )
        )

    def _give(self, tensor: Tensor, gradient: Placed) -> None:
        """Add a contribution to a tensor's gradient; the first one is the gradient."""
        if not tensor.needs_grad:
            return
        if tensor.role == "parameter":
            self._give_parameter(tensor, gradient)
            return
        if tensor not in self.gradients:
            self.gradients[tensor] = gradient
            return
        have = self.gradients[tensor]
        if have.layout != gradient.layout:  # partial plus whole is illegal: reduce both
            whole = Layout(self.tensors[tensor].layout.split)
            have = self._moved(have, whole, self.backward, "backward")
            gradient = self._moved(gradient, whole, self.backward, "backward")
        self.gradients[tensor] = self._accumulated(tensor.name, have, gradient)

    def _give_parameter(self, tensor: Tensor, gradient: Placed) -> None:
        """A parameter's gradient outlives the block: later contributions and micro-batches are added into it."""
        held = self.parameter_gradients.get(tensor)
        if held is None and self.accumulates(tensor) and not self.sharding.gradients:
            spec = gradient.spec
            held = Placed(
                TensorSpec(f"{tensor.name}.grad", spec.dims, spec.n_elements, spec.format, "gradient"), gradient.layout
            )
        if held is not None:
            gradient = self._accumulated(tensor.name, held, gradient)
        self.parameter_gradients[tensor] = gradient

    def _accumulated(self, name: str, have: Placed, more: Placed) -> Placed:
        """Add one gradient into the other, into whichever memory is its own."""
        into = more if have.alias else have
        allocates: list[TensorSpec] = []
        if have.alias and more.alias:
            into = Placed(self._resized(more.spec, more.spec.n_elements, "sum"), more.layout)
            allocates = [into.spec]
        n, n_bytes = into.spec.n_elements, into.spec.n_bytes
        self.backward.append(
            Draft(
                "accumulate",
                f"{name}.grad",
                "backward",
                [have.spec, more.spec],
                [into.spec],
                allocates,
                Cost(vector_flops=n, read_bytes=2 * n_bytes, written_bytes=n_bytes),
                into.spec.format.name,
            )
        )
        return Placed(into.spec, into.layout)


def again(draft: Draft) -> Draft:
    """The same op, done a second time."""
    return Draft(
        draft.kind,
        draft.path,
        "recompute",
        draft.reads,
        draft.writes,
        draft.allocates,
        draft.cost,
        draft.engine,
        draft.line,
        draft.formula,
        draft.collective,
        draft.skips_masked,
    )


def _results(s: Statement) -> list[tuple[Tensor, Names]]:
    return [(s.outputs[0], s.result), *((tensor, tensor.dims) for tensor in s.outputs[1:])]


def _elements_after(name: CollectiveName, n: int, group_size: int) -> int:
    """What one device holds after a collective, of `n` elements before it."""
    if name == "all_gather":
        return n * group_size
    return n // group_size if name == "reduce_scatter" else n


def _aliased(made: Placed, source: Placed) -> Placed:
    spec = made.spec
    return Placed(TensorSpec(source.spec.name, spec.dims, spec.n_elements, spec.format, source.spec.role), made.layout)


def _as(spec: TensorSpec, role: Role, suffix: str) -> TensorSpec:
    return TensorSpec(f"{spec.name}.{suffix}", spec.dims, spec.n_elements, spec.format, role)


def _distinct(specs: list[TensorSpec]) -> list[TensorSpec]:
    return list({spec.name: spec for spec in specs}.values())


def _cost(flops: costs.Flops, read: int, written: int) -> Cost:
    return Cost(flops.matrix, flops.masked, flops.vector, flops.comparisons, flops.transcendentals, read, written)
