"""Does a line move data, or only look at it differently? And what does a torch.einsum copy without saying so?

No data is needed to answer: a tensor is a shape and, for each dim, a *stride*, the elements from one step to the next.
A line on one operand is three moves. Splitting a folded dim and putting dims in another order only give new strides; a
new dim of `repeat` has stride 0. Folding dims into one is where a copy can hide: a view has one stride for the folded
dim, which needs every dim of it to chain, stride = inner stride x inner size. A dim of size 1 is never stepped
along and chains with anything. Where they do not chain, the elements are copied into a new, contiguous tensor. So
`b s h k -> b s (h k)` is a view of a contiguous tensor, and `b h s k -> b s (h k)` a copy.

torch.einsum is a `bmm`, which takes three dims: (both, left, summed) x (both, summed, right). Every operand is put in
that order and folded, so attention logits from `b s h k` copy both operands first. `einsum_copies` follows
ATen/native/Linear.cpp (einsum, sumproduct_pair) and, for the strides of a product without a sum,
ATen/TensorIterator.cpp, as of torch 2.13; operands are taken left to right, as torch does without opt_einsum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

from sixnd.errors import PatternError
from sixnd.notation.parse import Dim, Line, Term, names_of, size_of

Movement = Literal["view", "copy", "compute"]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Strided:
    """A tensor without its data: sizes and strides of its dims, both in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Moved:
    """What a line without a sum does to its operand, and the result as it lies in memory."""

    movement: Movement
    result: Strided


@dataclass(frozen=True)
class Lowered:
    """The elements of each copy that torch.einsum makes, in order, and its result as it lies in memory."""

    copied_elements: tuple[int, ...]
    result: Strided


def contiguous(shape: Sequence[int]) -> Strided:
    """A tensor in row-major order, the last dim innermost.

    >>> contiguous([2, 3, 4]).strides
    (12, 4, 1)
    """
    return Strided(tuple(shape), tuple(prod(shape[i + 1 :]) for i in range(len(shape))))


def move(line: Line, sizes: Mapping[str, int], source: Strided | None = None) -> Moved:
    """What a line on one operand does: view, copy, or compute where it sums a name away.

    `source` is the operand as it lies in memory (contiguous where it is left out). A name that only the result has is
    repeated. The line has neither `...` nor integers (`expand`, `name_integers`). Raises `PatternError` for a name
    without a size or a source of another shape.

    >>> from sixnd.notation.parse import parse_line
    >>> move(parse_line("b h s k -> b s (h k)"), {"b": 2, "s": 3, "h": 2, "k": 8}).movement
    'copy'
    """
    tensor, names = split(line.inputs[0], sizes, source)
    kept = set(names_of(line.output))
    if any(name not in kept for name in names):
        return Moved("compute", contiguous([size_of(dim, sizes) for dim in line.output]))
    strides = dict(zip(names, tensor.strides, strict=True))
    row = names_of(line.output)
    opened = Strided(tuple(sizes[name] for name in row), tuple(strides.get(name, 0) for name in row))
    result, copied = _fold(opened, [len(dim) for dim in line.output])
    return Moved("copy" if copied else "view", result)


def split(term: Term, sizes: Mapping[str, int], source: Strided | None = None) -> tuple[Strided, Names]:
    """An operand with every folded dim split into its names, and a repeated name read along the diagonal."""
    shape = tuple(size_of(dim, sizes) for dim in term)
    source = source or contiguous(shape)
    if source.shape != shape:
        raise PatternError(f"an operand of shape {source.shape} does not fit the sizes, which make it {shape}")
    strides: dict[str, int] = {}
    for dim, stride in zip(term, source.strides, strict=True):
        for name, inner in zip(dim, _inner(dim, sizes), strict=True):
            strides[name] = strides.get(name, 0) + stride * inner
    return Strided(tuple(sizes[name] for name in strides), tuple(strides.values())), tuple(strides)


def _inner(dim: Dim, sizes: Mapping[str, int]) -> list[int]:
    return [prod(sizes[name] for name in dim[i + 1 :]) for i in range(len(dim))]


def _fold(tensor: Strided, lengths: Sequence[int]) -> tuple[Strided, bool]:
    """Fold dims into groups of these lengths; the second answer is whether that needs a copy."""
    shape, strides, at = [], [], 0
    for length in lengths:
        shape.append(prod(tensor.shape[at : at + length]))
        strides.append(_chained(tensor.shape[at : at + length], tensor.strides[at : at + length]))
        at += length
    if any(stride is None for stride in strides):
        return contiguous(shape), True
    return Strided(tuple(shape), tuple(stride for stride in strides if stride is not None)), False


