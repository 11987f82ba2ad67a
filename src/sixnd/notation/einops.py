"""What does one line in einops' notation cost: FLOPs, bytes, layout, order?

    line_cost("b s d, d k -> b s k", {"b": 2, "s": 8, "d": 32, "k": 64})

Names and sizes suffice; no tensor is made. Conventions: a multiply and an add count 1 each, so a contraction is 2 x the
product of every name, a line that sums nothing is its multiplies, and a sum is as many adds as elements disappear. A
mean also divides once for each result. Comparisons (max, min) are no FLOPs and stand apart. Bytes: every operand is
read once, every result written once, and an intermediate both written and read; a view moves nothing, a copy reads its
operand and writes its result. Operands are contiguous; `sixnd.notation.layout` answers for other strides.

The formula and the number are one `Count`, printed and evaluated. `sixnd.notation.order` picks the order of several
operands; what torch.einsum copies beside all this is `hidden_copy_bytes`, read and write, with operands left to right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from sixnd.errors import PatternError, near_miss
from sixnd.formats import Format, get_format, storage_bytes
from sixnd.notation.layout import Movement, einsum_copies, move
from sixnd.notation.order import Order, best_order, left_to_right, reading_order
from sixnd.notation.parse import ELLIPSIS, Line, expand, name_integers, names_of, parse_line, quote, size_of

Operation = Literal["einsum", "rearrange", "reduce", "repeat"]
Reduction = Literal["sum", "mean", "max", "min", "prod"]
Names = tuple[str, ...]

MOST_OPERANDS = 32
MOST_NAMES = 64
MOST_POINTS = 10**300  # an intensity stays a float below


@dataclass(frozen=True)
class LineCost:
    """What one line costs.

    `flops` is that of the best order, `formula` the same in names; `comparisons` are those of a max or min.
    `intensity` is FLOP per byte, None where nothing moves. `hidden_copy_bytes` is what torch.einsum moves beside
    `read_bytes` and `written_bytes`, None where the line is no einsum. `order` has one line for each step.
    """

    op: Operation
    flops: int
    formula: str
    comparisons: int
    read_bytes: int
    written_bytes: int
    intensity: float | None
    layout: Movement
    out_shape: tuple[int, ...]
    hidden_copy_bytes: int | None
    order: tuple[str, ...]
    flops_left_to_right: int
    peak_intermediate_elements: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """A sum of products of sizes: coefficients, and the names that each multiplies.

    >>> print(Count.of("bsd") - Count.of("bd"))
    b·s·d − b·d
    """

    terms: tuple[tuple[int, Names], ...] = ()

    @staticmethod
    def of(names: Sequence[str], coefficient: int = 1) -> Count:
        """One product."""
        return Count(((coefficient, tuple(names)),))

    def __add__(self, other: Count) -> Count:
        merged: dict[frozenset[str], tuple[int, Names]] = {}
        for coefficient, names in (*self.terms, *other.terms):
            so_far, written = merged.get(frozenset(names), (0, names))
            merged[frozenset(names)] = (so_far + coefficient, written)
        return Count(tuple(term for term in merged.values() if term[0]))

    def __sub__(self, other: Count) -> Count:
        return self + Count(tuple((-coefficient, names) for coefficient, names in other.terms))

    def __str__(self) -> str:
        text = ""
        for coefficient, names in self.terms:
            sign = (" − " if coefficient < 0 else " + ") if text else ("−" if coefficient < 0 else "")
            factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not names else []
            text += sign + "·".join([*factors, *map(_shown, names)])
        return text or "0"

    def value(self, sizes: Mapping[str, int]) -> int:
        """The sum, with these sizes."""
        return sum(coefficient * prod(sizes[name] for name in names) for coefficient, names in self.terms)


@dataclass(frozen=True)
class _Question:
    """A line that makes sense: as it is counted (`...` is one name, an integer too), and what is done to it."""

    text: str
    line: Line
    integers: Mapping[str, int]
    op: Operation
    reduction: Reduction

    @property
    def terms(self) -> tuple[Names, ...]:
        """The names that are read of each operand: a diagonal's once."""
        return tuple(tuple(dict.fromkeys(names_of(term))) for term in self.line.inputs)

    @property
    def result(self) -> Names:
        return names_of(self.line.output)

    @property
    def names(self) -> Names:
        return tuple(dict.fromkeys((*(name for term in self.terms for name in term), *self.result)))


