"""In which order are several operands best contracted, two at a time?

The result does not depend on the order; the work does: `s d, d e, e f -> s f` costs 2·s·d·e + 2·s·e·f from the left and
2·d·e·f + 2·s·d·f from the right. A step on two operands walks every name that either has. It costs 2 FLOPs a point
(multiply, add) where the step sums a name away, and 1 (multiply) where it sums none: a name can be summed as soon as
neither the result nor an operand still waiting has it.

Counted: pairwise steps over the operands as given. Not counted: that a name which only one operand has could be summed
before the multiplication. Who counts otherwise: opt_einsum charges 2 only by the names of the whole line and breaks
ties by that rule; torch's FLOP counter sees matrix multiplications alone.

The search is exact up to `EXACT_OPERANDS`: the best tree over a set of operands is a best tree over some part of it, a
best tree over the rest, and one step that does not depend on how the two were made. Beyond, a greedy choice joins
operands until that many are left, and the order says that it is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import prod

EXACT_OPERANDS = 7

Names = tuple[str, ...]
Tree = int | tuple["Tree", "Tree"]


@dataclass(frozen=True)
class Step:
    """Two operands become one. The given operands are 0 … n-1, and the result of step i is operand n + i.

    `over` are the names walked, `names` those of the result; `sums` says whether any is summed away. `elements` is the
    size of the result.
    """

    left: int
    right: int
    over: Names
    names: Names
    sums: bool
    flops: int
    elements: int


@dataclass(frozen=True)
class Order:
    """Steps that leave one operand, their FLOPs and the largest intermediate; the last result is no intermediate.

    `exact` says that no other pairwise order costs less. One operand needs no step: summing names away costs one add
    for every element that goes.
    """

    steps: tuple[Step, ...]
    flops: int
    peak_elements: int
    exact: bool


@dataclass(frozen=True)
class _Problem:
    """Operands and output as bits over `names`, whose sizes stand in the same order."""

    names: Names
    sizes: tuple[int, ...]
    operands: tuple[int, ...]
    output: int

    def elements(self, bits: int) -> int:
        return prod(size for i, size in enumerate(self.sizes) if bits >> i & 1)

    def pick(self, bits: int) -> Names:
        return tuple(name for i, name in enumerate(self.names) if bits >> i & 1)

    def kept(self, group: int) -> int:
        """What a group of operands is contracted to: an operand as given, several without the names that are done."""
        if group & (group - 1) == 0:
            return self.operands[group.bit_length() - 1]
        inside = outside = 0
        for i, bits in enumerate(self.operands):
            if group >> i & 1:
                inside |= bits
            else:
                outside |= bits
        return inside & (self.output | outside)


def best_order(
    inputs: Sequence[Sequence[str] | Set[str]], output: Sequence[str] | Set[str], sizes: Mapping[str, int]
) -> Order:
    """The order with the fewest FLOPs and, among those, with the smallest largest intermediate.

    `inputs` and `output` are names, each at most once in a term; `sizes` has every name. Raises `KeyError` for a name
    without a size.

    >>> order = best_order(["bgk", "bkd", "bk"], "bgd", {"b": 2, "g": 4, "k": 64, "d": 8})
    >>> [(step.left, step.right, "".join(step.names), step.flops) for step in order.steps]
    [(0, 2, 'bgk', 512), (3, 1, 'bgd', 8192)]
    """
    problem = _problem(inputs, output, sizes)
    leaves: list[tuple[Tree, int]] = [(i, 1 << i) for i in range(len(inputs))]
    if len(inputs) <= EXACT_OPERANDS:
        return _order(problem, _exact(problem, leaves), exact=True)
    trees = [_exact(problem, _greedy(problem, leaves, rule)) for rule in (_growth, _work)]
    orders = [_order(problem, tree, exact=False) for tree in (*trees, _leftmost(len(inputs)))]
    return min(orders, key=lambda order: (order.flops, order.peak_elements))


def left_to_right(
    inputs: Sequence[Sequence[str] | Set[str]], output: Sequence[str] | Set[str], sizes: Mapping[str, int]
) -> Order:
    """The order in which they are written, which is torch's where opt_einsum is not installed.

    >>> left_to_right(["bgk", "bkd", "bk"], "bgd", {"b": 2, "g": 4, "k": 64, "d": 8}).flops
    12288
    """
    return _order(_problem(inputs, output, sizes), _leftmost(len(inputs)), exact=len(inputs) <= 2)


def reading_order(*terms: Sequence[str]) -> Names:
    """Merge the names of some terms into one row that keeps each term's own order, the earlier term's where two differ.

    >>> "·".join(reading_order("bst", "bsd", "btd"))
    'b·s·t·d'
    """
    rank = {name: i for i, name in enumerate(dict.fromkeys(name for term in terms for name in term))}
    after: dict[str, set[str]] = {name: set() for name in rank}
    for term in terms:
        for first, second in pairwise(term):
            if not _reaches(after, second, first):
                after[first].add(second)
    row: list[str] = []
    while rank:
        free = (name for name in rank if not any(name in after[other] for other in rank))
        row.append(min(free, key=rank.__getitem__))
        del rank[row[-1]]
    return tuple(row)


def _reaches(after: Mapping[str, Set[str]], start: str, goal: str) -> bool:
    todo, seen = [start], {start}
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        todo.extend(after[name] - seen)
        seen |= after[name]
    return False


def _problem(
    inputs: Sequence[Sequence[str] | Set[str]], output: Sequence[str] | Set[str], sizes: Mapping[str, int]
) -> _Problem:
    terms = [tuple(sorted(term) if isinstance(term, Set) else term) for term in (output, *inputs)]
    names = reading_order(*terms)
    bit = {name: 1 << i for i, name in enumerate(names)}
    bits = [sum(bit[name] for name in term) for term in terms]
    return _Problem(names, tuple(sizes[name] for name in names), tuple(bits[1:]), bits[0])


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to contract some groups, and what it costs up to there."""

    tree: Tree
    flops: int = 0
    peak: int = 0
    written: int = 0

    def key(self) -> tuple[int, int, int]:
        return self.flops, self.peak, self.written


