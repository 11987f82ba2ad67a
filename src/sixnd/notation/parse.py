"""What does a line of the notation say?

A line names the dims of some operands and of one result:

    "batch seq d_model, d_model heads d_head -> batch seq heads d_head"

Each operand is a *term*: its dims in memory order. A dim is one name, or several in parentheses, which are folded
into one with the leftmost outermost, as einops has it; `()` and `1` are a dim of size one; `...` stands for any number
of dims (`expand` writes them out). An integer above one is an anonymous dim, a different one wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sixnd.errors import PatternError, near_miss

ELLIPSIS = "..."
_FOLDED = ""  # stands beside an ellipsis that is alone in parentheses: `(...)` is one dim, `...` is many
LONGEST_LINE = 4000
_LONGEST_QUOTE = 80
_TOKEN = re.compile(r"\s*(?:(\.\.\.|…)|([^\W\d]\w*)|(\d+)|([()]))")

Dim = tuple[str, ...]
Term = tuple[Dim, ...]


@dataclass(frozen=True)
class Line:
    """One line: what is read and what comes out. A `Term` is a tuple of dims, a `Dim` a tuple of folded names."""

    inputs: tuple[Term, ...]
    output: Term

    def __str__(self) -> str:
        return ", ".join(map(format_term, self.inputs)) + " -> " + format_term(self.output)


def format_term(term: Term) -> str:
    """Write a term as it would be typed: `(("b",), ("h", "k"))` is `b (h k)`."""
    return " ".join(dim[0] if len(dim) == 1 else f"({' '.join(name for name in dim if name)})" for dim in term)


def names_of(term: Term) -> tuple[str, ...]:
    """List the names of a term from left to right, folded or not."""
    return tuple(name for dim in term for name in dim if name != _FOLDED)


def quote(text: str) -> str:
    """Quote a line for a message, cut short where it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…")


@lru_cache(maxsize=4096)
def parse_line(text: str, diagonals: bool = False) -> Line:
    """Read one line of the notation; with `diagonals` an operand may repeat a name, as einsum's `i i ->` does.

    Raises `PatternError` where the line has no single `->`, unbalanced or nested parentheses, or a name that a term
    repeats. A name of the result that no operand has is left to the caller: `repeat` allows it.

    >>> str(parse_line("b s d,d k->b s k"))
    'b s d, d k -> b s k'
    """
    if len(text) > LONGEST_LINE:
        raise PatternError(f"a line of {len(text)} characters is longer than the {LONGEST_LINE} allowed")
    left, arrow, right = text.partition("->")
    if not arrow or "->" in right:
        raise PatternError(f"{quote(text)} needs exactly one '->', as in 'batch seq d, d k -> batch seq k'")
    if "," in right:
        raise PatternError(f"{quote(text)} has a comma after '->': a line has one result")
    inputs = tuple(_parse_term(part, text) for part in left.split(","))
    line = Line(inputs, _parse_term(right, text))
    for term in line.inputs:
        _reject_repeats(term, text, may_repeat=diagonals)
    _reject_repeats(line.output, text)
    return line


def _reject_repeats(term: Term, line: str, may_repeat: bool = False) -> None:
    seen: set[str] = set()
    for name in names_of(term):
        if name in seen and (name == ELLIPSIS or not may_repeat):
            raise PatternError(f"{quote(name)} stands twice in a term of {quote(line)}: name its dims apart")
        if not name.isdigit():
            seen.add(name)


def _parse_term(text: str, line: str) -> Term:
    dims: list[Dim] = []
    fold: list[str] | None = None
    for token in _tokens(text, line):
        if token == "(":
            if fold is not None:
                raise PatternError(f"parentheses inside parentheses in {quote(line)}")
            fold = []
        elif token == ")":
            if fold is None:
                raise PatternError(f"')' without '(' in {quote(line)}")
            dims.append((ELLIPSIS, _FOLDED) if fold == [ELLIPSIS] else tuple(fold))
            fold = None
        elif fold is not None:
            fold.extend(() if token == "1" else (token,))
        else:
            dims.append(() if token == "1" else (token,))
    if fold is not None:
        raise PatternError(f"'(' without ')' in {quote(line)}")
    return tuple(dims)


def _tokens(text: str, line: str) -> list[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise PatternError(
                f"cannot read {text[at:].strip()[:20]!r} in {quote(line)}: names, numbers, '...' and ( ) only"
            )
        tokens.append(ELLIPSIS if match[1] else match[0].strip())
        at = match.end()
    return tokens


def expand(line: Line, ellipsis: Sequence[int]) -> tuple[Line, dict[str, int]]:
    """Write `...` out as the names `_0 _1 …` (`__0` where a line has `_0` itself) and return it with their sizes.

    >>> str(expand(parse_line("... d -> ..."), [2, 5])[0])
    '_0 _1 d -> _0 _1'
    """
    mark, taken = "_", {name for term in (*line.inputs, line.output) for name in names_of(term)}
    while any(f"{mark}{i}" in taken for i in range(len(ellipsis))):
        mark += "_"
    sizes = {f"{mark}{i}": size for i, size in enumerate(ellipsis)}

    def written(term: Term) -> Term:
        dims: list[Dim] = []
        for dim in term:
            if dim == (ELLIPSIS,):
                dims.extend((name,) for name in sizes)
            elif ELLIPSIS in dim:
                dims.append(tuple(n for name in dim if name for n in (sizes if name == ELLIPSIS else (name,))))
            else:
                dims.append(dim)
        return tuple(dims)

    return Line(tuple(map(written, line.inputs)), written(line.output)), sizes


def name_integers(line: Line) -> tuple[Line, dict[str, int]]:
    """Give every integer dim a name of its own (`2#0`, which no line can have) and return the line with their sizes.

    >>> str(name_integers(parse_line("b 2 -> b 2 (2 3)"))[0])
    'b 2#0 -> b 2#1 (2#2 3#3)'
    """
    sizes: dict[str, int] = {}

    def named(name: str) -> str:
        if not name.isdigit():
            return name
        fresh = f"{name}#{len(sizes)}"
        sizes[fresh] = int(name)
        return fresh

    terms = [tuple(tuple(named(name) for name in dim) for dim in term) for term in (*line.inputs, line.output)]
    return Line(tuple(terms[:-1]), terms[-1]), sizes


def size_of(dim: Dim, sizes: Mapping[str, int]) -> int:
    """Multiply the sizes of the names folded into one dim; raises `PatternError` naming one without a size."""
    total = 1
    for name in dim:
        total *= int(name) if name.isdigit() else _size(name, sizes)
    return total


def _size(name: str, sizes: Mapping[str, int]) -> int:
    if name not in sizes:
        known = ", ".join(list(sizes)[:20]) or "none"
        raise PatternError(f"no size for {quote(name)}; sizes given: {known}{near_miss(name, sizes)}")
    return sizes[name]