def line_cost(
    text: str,
    sizes: Mapping[str, int],
    *,
    ellipsis: Sequence[int] | None = None,
    op: Operation | None = None,
    reduction: Reduction = "sum",
    format: Format | None = None,
) -> LineCost:
    """What one line costs.

    `sizes` has every name of the line; `ellipsis` the sizes that `...` stands for. `op` is inferred where it is left
    out: several operands are an einsum, new names on the right a repeat, missing ones a reduce, else a rearrange.
    Tensors are stored in `format` (bfloat16). Raises `PatternError`: the line does not parse, its sizes do not fit, or
    the operation does not allow it.

    >>> cost = line_cost("batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
    ...                  {"batch": 2, "seq1": 3, "seq2": 4, "hidden": 16})
    >>> cost.flops, cost.formula, cost.read_bytes, cost.written_bytes
    (768, '2·batch·seq1·seq2·hidden', 448, 48)
    """
    question = _understand(text, op, reduction)
    known = _checked(question, sizes, ellipsis)
    written, spelled = expand(question.line, ellipsis or ())
    spelled = {**known, **spelled}
    order = best_order(question.terms, question.result, known) if len(question.terms) > 1 else None
    flops, comparisons = _counts(question, order)
    moved = move(written, spelled) if order is None else None
    layout: Movement = moved.movement if moved else "compute"
    stored = format or get_format("bfloat16")
    read, made = _bytes(question, known, order, layout, stored)
    hidden = (
        _hidden_copy_bytes(question.line, written, spelled, stored)
        if question.op == "einsum" and layout == "compute"
        else 0
    )
    n_flops = flops.value(known)
    in_turn = left_to_right(question.terms, question.result, known) if order else None
    return LineCost(
        op=question.op,
        flops=n_flops,
        formula=str(flops),
        comparisons=comparisons.value(known),
        read_bytes=read,
        written_bytes=made,
        intensity=n_flops / (read + made) if read + made else None,
        layout=layout,
        out_shape=tuple(size_of(dim, spelled) for dim in written.output),
        hidden_copy_bytes=hidden if question.op == "einsum" else None,
        order=_step_texts(question, order) if order else (),
        flops_left_to_right=in_turn.flops if in_turn else n_flops,
        peak_intermediate_elements=order.peak_elements if order else 0,
        notes=tuple(_notes(question, order, layout, hidden, comparisons)),
    )


def flops_formula(text: str, *, op: Operation | None = None, reduction: Reduction = "sum") -> str:
    """The FLOPs of a line in names. Without sizes there is no best order: three or more operands go left to right.

    >>> flops_formula("b s d -> b d"), flops_formula("b s d -> b d", reduction="mean")
    ('b·s·d − b·d', 'b·s·d')
    """
    question = _understand(text, op, reduction)
    ones = dict.fromkeys(question.names, 1)
    order = left_to_right(question.terms, question.result, ones) if len(question.terms) > 1 else None
    return str(_counts(question, order)[0])


# ------------------------------------------------------------------------------------------- does it make sense?


def _understand(text: str, op: Operation | None, reduction: Reduction) -> _Question:
    """Read a line and hold it against the operation."""
    for choice, allowed in ((op, get_args(Operation)), (reduction, get_args(Reduction))):
        if choice is not None and choice not in allowed:
            raise PatternError(f"{choice!r} is none of {', '.join(allowed)}{near_miss(str(choice), allowed)}")
    line, integers = name_integers(parse_line(text, diagonals=True))
    question = _Question(text, line, integers, op or _inferred(line, reduction), reduction)
    if len(line.inputs) > MOST_OPERANDS or len(question.names) > MOST_NAMES:
        raise PatternError(f"{quote(text)} is more than {MOST_OPERANDS} operands or {MOST_NAMES} names")
    _check_names(question)
    if question.op != "reduce" and reduction != "sum":
        raise PatternError(f"reduction {reduction!r} is for op 'reduce', and {quote(text)} is asked as {question.op!r}")
    return question


def _inferred(line: Line, reduction: Reduction) -> Operation:
    names, result = names_of(line.inputs[0]), names_of(line.output)
    if len(line.inputs) > 1 or len(set(names)) < len(names):
        return "einsum"
    if reduction != "sum":
        return "reduce"
    if set(result) - set(names):
        return "repeat"
    return "reduce" if set(names) - set(result) else "rearrange"


def _check_names(question: _Question) -> None:
    """Which names may be on one side only, and which twice, is what tells the operations apart."""
    quoted, op = quote(question.text), question.op
    given = {name for term in question.terms for name in term}
    if op != "einsum" and len(question.line.inputs) > 1:
        raise PatternError(f"{op} takes one operand, and {quoted} has {len(question.line.inputs)}: use op 'einsum'")
    if op != "einsum":
        parse_line(question.text)  # says which name stands twice
    new = [name for name in question.result if name not in given]
    lost = [name for term in question.terms for name in term if name not in question.result]
    if new and (op != "repeat" or ELLIPSIS in new):
        advice = "" if ELLIPSIS in new else "; only op 'repeat', on one operand, makes a new dim, and needs its size"
        raise PatternError(f"{quote(_shown(new[0]))} is only on the right of {quoted}{_integer_hint(new[0])}{advice}")
    if lost and op in ("rearrange", "repeat"):
        raise PatternError(
            f"{quote(_shown(lost[0]))} is only on the left of {quoted}{_integer_hint(lost[0])}; {op} keeps every name, "
            "op 'reduce' sums over it"
        )


def _integer_hint(name: str) -> str:
    return " (an integer is another dim wherever it stands: name it)" if "#" in name else ""


