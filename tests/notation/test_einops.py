"""Does one line cost what it should, by names and sizes alone, and is a line without sense refused?"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.errors import PatternError
from sixnd.formats import get_format
from sixnd.notation.einops import MOST_OPERANDS, Count, LineCost, flops_formula, line_cost

OUTSIDE = Path(__file__).parents[3] / "shared" / "data" / "einops" / "cases.json"

Facts = dict[str, Any]

# id: line, sizes (those of `...` as a list), what must hold. bfloat16; hidden copies as torch 2.13 makes them.
GOLDEN: dict[str, tuple[str, Facts, Facts]] = {
    "matmul": (
        "seq hidden, hidden out -> seq out",
        {"seq": 3, "hidden": 16, "out": 32},
        {"flops": 3072, "formula": "2·seq·hidden·out", "read_bytes": 1120, "written_bytes": 192, "out_shape": (3, 32)},
    ),
    "batched": (
        "batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2",
        {"batch": 2, "seq1": 3, "seq2": 4, "hidden": 16},
        {"flops": 768, "formula": "2·batch·seq1·seq2·hidden", "read_bytes": 448, "written_bytes": 48},
    ),
    "ellipsis": (
        "... hidden, hidden out -> ... out",
        {"...": [2, 5], "hidden": 4, "out": 3},
        {"flops": 240, "formula": "2·...·hidden·out", "read_bytes": 104, "written_bytes": 60, "out_shape": (2, 5, 3)},
    ),
    "logits": (
        "b s h k, b t h k -> b h s t",
        {"b": 2, "s": 3, "t": 4, "h": 2, "k": 8},
        {"flops": 768, "formula": "2·b·h·s·t·k", "hidden_copy_bytes": 896, "op": "einsum", "layout": "compute"},
    ),
    "values": (
        "b h s t, b t h k -> b s h k",
        {"b": 2, "s": 3, "t": 4, "h": 2, "k": 8},
        {"flops": 768, "read_bytes": 352, "written_bytes": 192, "hidden_copy_bytes": 512},
    ),
    "outer": (
        "seq, hidden -> seq hidden",
        {"seq": 3, "hidden": 16},
        {"flops": 48, "formula": "seq·hidden", "read_bytes": 38, "written_bytes": 96, "hidden_copy_bytes": 0},
    ),
    "inner": ("i j, i j ->", {"i": 3, "j": 16}, {"flops": 96, "formula": "2·i·j", "out_shape": ()}),
    "elementwise": ("i j, i j -> i j", {"i": 3, "j": 16}, {"flops": 48, "formula": "i·j", "written_bytes": 96}),
    "lone names": ("b s d, b t d -> b", {"b": 2, "s": 3, "t": 4, "d": 16}, {"flops": 768, "hidden_copy_bytes": 0}),
    "trace": ("i i ->", {"i": 5}, {"op": "einsum", "flops": 4, "formula": "i − 1", "read_bytes": 10}),
    "diagonal": ("i i -> i", {"i": 5}, {"op": "einsum", "flops": 0, "layout": "view", "read_bytes": 0}),
    "chain": (
        "s d, d e, e f -> s f",
        {"s": 3, "d": 16, "e": 32, "f": 64},
        {
            "flops": 15360,
            "formula": "2·s·d·e + 2·s·e·f",
            "read_bytes": 5408,
            "written_bytes": 576,
            "order": ("s d, d e -> s e", "s e, e f -> s f"),
            "peak_intermediate_elements": 96,
        },
    ),
    "triple": (
        "b g k, b k d, b k -> b g d",
        {"b": 2, "g": 4, "k": 64, "d": 8},
        {
            "flops": 8704,
            "formula": "b·g·k + 2·b·g·k·d",
            "read_bytes": 4352,
            "written_bytes": 1152,
            "order": ("b g k, b k -> b g k", "b g k, b k d -> b g d"),
            "flops_left_to_right": 12288,
            "hidden_copy_bytes": 16384,
        },
    ),
    "folded einsum": (
        "b s (h k), b t (h k) -> (b h) s t",
        {"b": 2, "s": 3, "t": 4, "h": 2, "k": 8},
        {"flops": 768, "out_shape": (4, 3, 4), "hidden_copy_bytes": 896},
    ),
    "einsum that moves": ("i j -> (j i)", {"i": 3, "j": 16}, {"flops": 0, "layout": "copy", "written_bytes": 96}),
    "split": (
        "b s (h k) -> b h s k",
        {"b": 2, "s": 3, "h": 2, "k": 8},
        {"op": "rearrange", "layout": "view", "intensity": None, "out_shape": (2, 2, 3, 8), "hidden_copy_bytes": None},
    ),
    "patches": (
        "b c (h p1) (w p2) -> b (h w) (p1 p2 c)",
        {"b": 2, "c": 3, "h": 2, "w": 2, "p1": 4, "p2": 4},
        {"layout": "copy", "read_bytes": 768, "written_bytes": 768, "intensity": 0.0, "out_shape": (2, 4, 48)},
    ),
    "fold of an ellipsis": ("b ... -> b (...)", {"b": 2, "...": [3, 4]}, {"layout": "view", "out_shape": (2, 12)}),
    "ellipsis behind": ("b ... -> (... b)", {"b": 2, "...": [3, 4]}, {"layout": "copy", "out_shape": (24,)}),
    "sum": (
        "b s d -> b d",
        {"b": 2, "s": 3, "d": 16},
        {"op": "reduce", "flops": 64, "formula": "b·s·d − b·d", "read_bytes": 192, "written_bytes": 64},
    ),
    "sum of all": ("i j ->", {"i": 3, "j": 16}, {"op": "reduce", "flops": 47, "formula": "i·j − 1"}),
    "pooling": (
        "b (h 2) (w 2) -> b h w",
        {"b": 1, "h": 4, "w": 4},
        {"op": "reduce", "flops": 48, "formula": "b·h·2·w·2 − b·h·w"},
    ),
    "repeat": ("i j -> r i j", {"i": 3, "j": 16, "r": 5}, {"op": "repeat", "layout": "view", "out_shape": (5, 3, 16)}),
    "repeat inside": (
        "i j -> i (j r)",
        {"i": 3, "j": 16, "r": 5},
        {"op": "repeat", "layout": "copy", "flops": 0, "read_bytes": 96, "written_bytes": 480, "out_shape": (3, 80)},
    ),
    "upsampling": ("h w -> (h 2) (w 2)", {"h": 2, "w": 3}, {"op": "repeat", "layout": "copy", "written_bytes": 48}),
    "new dim": ("b d -> b 1 d", {"b": 2, "d": 4}, {"op": "rearrange", "layout": "view", "out_shape": (2, 1, 4)}),
}

# line, sizes, further arguments: what the refusal says
REFUSED: dict[str, tuple[str, Facts, Facts, str]] = {
    "from nowhere": ("a b, b c -> a d", {"a": 1, "b": 2, "c": 3}, {}, "'d' is only on the right"),
    "from nowhere, one operand": ("a -> a b", {"a": 1, "b": 2}, {"op": "einsum"}, "'b' is only on the right"),
    "ellipsis from nowhere": ("a -> ... a", {"a": 1, "...": [2]}, {}, "'...' is only on the right"),
    "no size": ("a b -> b", {"a": 2}, {}, "no size for 'b'; sizes given: a"),
    "no size to repeat": ("a -> a r", {"a": 2}, {}, "no size for 'r'"),
    "no size in a split": ("(a b) -> a b", {"a": 2}, {}, "no size for 'b'"),
    "unknown size": ("hidden -> hidden", {"hiden": 2}, {}, "given for 'hiden'.*did you mean 'hidden'"),
    "size of an integer": ("a (b 2) -> a b", {"a": 2, "b": 2, "2": 2}, {}, "given for '2'"),
    "zero": ("a b -> b", {"a": 0, "b": 1}, {}, "size of 'a' .* at least 1"),
    "negative": ("a b -> b", {"a": 3, "b": -1}, {}, "size of 'b' .* at least 1"),
    "no number": ("a b -> b", {"a": None, "b": 1}, {}, "size of 'a' .* whole number"),
    "part of one": ("a b -> b", {"a": 1.5, "b": 1}, {}, "size of 'a' .* whole number"),
    "zero written out": ("a 0 -> a", {"a": 1}, {}, "size of '0' .* at least 1"),
    "zero in an ellipsis": ("... a -> a", {"a": 1, "...": [2, 0]}, {}, r"size of '\.\.\.' .* at least 1"),
    "no ellipsis sizes": ("... a -> a", {"a": 1}, {}, r"\.\.\.=2,5"),
    "no ellipsis": ("a -> a", {"a": 1, "...": [2]}, {}, r"has no '\.\.\.'"),
    "dropped": ("a b -> a", {"a": 1, "b": 2}, {"op": "rearrange"}, "'b' is only on the left.*op 'reduce'"),
    "dropped by repeat": ("a b -> a r", {"a": 1, "b": 2, "r": 3}, {}, "'b' is only on the left"),
    "new in reduce": ("a b -> a c", {"a": 1, "b": 2, "c": 3}, {"op": "reduce"}, "'c' is only on the right"),
    "integer": ("a (b 2) -> a b 2", {"a": 1, "b": 2}, {"op": "rearrange"}, "an integer is another dim"),
    "two operands": ("a, b -> a b", {"a": 1, "b": 2}, {"op": "rearrange"}, "takes one operand"),
    "stands twice": ("a a -> a", {"a": 2}, {"op": "reduce"}, "'a' stands twice"),
    "wrong op": ("a -> a", {"a": 2}, {"op": "rearange"}, "did you mean 'rearrange'"),
    "wrong reduction": ("a ->", {"a": 2}, {"reduction": "median"}, "none of sum, mean"),
    "reduction of nothing": ("a, b -> a b", {"a": 1, "b": 2}, {"reduction": "max"}, "for op 'reduce'"),
    "parenthesis": ("(a b -> a b", {"a": 1, "b": 2}, {}, "'\\(' without '\\)'"),
    "operands": (",".join(["a"] * (MOST_OPERANDS + 1)) + "-> a", {"a": 1}, {}, "more than"),
    "names": (" ".join(f"n{i}" for i in range(65)) + "->", {}, {}, "more than"),
    "too large": ("a b ->", {"a": 10**200, "b": 10**200}, {}, "any machine"),
}


def cost_of(text: str, sizes: Mapping[str, Any], **more: Any) -> LineCost:
    """The cost of a line whose ellipsis stands among its sizes, as a command would have it."""
    named = {name: size for name, size in sizes.items() if name != "..."}
    return line_cost(text, named, ellipsis=sizes.get("..."), **more)


@pytest.mark.parametrize("case", GOLDEN)
def test_golden(case: str) -> None:
    text, sizes, facts = GOLDEN[case]
    op = "einsum" if case.startswith("einsum") else None
    cost = asdict(cost_of(text, sizes, op=op))
    assert {key: cost[key] for key in facts} == facts


def outside_cases() -> list[Any]:
    if not OUTSIDE.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no table of cases at {OUTSIDE}"))]
    cases = json.loads(OUTSIDE.read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if "*" not in case["pattern"]]


@pytest.mark.parametrize("inferred", [False, True])
@pytest.mark.parametrize("case", outside_cases())
def test_the_table_of_cases(case: Facts, inferred: bool) -> None:
    sizes = {"..." if name == "dots" else name: size for name, size in case["sizes"].items()}
    mean = "divides" in case["flops_formula"]
    op = None if inferred else case["call"].removeprefix("einops.")
    cost = cost_of(case["pattern"], sizes, op=op, reduction="mean" if mean else "sum")
    assert cost.flops == case["flops"]
    assert (cost.read_bytes, cost.written_bytes) == (case["bytes_read_bf16"], case["bytes_written_bf16"])
    assert cost.layout == case["view_or_copy"]
    assert cost.out_shape == tuple(case["out_shape"])
    assert cost.hidden_copy_bytes == case["hidden_copy_bytes_bf16_torch_einsum"]
    assert cost.intensity == (None if case["intensity"] is None else pytest.approx(case["intensity"], abs=5e-7))


# line: sizes, and the bytes of bfloat16 that the clones inside einops.einsum on torch 2.13 read and write
COPIED: dict[str, tuple[Facts, int]] = {
    "... s d, ... d e -> e ... s": ({"...": [2, 3], "s": 4, "d": 5, "e": 6}, 0),
    "s ... d, ... s e -> d e": ({"...": [2, 3], "s": 4, "d": 5, "e": 6}, 480),
    "s ..., ... s ->": ({"...": [2, 3], "s": 4}, 96),
    "s a d, d b s -> a b": ({"s": 4, "a": 2, "d": 5, "b": 3}, 400),
    "s a d, t d, s t b -> b a": ({"s": 4, "a": 2, "d": 5, "b": 3, "t": 7}, 160),
    "i s i, s i -> s": ({"i": 4, "s": 3}, 0),
} | {
    text: (sizes, facts["hidden_copy_bytes"])
    for text, sizes, facts in GOLDEN.values()
    if facts.get("hidden_copy_bytes") is not None and "(" not in text
}


@pytest.mark.parametrize("text", COPIED)
def test_hidden_copies(text: str) -> None:
    sizes, copied_bytes = COPIED[text]
    assert cost_of(text, sizes, op="einsum").hidden_copy_bytes == copied_bytes


@pytest.mark.parametrize("text", COPIED)
def test_hidden_copies_are_the_clones_of_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    einops = pytest.importorskip("einops")
    sizes, copied_bytes = COPIED[text]
    shapes = [
        [size for name in term.split() for size in (sizes["..."] if name == "..." else [sizes[name]])]
        for term in text.partition("->")[0].split(",")
    ]
    operands = [torch.zeros(shape, dtype=torch.bfloat16) for shape in shapes]
    with torch.backends.opt_einsum.flags(enabled=False), torch.profiler.profile(record_shapes=True) as profile:
        result = einops.einsum(*operands, text)
    clones = [event.input_shapes[0] for event in profile.events() if event.name == "aten::clone"]
    assert copied_bytes == sum(2 * 2 * math.prod(shape) for shape in clones)
    assert cost_of(text, sizes, op="einsum").out_shape == tuple(result.shape)


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    text, sizes, more, why = REFUSED[case]
    with pytest.raises(PatternError) as refusal:
        cost_of(text, sizes, **more)
    assert re.search(why, str(refusal.value))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    "reduction, flops, comparisons",
    [("sum", 64, 0), ("prod", 64, 0), ("mean", 96, 0), ("max", 0, 64), ("min", 0, 64)],
)
def test_reductions_count_apart(reduction: Any, flops: int, comparisons: int) -> None:
    cost = line_cost("b s d -> b d", {"b": 2, "s": 3, "d": 16}, reduction=reduction)
    assert (cost.flops, cost.comparisons) == (flops, comparisons)
    assert (cost.read_bytes, cost.written_bytes, cost.layout) == (192, 64, "compute")


@pytest.mark.parametrize("reduction", ["sum", "mean", "max"])
def test_a_reduction_over_nothing_is_a_rearrangement(reduction: Any) -> None:
    reduced = line_cost("b s -> s b", {"b": 2, "s": 3}, op="reduce", reduction=reduction)
    assert reduced == replace(line_cost("b s -> s b", {"b": 2, "s": 3}), op="reduce")


def test_a_sum_is_the_same_as_einsum_and_as_reduce() -> None:
    sizes = {"i": 3, "j": 5, "k": 7}
    summed = line_cost("i j k -> k i", sizes, op="einsum")
    assert summed.hidden_copy_bytes == 0
    assert replace(summed, op="reduce", hidden_copy_bytes=None) == line_cost("i j k -> k i", sizes)


def test_bytes_follow_the_format() -> None:
    sizes = {"s": 3, "d": 40, "k": 8}
    cost = line_cost("s d, d k -> s k", sizes, format=get_format("mxfp4"))
    assert (cost.read_bytes, cost.written_bytes) == (4 * 17 + 10 * 17, 17)
    cost = line_cost("s d, d k -> s k", sizes, format=get_format("fp32"))
    assert (cost.read_bytes, cost.written_bytes) == (4 * (120 + 320), 4 * 24)


def test_many_operands_say_that_the_order_may_not_be_best() -> None:
    names = [f"n{i}" for i in range(10)]
    text = ", ".join(f"{a} {b}" for a, b in pairwise(names)) + " -> n0 n9"
    cost = line_cost(text, dict.fromkeys(names, 4))
    assert any("greedily" in note for note in cost.notes)
    assert len(cost.order) == 8


def test_formulas_without_sizes() -> None:
    assert flops_formula("b s d, d k -> b s k") == "2·b·s·d·k"
    assert flops_formula("b g k, b k d, b k -> b g d") == "3·b·g·k·d"  # a product, then a product with a sum
    assert flops_formula("... d, d -> ...") == "2·...·d"
    assert flops_formula("b s -> s b") == "0"
    with pytest.raises(PatternError, match="only on the right"):
        flops_formula("a, b -> c")


def test_a_count_is_arithmetic() -> None:
    twice = Count.of("ab") + Count.of("ba")
    assert str(twice) == "2·a·b"
    assert str(twice - Count.of("ab", 3)) == "−a·b"
    assert str(twice - twice) == "0"
    assert str(Count.of("", 4) - Count.of("a")) == "4 − a"
    assert (Count.of("ab", 3) - Count.of("")).value({"a": 2, "b": 5}) == 29


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """An einsum or a reduction over names of one letter."""
    terms = draw(st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), min_size=1, max_size=5))
    used = sorted({name for term in terms for name in term})
    output = draw(st.permutations([name for name in used if draw(st.booleans())]))
    return ", ".join(map(" ".join, terms)) + " -> " + " ".join(output), {name: draw(st.integers(1, 9)) for name in used}


@given(lines())
def test_the_formula_is_the_number(line: tuple[str, dict[str, int]]) -> None:
    text, sizes = line
    cost = line_cost(text, sizes)
    value = 0
    for sign, product in re.findall(r"(^|[+−])\s*([^+−]+)", cost.formula):
        factors = [sizes[factor] if factor in sizes else int(factor) for factor in product.strip().split("·")]
        value += (-1 if sign == "−" else 1) * math.prod(factors)
    assert value == cost.flops
    assert cost.flops <= cost.flops_left_to_right


@given(lines(), st.integers(2, 5))
def test_a_batch_of_n_costs_n_times_as_much(line: tuple[str, dict[str, int]], n: int) -> None:
    text, sizes = line
    left, _, right = text.partition("->")
    batched = ", ".join("z " + term for term in left.split(",")) + " -> z " + right
    one, many = (line_cost(batched, {**sizes, "z": size}) for size in (1, n))
    assert many.flops == n * one.flops
    assert many.read_bytes == n * one.read_bytes
    assert many.written_bytes == n * one.written_bytes


@given(lines())
def test_names_mean_nothing(line: tuple[str, dict[str, int]]) -> None:
    text, sizes = line
    renamed = re.sub(r"(\w)", r"long_\1", text)
    cost = line_cost(renamed, {f"long_{name}": size for name, size in sizes.items()})
    plain = line_cost(text, sizes)
    assert replace(cost, formula="", order=(), notes=()) == replace(plain, formula="", order=(), notes=())


@given(
    text=st.text("abc12 ,()->._…", max_size=30) | st.text(max_size=30),
    sizes=st.dictionaries(st.sampled_from("abc_"), st.integers(-1, 10**9), max_size=4),
    ellipsis=st.none() | st.lists(st.integers(-1, 9), max_size=3),
    op=st.sampled_from((None, "einsum", "rearrange", "reduce", "repeat", "")),
    reduction=st.sampled_from(("sum", "mean", "max", "")),
)
@settings(max_examples=500)
def test_anything_else_is_a_pattern_error(text: str, sizes: Any, ellipsis: Any, op: Any, reduction: Any) -> None:
    try:
        cost = line_cost(text, sizes, ellipsis=ellipsis, op=op, reduction=reduction)
    except PatternError:
        return
    assert cost.flops >= 0


@given(
    left=st.text("ab2 ,().", max_size=14), right=st.text("ab2 ().", max_size=8), op=st.sampled_from((None, "einsum"))
)
@settings(max_examples=500)
def test_nearly_a_line_is_a_cost_or_a_pattern_error(left: str, right: str, op: Any) -> None:
    try:
        cost = line_cost(f"{left}->{right}", {name: 3 for name in "ab" if name in left + right}, op=op)
    except PatternError:
        return
    assert (cost.intensity is None) == (cost.read_bytes + cost.written_bytes == 0)