def _exact(problem: _Problem, leaves: Sequence[tuple[Tree, int]]) -> Tree:
    """The best tree over some groups of operands, by the best trees over every set of them."""
    every = (1 << len(leaves)) - 1
    kept = [0] * (every + 1)
    elements: dict[int, int] = {}
    best: list[_Way] = [_Way(leaves[0][0])] * (every + 1)
    for chosen in range(1, every + 1):
        kept[chosen] = problem.kept(sum(group for i, (_, group) in enumerate(leaves) if chosen >> i & 1))
        if chosen & (chosen - 1) == 0:
            best[chosen] = _Way(leaves[chosen.bit_length() - 1][0])
            continue
        made = 0 if chosen == every else problem.elements(kept[chosen])
        ways = []
        for part in _parts(chosen):
            left, right, over = best[part], best[chosen ^ part], kept[part] | kept[chosen ^ part]
            if over not in elements:
                elements[over] = problem.elements(over)
            flops = left.flops + right.flops + elements[over] * (2 if over != kept[chosen] else 1)
            tree = (left.tree, right.tree)
            ways.append(_Way(tree, flops, max(left.peak, right.peak, made), left.written + right.written + made))
        best[chosen] = min(ways, key=_Way.key)
    return best[every].tree


def _parts(chosen: int) -> list[int]:
    """Every part of a set of bits that holds its lowest bit and is not all of it, large parts first."""
    lowest, parts = chosen & -chosen, []
    part = rest = chosen ^ lowest
    while part:
        part = (part - 1) & rest
        parts.append(part | lowest)
    return parts


def _greedy(
    problem: _Problem, leaves: Sequence[tuple[Tree, int]], rule: Callable[[_Problem, int, int], int]
) -> list[tuple[Tree, int]]:
    """Join the two groups that the rule likes best until few enough for the exact search are left."""
    nodes = list(leaves)
    while len(nodes) > EXACT_OPERANDS:
        pairs = [(i, j) for j in range(len(nodes)) for i in range(j)]
        i, j = min(pairs, key=lambda pair: rule(problem, nodes[pair[0]][1], nodes[pair[1]][1]))
        joined: Tree = (nodes[i][0], nodes[j][0])
        group = nodes[i][1] | nodes[j][1]
        nodes = [node for k, node in enumerate(nodes) if k not in (i, j)] + [(joined, group)]
    return nodes


def _growth(problem: _Problem, left: int, right: int) -> int:
    """How many elements a step adds to those that are kept: opt_einsum's greedy rule."""
    before = problem.elements(problem.kept(left)) + problem.elements(problem.kept(right))
    return problem.elements(problem.kept(left | right)) - before


def _work(problem: _Problem, left: int, right: int) -> int:
    """How many points a step walks."""
    return problem.elements(problem.kept(left) | problem.kept(right))


def _leftmost(n_operands: int) -> Tree:
    tree: Tree = 0
    for i in range(1, n_operands):
        tree = (tree, i)
    return tree


def _order(problem: _Problem, tree: Tree, exact: bool) -> Order:
    steps: list[Step] = []
    _walk(problem, tree, steps)
    peak = max((step.elements for step in steps[:-1]), default=0)
    if len(problem.operands) == 1:
        (operand,) = problem.operands
        return Order((), problem.elements(operand) - problem.elements(operand & problem.output), 0, exact)
    return Order(tuple(steps), sum(step.flops for step in steps), peak, exact)


def _walk(problem: _Problem, tree: Tree, steps: list[Step]) -> tuple[int, int]:
    """Add the steps of a tree; returns the number that its result goes by, and its group of operands."""
    if isinstance(tree, int):
        return tree, 1 << tree
    (left, left_group), (right, right_group) = (_walk(problem, branch, steps) for branch in tree)
    over = problem.kept(left_group) | problem.kept(right_group)
    result = problem.kept(left_group | right_group)
    flops = problem.elements(over) * (2 if over != result else 1)
    step = Step(left, right, problem.pick(over), problem.pick(result), over != result, flops, problem.elements(result))
    steps.append(step)
    return len(problem.operands) + len(steps) - 1, left_group | right_group