def _chained(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The stride of the dims folded into one; None where they do not chain."""
    stepped = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size > 1]
    for (_, outer), (size, inner) in pairwise(stepped):
        if outer != size * inner:
            return None
    return stepped[-1][1] if stepped else 1


# --------------------------------------------------------------------------------------- what torch.einsum does


def einsum_copies(
    line: Line,
    sizes: Mapping[str, int],
    summed: Sequence[str] | None = None,
    sources: Sequence[Strided] | None = None,
) -> Lowered:
    """What torch.einsum copies, left to right, on its way to `bmm`, and for a folded dim of the result.

    `summed` are the names that are summed away in torch's order (that of its letters); where it is left out they are
    taken as they are met. The line has neither `...` nor integers. Raises `PatternError` for a name without a size.

    >>> from sixnd.notation.parse import parse_line
    >>> line = parse_line("b s h k, b t h k -> b h s t")
    >>> einsum_copies(line, {"b": 2, "s": 3, "t": 4, "h": 2, "k": 8}).copied_elements
    (96, 128)
    """
    kept = names_of(line.output)
    if summed is None:
        summed = tuple(dict.fromkeys(name for term in line.inputs for name in names_of(term) if name not in kept))
    row = (*kept, *summed)
    places = [None] * len(line.inputs) if sources is None else sources
    waiting = [_aligned(*split(term, sizes, place), row) for term, place in zip(line.inputs, places, strict=True)]
    copies: list[int] = []
    holders = [sum(tensor.shape[dim] != 1 for tensor in waiting) for dim in range(len(row))]
    result = waiting[0]
    for other in waiting[1:]:
        left, right, both = _sum_early(result, other, holders, len(kept))
        result = _pair(left, right, both, copies)
    if len(waiting) == 1 and summed:
        result = contiguous(result.shape[: len(kept)])
    opened = Strided(result.shape[: len(kept)], result.strides[: len(kept)])
    folded, copied = _fold(opened, [len(dim) for dim in line.output])
    return Lowered((*copies, *([prod(opened.shape)] if copied else [])), folded)


def _aligned(tensor: Strided, names: Names, row: Names) -> Strided:
    """An operand with its dims in the order of a row; a dim that it lacks has size 1."""
    dims = dict(zip(names, zip(tensor.shape, tensor.strides, strict=True), strict=True))
    picked = [dims.get(name, (1, 1)) for name in row]
    return Strided(tuple(size for size, _ in picked), tuple(stride for _, stride in picked))


def _sum_early(
    left: Strided, right: Strided, holders: list[int], n_kept: int
) -> tuple[Strided, Strided, tuple[int, ...]]:
    """Sum what only one of a pair still has; the third answer is the dims that the two sum together."""
    lone: tuple[list[int], list[int]] = ([], [])
    both = []
    for dim in range(n_kept, len(holders)):
        has_left, has_right = left.shape[dim] != 1, right.shape[dim] != 1
        if has_left and has_right:
            holders[dim] -= 1
            if holders[dim] == 1:
                both.append(dim)
        elif holders[dim] == 1 and (has_left or has_right):
            lone[0 if has_left else 1].append(dim)
    return _summed(left, lone[0]), _summed(right, lone[1]), tuple(both)


def _summed(tensor: Strided, dims: Sequence[int]) -> Strided:
    return contiguous([1 if i in dims else size for i, size in enumerate(tensor.shape)]) if dims else tensor


def _pair(left: Strided, right: Strided, both: tuple[int, ...], copies: list[int]) -> Strided:
    """One step: a product, or a `bmm` between folded operands. What is copied is added to `copies`."""
    if not both:
        return _product(left, right)
    batch: list[int] = []
    lo: list[int] = []
    ro: list[int] = []
    for dim, (size_l, size_r) in enumerate(zip(left.shape, right.shape, strict=True)):
        if dim not in both:
            (batch if size_l != 1 and size_r != 1 else lo if size_l != 1 else ro).append(dim)
    if lo and ro and ro[-1] < lo[0]:
        left, right, lo, ro = right, left, ro, lo
    for tensor, groups in ((left, (batch, lo, both)), (right, (batch, both, ro))):
        opened = _picked(tensor, [dim for group in groups for dim in group])
        if _fold(opened, [len(group) for group in groups])[1]:
            copies.append(prod(tensor.shape))
    order = [*batch, *lo, *both, *ro]
    shape = [1 if dim in both else max(left.shape[dim], right.shape[dim]) for dim in order]
    return _picked(contiguous(shape), [order.index(dim) for dim in range(len(order))])


def _picked(tensor: Strided, dims: Sequence[int]) -> Strided:
    return Strided(tuple(tensor.shape[dim] for dim in dims), tuple(tensor.strides[dim] for dim in dims))


def _product(left: Strided, right: Strided) -> Strided:
    """An elementwise product; the result's strides keep the order of its operands' where they have one."""
    shape = tuple(map(max, left.shape, right.shape))
    if left.shape == right.shape and all(_dense(tensor, range(len(shape))) for tensor in (left, right)):
        return contiguous(shape)
    order = _memory_order(left, right, shape)
    return _picked(contiguous([shape[dim] for dim in order]), [order.index(dim) for dim in range(len(shape))])


def _dense(tensor: Strided, order: Sequence[int]) -> bool:
    """Whether a tensor is contiguous once its dims are put in this order."""
    opened = _picked(tensor, order)
    wanted = contiguous(opened.shape).strides
    return all(size == 1 or a == b for size, a, b in zip(opened.shape, opened.strides, wanted, strict=True))


def _memory_order(left: Strided, right: Strided, shape: Sequence[int]) -> list[int]:
    """The dims from the outermost to the innermost in memory, by an insertion sort that leaves what it cannot tell."""
    strides = [
        [
            0 if size == 1 and whole != 1 else stride
            for size, stride, whole in zip(t.shape, t.strides, shape, strict=True)
        ]
        for t in (left, right)
    ]

    def comes_after(first: int, second: int) -> int:
        for row in strides:
            if row[first] == 0 or row[second] == 0:
                continue
            if row[first] != row[second]:
                return 1 if row[first] > row[second] else -1
            if shape[first] > shape[second]:
                return 1
        return 0

    inner_first = list(range(len(shape)))[::-1]
    for i in range(1, len(shape)):
        at = i
        for before in range(i - 1, -1, -1):
            told = comes_after(inner_first[before], inner_first[at])
            if told > 0:
                inner_first[before], inner_first[at] = inner_first[at], inner_first[before]
                at = before
            elif told < 0:
                break
    return inner_first[::-1]
