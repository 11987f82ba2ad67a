"""Is the order of a contraction the cheapest there is, and is its cost counted as stated?"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.notation.order import EXACT_OPERANDS, Order, best_order, left_to_right, reading_order

B2 = {"b": 2, "s": 8, "t": 8, "h": 4, "k": 16, "d": 32, "e": 64, "i": 3, "j": 5, "f": 6}

# equation over the sizes above: FLOPs of the best order, FLOPs from left to right
PATTERNS = {
    "sd,de->se": (32768, 32768),
    "bsd,de->bse": (65536, 65536),
    "bshk,bthk->bhst": (16384, 16384),
    "bhst,bthk->bshk": (16384, 16384),
    "bsd,btd->bst": (8192, 8192),
    "ij,jf->fi": (180, 180),
    "bshk,hkd->bsd": (65536, 65536),
    "sde,td->ste": (262144, 262144),
    "s,s->": (16, 16),
    "sd,sd->": (512, 512),
    "sd,sd->s": (512, 512),
    "s,d->sd": (256, 256),
    "sd,e->sde": (16384, 16384),
    "sd,sd->sd": (256, 256),
    "bsd->bd": (448, 448),
    "bsd,btd->b": (8192, 8192),
    "bs,sd->": (1024, 1024),
    "sd,de,ef->sf": (27648, 38912),
    "bsd,de,se->bse": (66560, 66560),
    "i,j,f->ijf": (105, 105),
}


def parts(equation: str) -> tuple[list[str], str]:
    left, _, right = equation.partition("->")
    return left.split(","), right


def points(names: Sequence[str] | set[str], sizes: dict[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


def path_cost(inputs: list[str], output: str, sizes: dict[str, int], path: Sequence[Sequence[int]]) -> tuple[int, int]:
    """FLOPs and largest intermediate of an opt_einsum path, by sets: operands leave the list, the result joins its end.

    A step on one operand is passed over, as sums before a multiplication are not counted here.
    """
    operands, flops, made = [set(term) for term in inputs], 0, []
    for step in path:
        taken = [operands.pop(i) for i in sorted(step, reverse=True)][::-1]
        while len(taken) > 1:
            over = taken[0] | taken[1]
            waiting = set(output).union(*operands, *taken[2:])
            flops += points(over, sizes) * (2 if over - waiting else 1)
            taken[:2] = [over & waiting]
            made.append(points(taken[0], sizes))
        operands.append(taken[0])
    return flops, max(made[:-1], default=0)


def every_path(n_operands: int) -> Iterator[tuple[tuple[int, int], ...]]:
    if n_operands == 1:
        yield ()
        return
    for pair in itertools.combinations(range(n_operands), 2):
        for rest in every_path(n_operands - 1):
            yield (pair, *rest)


@st.composite
def equations(draw: st.DrawFn, most: int) -> tuple[list[str], str, dict[str, int]]:
    n_operands = draw(st.integers(2, most))
    inputs = ["".join(draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=4))) for _ in range(n_operands)]
    used = sorted(set("".join(inputs)))
    output = "".join(draw(st.permutations([name for name in used if draw(st.booleans())])))
    return inputs, output, {name: draw(st.integers(1, 9)) for name in used}


@pytest.mark.parametrize("equation", PATTERNS)
def test_the_twenty_patterns(equation: str) -> None:
    best, written = PATTERNS[equation]
    assert best_order(*parts(equation), B2).flops == best
    assert left_to_right(*parts(equation), B2).flops == written


def test_the_triple_that_opt_einsum_gets_wrong() -> None:
    sizes = {"b": 64, "g": 8, "k": 4096, "d": 128}
    order = best_order(["bgk", "bkd", "bk"], "bgd", sizes)
    assert [(step.left, step.right) for step in order.steps] == [(0, 2), (3, 1)]
    assert order.flops == 64 * 8 * 4096 * (1 + 2 * 128)
    assert order.peak_elements == 64 * 8 * 4096


@pytest.mark.parametrize(
    "equation, sizes, flops, peak_elements",
    [
        ("bc,bde,ce,bea->c", {"a": 4, "b": 4, "c": 2, "d": 3, "e": 4}, 464, 16),
        ("bae,ba,dbe,dea->bd", {"a": 2, "b": 4, "d": 2, "e": 4}, 224, 32),
        ("d,bd,e,ead->abe", {"a": 2, "b": 3, "d": 4, "e": 2}, 120, 12),
        ("d,eac,da,e->acde", {"a": 4, "c": 3, "d": 4, "e": 2}, 136, 24),
    ],
)
def test_of_equal_work_the_smallest_peak(equation: str, sizes: dict[str, int], flops: int, peak_elements: int) -> None:
    order = best_order(*parts(equation), sizes)
    assert (order.flops, order.peak_elements) == (flops, peak_elements)


@given(equations(most=5))
def test_no_pairwise_order_is_cheaper(equation: tuple[list[str], str, dict[str, int]]) -> None:
    inputs, output, sizes = equation
    order = best_order(inputs, output, sizes)
    cheapest = min(path_cost(inputs, output, sizes, path) for path in every_path(len(inputs)))
    assert order.exact
    assert (order.flops, order.peak_elements) == cheapest


@given(equations(most=EXACT_OPERANDS))
@settings(deadline=None)
def test_never_worse_than_opt_einsum(equation: tuple[list[str], str, dict[str, int]]) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    inputs, output, sizes = equation
    ours = best_order(inputs, output, sizes)
    shapes = [tuple(sizes[name] for name in term) for term in inputs]
    for optimizer in ("optimal", "greedy", "dp", "auto"):
        text = ",".join(inputs) + "->" + output
        path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimizer)
        theirs = path_cost(inputs, output, sizes, path)
        assert ours.flops <= theirs[0]
        assert ours.flops < theirs[0] or ours.peak_elements <= theirs[1]


@given(equations(most=6))
def test_the_steps_compute_the_line(equation: tuple[list[str], str, dict[str, int]]) -> None:
    inputs, output, sizes = equation
    order = best_order(inputs, output, sizes)
    draw = np.random.default_rng(0)
    arrays = [draw.integers(-3, 4, [sizes[name] for name in term]) for term in inputs]
    wanted = np.einsum(",".join(inputs) + "->" + output, *arrays)
    terms = [tuple(term) for term in inputs]
    for step in order.steps:
        text = f"{''.join(terms[step.left])},{''.join(terms[step.right])}->{''.join(step.names)}"
        arrays.append(np.einsum(text, arrays[step.left], arrays[step.right]))
        terms.append(step.names)
        assert arrays[-1].size == step.elements
        assert step.sums == (set(step.over) != set(step.names))
    np.testing.assert_array_equal(np.einsum(f"{''.join(terms[-1])}->{output}", arrays[-1]), wanted)


@given(equations(most=5))
def test_names_mean_nothing(equation: tuple[list[str], str, dict[str, int]]) -> None:
    inputs, output, sizes = equation
    renamed = best_order(
        [[name * 2 for name in term] for term in inputs],
        [name * 2 for name in output],
        {name * 2: size for name, size in sizes.items()},
    )
    order = best_order(inputs, output, sizes)
    assert (renamed.flops, renamed.peak_elements) == (order.flops, order.peak_elements)


@given(equations(most=14))
@settings(max_examples=25, deadline=None)
def test_many_operands_are_no_worse_than_as_written_and_say_so(
    equation: tuple[list[str], str, dict[str, int]],
) -> None:
    inputs, output, sizes = equation
    order = best_order(inputs, output, sizes)
    assert order.exact == (len(inputs) <= EXACT_OPERANDS)
    assert order.flops <= left_to_right(inputs, output, sizes).flops
    assert len(order.steps) == len(inputs) - 1
    used = sorted(i for step in order.steps for i in (step.left, step.right))
    assert used == list(range(2 * len(inputs) - 2))


def test_a_long_chain_is_ordered_well_beyond_the_exact_search() -> None:
    names = [f"n{i}" for i in range(13)]
    inputs = list(itertools.pairwise(names))
    sizes = {name: 2 if i == 0 else 50 for i, name in enumerate(names)}
    order = best_order(inputs, (names[0], names[-1]), sizes)
    assert not order.exact
    assert order.flops == 11 * 2 * 2 * 50 * 50  # the narrow end goes first, a matrix-vector product at each step


def test_one_operand_costs_the_adds_of_its_sum() -> None:
    assert best_order(["ij"], "i", {"i": 3, "j": 16}) == Order((), 3 * 16 - 3, 0, True)
    assert best_order(["ij"], "ji", {"i": 3, "j": 16}).flops == 0


def test_sets_of_names_do() -> None:
    order = best_order([frozenset("sd"), frozenset("de")], frozenset("se"), B2)
    assert order.flops == 2 * 8 * 32 * 64


@pytest.mark.parametrize(
    "terms, row",
    [
        (("se", "sd", "de"), "sde"),
        (("bst", "bsd", "btd"), "bstd"),
        (("bhst", "bshk", "bthk"), "bhstk"),
        (("bgd", "bgk", "bkd", "bk"), "bgkd"),
        (("", "ab", "ba"), "ab"),
        ((), ""),
    ],
)
def test_reading_order(terms: tuple[str, ...], row: str) -> None:
    assert "".join(reading_order(*terms)) == row