def _checked(question: _Question, sizes: Mapping[str, int], ellipsis: Sequence[int] | None) -> dict[str, int]:
    """The sizes of every name, `...` and the integers among them, each of them needed and at least 1."""
    names, quoted = question.names, quote(question.text)
    if ELLIPSIS in names and ellipsis is None:
        raise PatternError(f"{quoted} has '...': say which sizes it stands for, as in ...=2,5")
    if ELLIPSIS not in names and ellipsis is not None:
        raise PatternError(f"sizes for '...' are given, but {quoted} has no '...'")
    named = [name for name in names if name not in question.integers and name != ELLIPSIS]
    for name in sizes:
        if name not in named:
            raise PatternError(f"a size is given for {quote(name)}, which is not in {quoted}{near_miss(name, named)}")
    for name, size in (*sizes.items(), *question.integers.items(), *((ELLIPSIS, size) for size in ellipsis or ())):
        if not isinstance(size, int) or size < 1:
            raise PatternError(f"the size of {quote(_shown(name))} in {quoted} is not a whole number of at least 1")
    size_of(tuple(named), sizes)  # says which name has no size
    known = {**sizes, **question.integers, ELLIPSIS: prod(ellipsis or ())}
    if prod(known[name] for name in names) > MOST_POINTS:
        raise PatternError(f"the sizes of {quoted} multiply to more than any machine could walk")
    return known


# ----------------------------------------------------------------------------------------------- what does it cost?


def _counts(question: _Question, order: Order | None) -> tuple[Count, Count]:
    """FLOPs and comparisons, from the names alone."""
    if order is not None:
        steps = (Count.of(step.over, 2 if step.sums else 1) for step in order.steps)
        return sum(steps, Count()), Count()
    before, after = Count.of(question.terms[0]), Count.of(question.result)
    if question.op in ("rearrange", "repeat") or set(question.terms[0]) == set(question.result):
        return Count(), Count()
    if question.reduction in ("max", "min"):
        return Count(), before - after
    return before - after + (after if question.reduction == "mean" else Count()), Count()


def _bytes(
    question: _Question, known: Mapping[str, int], order: Order | None, layout: Movement, stored: Format
) -> tuple[int, int]:
    """What is read and what is written."""
    if layout == "view":
        return 0, 0
    between = sum(storage_bytes(stored, step.elements) for step in order.steps[:-1]) if order else 0
    operands = sum(storage_bytes(stored, prod(known[name] for name in term)) for term in question.terms)
    result = storage_bytes(stored, prod(known[name] for name in question.result))
    return operands + between, result + between


def _hidden_copy_bytes(line: Line, written: Line, spelled: Mapping[str, int], stored: Format) -> int:
    copied = einsum_copies(written, spelled, _summed_by_letter(line, written)).copied_elements
    return sum(2 * storage_bytes(stored, elements) for elements in copied)


def _summed_by_letter(line: Line, written: Line) -> Names:
    """The summed names in torch's order: `...`, A-Z, a-z; einops gives out a-z, A-Z as it meets the names."""
    met = tuple(dict.fromkeys(name for term in line.inputs for name in names_of(term) if name != ELLIPSIS))
    spelled = dict.fromkeys(name for term in written.inputs for name in names_of(term) if name not in met)
    kept = set(names_of(written.output))
    return tuple(name for name in (*spelled, *met[26:], *met[:26]) if name not in kept)


# ------------------------------------------------------------------------------------------------- how is it said?


def _shown(name: str) -> str:
    return name.partition("#")[0]


def _step_texts(question: _Question, order: Order) -> tuple[str, ...]:
    terms = list(question.terms)
    texts = []
    for step in order.steps:
        names = question.result if step is order.steps[-1] else step.names
        sides = [" ".join(map(_shown, term)) for term in (terms[step.left], terms[step.right], names)]
        texts.append(f"{sides[0]}, {sides[1]} -> {sides[2]}".strip())
        terms.append(names)
    return tuple(texts)


def _notes(question: _Question, order: Order | None, layout: Movement, hidden: int, comparisons: Count) -> list[str]:
    """What a reader must know to compare these numbers with others."""
    notes = []
    if layout != "compute" and any(len(dim) > 1 for dim in question.line.output):
        notes.append(f"a {layout} for a contiguous operand; another layout may answer otherwise")
    if any(len(names_of(term)) > len(set(names_of(term))) for term in question.line.inputs):
        notes.append("a name that an operand repeats is read along the diagonal, and only the diagonal is counted")
    if question.op == "reduce" and question.reduction == "mean" and layout == "compute":
        notes.append("a mean is its adds and one divide for each result")
    if comparisons.terms:
        notes.append(f"{question.reduction} compares {comparisons} times; a comparison is not counted as a FLOP")
    if order is None:
        return notes
    lone = [
        name
        for name in reading_order(*question.terms)
        if name not in question.result and sum(name in term for term in question.terms) == 1
    ]
    if lone:
        notes.append(
            f"{', '.join(map(_shown, lone))}: in one operand only; summing it first, as torch does, is not counted"
        )
    if hidden:
        notes.append(
            "hidden copies are those that torch.einsum makes, left to right, to bring operands into the order of bmm"
        )
    if not order.exact:
        notes.append("so many operands are ordered greedily: another order may cost less")
    return notes
