"""What must devices exchange when names are split over them?

A *layout* says, for each dim of a tensor, over which axes of the mesh it is split, and over which axes its values are
still partial sums. A line has a compute layout: the axes that its names are split over, each axis at most once.
A collective is the difference between the layout that a tensor has and the one that its reader wants:

    partial, wanted whole                 all-reduce
    partial, wanted split on that axis    reduce-scatter
    split, wanted whole                   all-gather
    split on one dim, wanted on another   all-to-all
    whole, wanted split                   nothing: every device takes its part

Contracting a name that is split leaves partial sums. Tensor parallelism's all-reduces, data parallelism's gradient
all-reduce and sequence parallelism's gathers and scatters are these rules and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from sixnd.errors import UsageError
from sixnd.ledger import Collective
from sixnd.notation.program import Names, Sizes, Statement, product
from sixnd.plan import Mesh

CollectiveName = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Axes = tuple[str, ...]
Splits = Mapping[str, Axes]


class Layout(msgspec.Struct, frozen=True):
    """How one tensor lies on the mesh: the axes each dim is split over, and those its values are partial over."""

    split: tuple[Axes, ...]
    partial: Axes = ()


@dataclass(frozen=True)
class Sharding:
    """Which names are split over which axes where lines are computed, and how parameters are stored.

    `compute` is in order of precedence: of two names of one line that want the same axis, the first gets it.
    `by_kind` replaces it for lines of a kind (sequence parallelism splits `seq` in norms and sums only).
    `parameters` and `gradients` are axes over which those are stored split, flat, and gathered or scattered when used;
    `optimizer` are those that its state is split over, so that gradients need only be whole where they are updated.
    """

    mesh: Mesh = field(default_factory=Mesh)
    compute: Splits = field(default_factory=dict)
    by_kind: Mapping[str, Splits] = field(default_factory=dict)
    parameters: Axes = ()
    gradients: Axes = ()
    optimizer: Axes = ()

    def splits(self, s: Statement, sizes: Sizes) -> dict[str, Axes]:
        """Say over which axes each name of a line is split; raises `UsageError` where a size does not divide.

        Where tokens become slots, the slots of a device are those of its own tokens: they inherit the tokens' axes.
        """
        if not self.compute and not self.by_kind:
            return {}
        names = s.terms[1] if s.kind.reindexes else s.names
        chosen = self.splits_of(s.kind.name, names, sizes)
        if s.kind.reindexes:
            others = [name for name in (*s.terms[0], *s.result) if name not in s.terms[1] and name not in _both(s)]
            chosen[others[-1]] = tuple(axis for axes in chosen.values() for axis in axes)
        return chosen

    def splits_of(self, kind: str, names: Names, sizes: Sizes) -> dict[str, Axes]:
        """The axes of some names, as lines of a kind compute with them."""
        chosen: dict[str, Axes] = {}
        used: set[str] = set()
        for name, axes in self.by_kind.get(kind, self.compute).items():
            if name not in names or used.intersection(axes):
                continue
            if isinstance(sizes[name], int) and sizes[name] % self.mesh.size(axes):
                over = f"{self.mesh.size(axes)} devices ({'+'.join(axes)})"
                raise UsageError(f"{name} = {sizes[name]} does not divide over {over}")
            chosen[name] = axes
            used.update(axes)
        return chosen


def _both(s: Statement) -> Names:
    return tuple(name for name in s.terms[0] if name in s.result)


def placed(term: Names, splits: Splits, partial: Axes = ()) -> Layout:
    """The layout of a tensor that is read or made under these names."""
    return Layout(tuple(splits.get(name, ()) for name in term), partial)


def summed_axes(term: Names, splits: Splits) -> Axes:
    """The axes over which a result is partial: those of split names that it does not have."""
    if not splits:
        return ()
    return tuple(axis for name, axes in splits.items() if name not in term for axis in axes)


def local_elements(term: Names, sizes: Sizes, layout: Layout, mesh: Mesh) -> int:
    """How many elements one device holds."""
    parts = 1
    for axes in layout.split:
        parts *= mesh.size(axes)
    return product(term, sizes) // parts


def moves(have: Layout, want: Layout) -> list[tuple[CollectiveName, Axes]]:
    """List the collectives that turn one layout into another, each with its axes.

    >>> moves(Layout(((), ()), ("tp",)), Layout(((), ())))
    [('all_reduce', ('tp',))]
    >>> moves(Layout(((), ()), ("tp",)), Layout((("tp",), ())))
    [('reduce_scatter', ('tp',))]
    """
    found: dict[CollectiveName, list[str]] = {}
    wanted = {axis for axes in want.split for axis in axes}
    for axis in have.partial:
        if axis not in want.partial:
            found.setdefault("reduce_scatter" if axis in wanted else "all_reduce", []).append(axis)
    for had, wants in zip(have.split, want.split, strict=True):
        for axis in had:
            if axis not in wants:
                found.setdefault("all_to_all" if axis in wanted else "all_gather", []).append(axis)
    return [(name, tuple(axes)) for name, axes in found.items()]


def collective(name: CollectiveName, axes: Axes, n_bytes: int, mesh: Mesh) -> Collective:
    """Describe a collective over some axes; `n_bytes` is the larger of what a device holds before and after."""
    return Collective(name, axes, mesh.size(axes), n_bytes)


def wire_bytes(move: Collective) -> int:
    """Bytes that each device sends in a ring: (n-1)/n of the tensor, twice that for an all-reduce.

    Source: Thakur, Rabenseifner and Gropp 2005, bandwidth-optimal algorithms.
    """
    passes = 2 if move.name == "all_reduce" else 1
    return passes * move.n_bytes * (move.group_size - 1) // move.group_size
