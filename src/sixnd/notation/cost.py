"""What does one line cost, forward and backward, with the sizes that one device has?

Everything is a product of sizes, so the same functions serve numbers and the text of a formula. The gradient of an
operand is itself a line: the result's gradient and the other operands, contracted onto that operand's names. That is
why backward costs twice forward; no 2 is typed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from sixnd.notation.kinds import Kind, Work
from sixnd.notation.parse import parse_line
from sixnd.notation.program import Mask, Names, Sizes, Statement, product


class Flops(msgspec.Struct, frozen=True):
    """Matrix FLOPs with every query x key pair, matrix FLOPs with only those let through, and the rest of the work."""

    matrix: int = 0
    masked: int = 0
    vector: int = 0
    comparisons: int = 0
    transcendentals: int = 0
    formula: str = ""


class Contraction(msgspec.Struct, frozen=True):
    """One line of a contraction: the names of its index space, and whether any of them is summed away."""

    names: Names
    sums: bool


@lru_cache(maxsize=8192)
def contraction(terms: tuple[Names, ...], result: Names) -> Contraction:
    """The index space of a line.

    >>> contraction((("b", "d"), ("d", "k")), ("b", "k"))
    Contraction(names=('b', 'd', 'k'), sums=True)
    """
    names = tuple(dict.fromkeys(name for term in terms for name in term))
    return Contraction(names, any(name not in result for name in names))


def contraction_flops(line: Contraction, sizes: Sizes, mask: Mask | None = None) -> Flops:
    """Two FLOPs for every point of the index space where a name is summed; otherwise one multiply each.

    Convention: a multiply is one FLOP and an add is one; s terms are added with s adds, the first onto zero.
    """
    text = "·".join(line.names)
    every = product(line.names, sizes)
    if not line.sums:
        return Flops(vector=every, formula=text)
    let_through = every
    if mask and mask.query in line.names and mask.key in line.names:
        others = tuple(name for name in line.names if name not in (mask.query, mask.key))
        let_through = product(others, sizes) * mask.pairs(sizes)
    return Flops(2 * every, 2 * let_through, formula="2·" + text)


def gradient_line(terms: tuple[Names, ...], result: Names, operand: int) -> Contraction:
    """The line that makes the gradient of one operand.

    >>> gradient_line((("b", "d"), ("d", "k")), ("b", "k"), 1)
    Contraction(names=('b', 'k', 'd'), sums=True)
    """
    others = (result, *(term for i, term in enumerate(terms) if i != operand))
    return contraction(others, terms[operand])


def forward_flops(statement: Statement, sizes: Sizes) -> Flops:
    """What the forward of one statement does."""
    if statement.kind.contracts:
        return contraction_flops(contraction(statement.terms, statement.result), sizes, statement.mask)
    lines = _inner(statement.kind, statement.terms, statement.result)
    matrix = [contraction_flops(contraction(terms, result), sizes, statement.mask) for terms, result in lines]
    return _together(matrix, _work(statement, statement.kind.forward, sizes))


def operand_gradient_flops(statement: Statement, operand: int, sizes: Sizes) -> Flops:
    """What the gradient of one operand of a contraction does."""
    return contraction_flops(gradient_line(statement.terms, statement.result, operand), sizes, statement.mask)


def backward_flops(statement: Statement, sizes: Sizes) -> Flops:
    """What the backward of a statement that is not a contraction does, all operands together."""
    matrix = [
        contraction_flops(gradient_line(terms, result, operand), sizes, statement.mask)
        for terms, result in _inner(statement.kind, statement.terms, statement.result)
        for operand in range(len(terms))
    ]
    return _together(matrix, _work(statement, statement.kind.backward, sizes))


def recomputed_flops(statement: Statement, sizes: Sizes) -> Flops:
    """What a fused kind does again in its backward because it stored nothing between its lines."""
    lines = _inner(statement.kind, statement.terms, statement.result)[: statement.kind.recomputes]
    matrix = [contraction_flops(contraction(terms, result), sizes, statement.mask) for terms, result in lines]
    return _together(matrix, Flops())


@lru_cache(maxsize=1024)
def _inner(kind: Kind, terms: tuple[Names, ...], result: Names) -> tuple[tuple[tuple[Names, ...], Names], ...]:
    """The lines that a fused kind runs, in the names of the statement instead of the kind's own."""
    if not kind.inner:
        return ()
    own = parse_line(kind.line)
    written = zip((*own.inputs, own.output), (*terms, result), strict=True)
    here = {dim[0]: name for term, names in written for dim, name in zip(term, names, strict=True)}
    lines = map(parse_line, kind.inner)
    return tuple(
        (tuple(tuple(here[dim[0]] for dim in term) for term in line.inputs), tuple(here[dim[0]] for dim in line.output))
        for line in lines
    )


def _work(statement: Statement, work: Work, sizes: Sizes) -> Flops:
    names = statement.work or _widest(statement, sizes)
    points = product(names, sizes)
    factor = () if work.vector == 1 else (str(work.vector),)
    text = "·".join((*factor, *names)) if work.vector else ""
    return Flops(0, 0, work.vector * points, work.comparisons * points, work.transcendentals * points, text)


def _widest(statement: Statement, sizes: Sizes) -> Names:
    """The names of the largest tensor of a line, which its kind walks; a table that is read by rows is not walked."""
    walked = [term for i, term in enumerate(statement.terms) if i != statement.kind.indexed]
    return max((statement.result, *walked), key=lambda term: product(term, sizes))


def _together(parts: Sequence[Flops], work: Flops) -> Flops:
    texts = [part.formula for part in parts] + [work.formula]
    return Flops(
        sum(part.matrix for part in parts),
        sum(part.masked for part in parts),
        work.vector + sum(part.vector for part in parts),
        work.comparisons,
        work.transcendentals,
        " + ".join(text for text in texts if text),
    )
