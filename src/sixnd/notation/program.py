"""How is a model written? As statements: a kind, a line, the tensors it reads and the one that it makes.

A `Program` collects the statements of one block in order. Nothing in here or below knows what a transformer is.
Tensors know only names of dims; sizes come when a program is derived, so one program serves every size.

    program = Program("mlp", numerics)
    x = program.input("x", "batch d_in", needs_grad=False)
    h = program.linear("up", "batch d_in, d_in d_out -> batch d_out", x)
    y = program.apply(RELU, "act", "batch d_out -> batch d_out", h)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import msgspec

from sixnd.errors import PatternError
from sixnd.formats import Format, get_format
from sixnd.ledger import Role
from sixnd.notation.kinds import BIAS, CAST, CONTRACT, Kind
from sixnd.notation.parse import parse_line

Names = tuple[str, ...]
Size = int | Fraction
Sizes = Mapping[str, Size]
Share = Callable[[Sizes], Fraction]


class Tensor(msgspec.Struct, frozen=True, eq=False):
    """A tensor of a program: what its dims are called, its format, its role, and whether its gradient is wanted."""

    name: str
    dims: Names
    format: Format
    role: Role = "activation"
    needs_grad: bool = False
    summed: Names = ()  # of a contraction's weight: the names it sums, so that it can be seen as one matrix or many
    stacked: Names = ()  # and the names it has one matrix for each of (experts)


class Mask(msgspec.Struct, frozen=True):
    """The pairs of two names that attention lets through: causal, and at most `window` back. `None` sees all."""

    query: str = "query"
    key: str = "key"
    window: int | None = None

    def pairs(self, sizes: Sizes) -> int:
        """Count the pairs, the queries being the last of the keys: causal s x s gives s(s+1)/2.

        >>> Mask().pairs({"query": 4, "key": 4}), Mask(window=2).pairs({"query": 4, "key": 4})
        (10, 7)
        """
        queries, keys = int(sizes[self.query]), int(sizes[self.key])
        whole = queries * (keys - queries) + queries * (queries + 1) // 2
        if self.window is None or self.window >= keys:
            return whole
        beyond = keys - self.window  # the last query sees `keys` without a window: this many too many
        first = max(0, beyond - queries)
        return whole - (beyond * (beyond + 1) - first * (first + 1)) // 2


class Statement(msgspec.Struct, frozen=True, eq=False):
    """One line applied: operand `i` is read under the names `terms[i]`, by position.

    `outputs[0]` is the result; the rest are the kind's extras. `work` replaces the index space that a kind's work is
    counted over, where it touches only part of it. `region` marks statements that may be recomputed together. `share`
    says which part of operand 1 is expected to be read, where its rows are chosen (experts at decode).
    """

    path: str
    kind: Kind
    line: str
    terms: tuple[Names, ...]
    result: Names
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    work: Names | None = None
    mask: Mask | None = None
    region: str = ""
    share: Share | None = None

    @property
    def names(self) -> Names:
        """Every name of the line once, in order of appearance."""
        return _union(self.terms, self.result)


class Numerics(msgspec.Struct, frozen=True):
    """The formats a program computes in: how parameters are stored, what activations are, what matmuls run in."""

    parameter: Format
    compute: Format
    matmul: Format
    gradient: Format
    weight_only: bool = False  # low-bit weights are widened inside the kernel; nothing is cast
    fused: bool = True  # whether a norm or a gated activation is one kernel, or the several of uncompiled PyTorch
    engine: str = ""  # what contractions are multiplied in, where it is not the matmul format itself (TF32)

    @property
    def casts_weights(self) -> bool:
        """Whether a contraction reads a copy of its weight in another format."""
        return self.parameter != self.matmul and not self.weight_only


@dataclass
class Program:
    """The statements of one block, with its parameters, as they are written down."""

    path: str
    numerics: Numerics
    trains: bool = True
    statements: list[Statement] = field(default_factory=list)
    parameters: list[Tensor] = field(default_factory=list)
    caches: list[Tensor] = field(default_factory=list)
    region: str = ""
    entry: Tensor | None = None
    exit: Tensor | None = None

    def input(
        self, name: str, dims: str, *, needs_grad: bool, format: Format | None = None, role: Role = "activation"
    ) -> Tensor:
        """Name a tensor that comes from outside the block."""
        return Tensor(f"{self.path}.{name}", tuple(dims.split()), format or self.numerics.compute, role, needs_grad)

    def parameter(self, name: str, dims: str, summed: Names = (), stacked: Names = ()) -> Tensor:
        """Add a parameter with these dims; low-bit policies store only the weights of contractions in their format."""
        low = bool(summed) or not self.numerics.weight_only
        held = self.numerics.parameter if low else self.numerics.compute
        tensor = Tensor(f"{self.path}.{name}", tuple(dims.split()), held, "parameter", self.trains, summed, stacked)
        self.parameters.append(tensor)
        return tensor

    def apply(
        self,
        kind: Kind,
        path: str,
        line: str,
        *inputs: Tensor,
        format: Format | None = None,
        role: Role = "activation",
        work: str | None = None,
        mask: Mask | None = None,
        share: Share | None = None,
    ) -> Tensor:
        """Write one statement and return the tensor it makes. Raises `PatternError` where line and operands differ."""
        terms, result = _names(line)
        if [len(term) for term in terms] != [len(tensor.dims) for tensor in inputs]:
            raise PatternError(f"{path}: {line!r} does not fit operands {[t.dims for t in inputs]}")
        where = f"{self.path}.{path}"
        wanted = any(tensor.needs_grad for tensor in inputs)
        made = [Tensor(where, result, format or self.numerics.compute, role, wanted)]
        for extra in kind.extras if wanted else ():
            dims = {"all": result, "rows": result[:-1], "operand": terms[0]}[extra.dims]
            made.append(Tensor(f"{where}.{extra.suffix}", dims, get_format(extra.format), extra.role))
        work_names = None if work is None else tuple(work.split())
        self.statements.append(
            Statement(where, kind, line, terms, result, inputs, tuple(made), work_names, mask, self.region, share)
        )
        return made[0]

    def cache(self, name: str, dims: str) -> Tensor:
        """Name a cache that is resident for as long as the model serves; it is the same tensor however often named."""
        tensor = Tensor(f"{self.path}.{name}", tuple(dims.split()), self.numerics.compute, "kv_cache")
        self.caches.append(tensor)
        return tensor

    def linear(
        self,
        path: str,
        line: str,
        x: Tensor,
        *,
        bias: bool = False,
        tied: Tensor | None = None,
        share: Share | None = None,
    ) -> Tensor:
        """Contract `x` with a weight whose dims are the line's second term, casting first where the policy does."""
        terms, result = _names(line)
        summed = tuple(name for name in terms[1] if name not in result)
        stacked = tuple(name for name in terms[1] if name in terms[0] and name in result)
        weight = tied or self.parameter(f"{path}.weight", " ".join(terms[1]), summed, stacked)
        if self.numerics.casts_weights:
            here = " ".join(weight.dims)
            cast = f"{path}.weight.cast"
            weight = self.apply(CAST, cast, f"{here} -> {here}", weight, format=self.numerics.matmul, role="temporary")
        if self.numerics.matmul != x.format and not self.numerics.weight_only:
            here = " ".join(x.dims)
            x = self.apply(CAST, f"{path}.input.cast", f"{here} -> {here}", x, format=self.numerics.matmul)
        y = self.apply(CONTRACT, path, line, x, weight, share=share)
        if bias:
            dims = " ".join(name for name in result if name in weight.dims)
            b = self.parameter(f"{path}.bias", dims)
            rows = " ".join(result)
            y = self.apply(BIAS, f"{path}.bias", f"{rows}, {dims} -> {rows}", y, b)
        return y


@lru_cache(maxsize=4096)
def _names(line: str) -> tuple[tuple[Names, ...], Names]:
    parsed = parse_line(line)
    return tuple(_flat(term, line) for term in parsed.inputs), _flat(parsed.output, line)


def _flat(term: tuple[tuple[str, ...], ...], line: str) -> Names:
    if any(len(dim) != 1 or not dim[0].isidentifier() for dim in term):
        raise PatternError(f"{line!r}: a statement's dims are single names")
    return tuple(dim[0] for dim in term)


@lru_cache(maxsize=4096)
def _union(terms: tuple[Names, ...], result: Names) -> Names:
    return tuple(dict.fromkeys(name for term in (*terms, result) for name in term))


def product(names: Names, sizes: Sizes) -> int:
    """Multiply the sizes of some names. A balanced share of tokens may be a fraction; the product is whole."""
    total: Size = 1
    for name in names:
        total *= sizes[name]
    return int(total)
