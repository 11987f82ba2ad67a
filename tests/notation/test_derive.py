"""Do cost, backward and what is kept follow from the lines alone?"""

import re
from fractions import Fraction

import lines
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import HALF, SINGLE, derive, gpt_block, kept_bytes, ledger, matrix_flops, mlp, ops, same, squared_loss

from sixnd.errors import PatternError
from sixnd.notation import kinds
from sixnd.notation.cost import contraction, contraction_flops
from sixnd.notation.program import Mask, Program, product

SIZES = lines.GPT_SIZES
SMALL = st.integers(1, 6)
FEW = settings(max_examples=40, deadline=None)


def gpt_sizes(b, s, a, d_head, ratio=4):
    h = a * d_head
    return {
        "batch": b,
        "seq": s,
        "query": s,
        "key": s,
        "d_model": h,
        "heads": a,
        "one": 1,
        "kv": a,
        "group": 1,
        "d_head": d_head,
        "d_value": d_head,
        "d_ff": ratio * h,
    }


def n_matrix_params(program, sizes):
    return sum(product(p.dims, sizes) for p in program.parameters if p.summed)


# ------------------------------------------------------------------------------------------- FLOPs


@given(SMALL, SMALL, SMALL, SMALL, st.sampled_from(["math", "flash"]))
def test_forward_is_two_flops_a_parameter_and_token_and_attention(b, s, a, d_head, attention):
    sizes, program = gpt_sizes(b, s, a, d_head), gpt_block(attention=attention)
    n = n_matrix_params(program, sizes)
    assert n == 12 * (a * d_head) ** 2
    assert matrix_flops(derive(program, sizes), "forward") == 2 * n * b * s + 4 * b * s * s * a * d_head


@pytest.mark.parametrize("attention", ["math", "flash"])
def test_backward_is_twice_forward_where_the_input_needs_a_gradient(attention):
    block = derive(gpt_block(attention=attention), gpt_sizes(2, 8, 3, 5))
    assert matrix_flops(block, "backward") == 2 * matrix_flops(block, "forward")


def test_fused_attention_runs_two_matmuls_forward_four_backward_and_one_again():
    sizes = gpt_sizes(2, 16, 3, 4)
    pairs = 2 * 2 * 3 * 4 * 16 * 16  # 2 x batch x heads x d_head x query x key: one matmul
    by = ledger(derive(gpt_block(attention="flash"), sizes)).totals(lambda op: (op.kind, op.phase))
    assert by["attention", "forward"].matrix_flops == 2 * pairs
    assert by["attention", "backward"].matrix_flops == 4 * pairs
    assert by["attention", "recompute"].matrix_flops == pairs


def test_math_attention_stores_scores_and_makes_nothing_again():
    phases = ledger(derive(gpt_block(), gpt_sizes(2, 16, 3, 4))).totals(lambda op: op.phase)
    assert set(phases) == {"forward", "backward"}


@given(st.integers(2, 6), st.integers(1, 8), st.integers(1, 8))
def test_a_bare_deep_network_whose_input_needs_no_gradient(depth, batch, d):
    sizes = {"batch": batch, "d": d, "k": d}
    blocks = [derive(mlp(needs_grad=i > 0, path=f"layer{i}"), sizes) for i in range(depth)]
    cost = ledger(*blocks, derive(squared_loss(), sizes)).totals(lambda op: op.phase)
    assert cost["forward"].matrix_flops == 2 * depth * batch * d**2
    assert cost["backward"].matrix_flops == (4 * depth - 2) * batch * d**2


@pytest.mark.parametrize(
    "line, matrix, vector",
    [
        ("b d, d k -> b k", 2 * 2 * 3 * 5, 0),
        ("b d, d -> b", 2 * 2 * 3, 0),
        ("b d, b d -> ", 2 * 2 * 3, 0),
        ("b d, k -> b d k", 0, 2 * 3 * 5),
        ("b d, d -> b d", 0, 2 * 3),
        ("b d, b k, b -> d k", 2 * 2 * 3 * 5, 0),
    ],
)
def test_a_line_costs_two_flops_a_point_where_a_name_is_summed(line, matrix, vector):
    terms = tuple(tuple(term.split()) for term in line.split("->")[0].split(","))
    flops = contraction_flops(contraction(terms, tuple(line.split("->")[1].split())), {"b": 2, "d": 3, "k": 5})
    assert (flops.matrix, flops.masked, flops.vector) == (matrix, matrix, vector)


@given(st.lists(st.integers(1, 5), min_size=5, max_size=5))
def test_grouped_queries_need_no_case(sizes):
    b, s, kv, group, d = sizes
    named = {"batch": b, "query": s, "key": s, "kv": kv, "group": group, "d_head": d, "d_value": d}
    p = Program("p", HALF)
    q = p.input("q", "batch query kv group d_head", needs_grad=True)
    k, v = (p.input(name, "batch key kv d_head", needs_grad=True) for name in "kv")
    line = "batch query kv group d_head, batch key kv d_head, batch key kv d_value -> batch query kv group d_value"
    p.exit = p.apply(kinds.ATTENTION, "core", line, q, k, v, mask=Mask(), work="batch kv group query key")
    block = derive(p, named)
    assert matrix_flops(block, "forward") == 4 * b * s * s * kv * group * d
    assert matrix_flops(block, "backward") == 8 * b * s * s * kv * group * d
    gradients = {t.name.split(".grad")[0]: t.n_elements for t in backward_writes(block)}
    assert gradients["p.q"] == b * s * kv * group * d
    assert gradients["p.k"] == gradients["p.v"] == b * s * kv * d  # summed over the group: no copies of a head


def backward_writes(block):
    return [spec for op in ops(ledger(block).body) if op.phase == "backward" for spec in op.outputs]


# ------------------------------------------------------------------------------------------- masks


@given(st.integers(1, 40), st.integers(0, 40), st.none() | st.integers(1, 90))
def test_masks_let_through_exactly_the_pairs_that_are_listed(queries, earlier, window):
    keys = queries + earlier
    listed = [
        (i, j)
        for i in range(queries)
        for j in range(keys)
        if j <= i + earlier and (window is None or i + earlier - j < window)
    ]
    assert Mask(window=window).pairs({"query": queries, "key": keys}) == len(listed)


@pytest.mark.parametrize("attention", ["math", "flash"])
@pytest.mark.parametrize("window", [None, 1, 5, 16, 99])
def test_a_mask_replaces_the_product_of_queries_and_keys_in_every_line(attention, window):
    s, mask = 16, Mask(window=window)
    pairs = mask.pairs({"query": s, "key": s})
    block = derive(gpt_block(attention=attention, mask=mask), gpt_sizes(2, s, 3, 4))
    for phase in ("forward", "backward"):
        dense, masked = (matrix_flops(block, phase, masked=which) for which in (False, True))
        per_pair = (dense - masked) // (s * s - pairs) if pairs < s * s else 0
        assert per_pair == (2 if phase == "backward" else 1) * 4 * 2 * 3 * 4
        assert dense - masked == per_pair * (s * s - pairs)


# ------------------------------------------------------------------------------------------- what is kept


def linear_and(kind):
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    h = p.apply(kind, "act", same("b k"), p.linear("up", "b d, d k -> b k", x))
    p.exit = p.linear("down", "b k, k d -> b d", h)
    return p


@pytest.mark.parametrize(
    "kind, wide",
    [(kinds.RELU, 1), (kinds.GELU, 2), (kinds.SILU, 2), (kinds.RELU2, 2), (kinds.SIGMOID, 1), (kinds.SCALE, 1)],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_activation_keeps_its_output_or_also_its_input(kind, wide):
    b, d, k = 3, 5, 7
    assert kept_bytes(derive(linear_and(kind), {"b": b, "d": d, "k": k})) == 2 * b * (d + wide * k)


def test_an_operand_is_kept_once_however_many_lines_read_it():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    q, k, v = (p.linear(name, "b d, d k -> b k", x) for name in "qkv")
    p.exit = p.apply(kinds.ADD, "sum", "b k, b k -> b k", p.apply(kinds.ADD, "two", "b k, b k -> b k", q, k), v)
    assert kept_bytes(derive(p, {"b": 3, "d": 5, "k": 7})) == 2 * 3 * 5


def test_an_operand_that_is_read_twice_by_one_line_is_read_once_from_memory():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    p.exit = p.apply(kinds.MULTIPLY, "square", "b d, b d -> b d", x, x)
    forward = next(ops(ledger(derive(p, {"b": 3, "d": 5})).body))
    assert (forward.cost.read_bytes, forward.cost.written_bytes) == (30, 30)


def test_a_mask_is_one_byte_an_element_and_a_view_moves_nothing():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    x = p.apply(kinds.VIEW, "view", "b d -> b d", x)
    p.exit = p.apply(kinds.DROPOUT, "dropout", same("b d"), x)
    block = derive(p, {"b": 3, "d": 5})
    assert {spec.role: spec.n_bytes for spec in block.kept.values()} == {"mask": 15}
    assert [op.kind for op in ops(ledger(block).body)] == ["dropout", "dropout"]


def test_nothing_is_kept_where_there_is_no_backward():
    p = Program("p", HALF, trains=False)
    x = p.entry = p.input("x", "b d", needs_grad=False)
    x = p.linear("up", "b d, d k -> b k", x)
    p.exit = p.apply(kinds.DROPOUT, "dropout", same("b k"), x)
    assert derive(p, {"b": 3, "d": 5, "k": 7}).kept == {}


# ------------------------------------------------------------------------------------------- which gradients


def low_rank_adapter():
    """A frozen matrix with a trained low-rank one beside it."""
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    frozen = Program("p", HALF, trains=False).parameter("w", "d k", ("d",))
    y = p.linear("w", "b d, d k -> b k", x, tied=frozen)
    low = p.linear("down", "b d, d r -> b r", x)
    p.exit = p.apply(kinds.ADD, "sum", "b k, b k -> b k", y, p.linear("up", "b r, r k -> b k", low))
    return p


def test_frozen_parts_cost_only_the_gradient_that_passes_through():
    b, d, k, r = 8, 5, 7, 2
    block = derive(low_rank_adapter(), {"b": b, "d": d, "k": k, "r": r})
    assert matrix_flops(block, "forward") == 2 * b * (d * k + d * r + r * k)
    assert matrix_flops(block, "backward") == 2 * b * (d * k + 2 * d * r + 2 * r * k)
    assert sum(spec.n_elements for spec in backward_writes(block) if spec.role == "gradient") == d * r + r * k
    assert kept_bytes(block) == 2 * b * (d + r)


def test_an_input_that_needs_no_gradient_saves_one_matmul():
    block = derive(mlp(1, needs_grad=False), {"batch": 4, "d": 3, "k": 3})
    assert matrix_flops(block, "backward") == matrix_flops(block, "forward") == 2 * 4 * 3 * 3


def test_a_frozen_block_has_no_backward():
    p = Program("frozen", SINGLE, trains=False)
    x = p.entry = p.input("x", "batch d", needs_grad=False)
    p.exit = p.linear("w", "batch d, d k -> batch k", x)
    assert derive(p, {"batch": 4, "d": 3, "k": 3}).derivation.backward == []


def test_a_tied_weight_is_one_parameter_whose_gradients_are_added():
    p = Program("p", SINGLE)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    table = p.parameter("table", "d k", ("d",))
    h = p.linear("one", "b d, d k -> b k", x, tied=table)
    p.exit = p.linear("two", "b k, d k -> b d", h, tied=table)
    block = derive(p, {"b": 4, "d": 3, "k": 5})
    assert len(p.parameters) == 1
    assert matrix_flops(block, "forward") == 2 * 2 * 4 * 3 * 5
    assert matrix_flops(block, "backward") == 2 * 2 * 2 * 4 * 3 * 5
    (added,) = [op for op in ops(ledger(block).body) if op.kind == "accumulate"]
    assert added.cost.vector_flops == 3 * 5
    assert sum(node.profile.net[1] for node in ledger(block).body) == 4 * 3 * 5  # one gradient stays, not two


@pytest.mark.parametrize("uses", [1, 2, 3, 5])
def test_a_weight_used_again_leaves_one_gradient(uses):
    p = Program("p", SINGLE)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    w = p.parameter("w", "d k", ("d",))
    for i in range(uses):
        x = p.linear(f"use{i}", "b d, d k -> b k", x, tied=w)
    p.exit = x
    body = ledger(derive(p, {"b": 4, "d": 6, "k": 6})).body
    assert [sum(column) for column in zip(*(node.profile.net for node in body), strict=True)][1] == 4 * 6 * 6


# ------------------------------------------------------------------------------------------- invariances


class Renamed(Program):
    """A program that writes every dim under another name."""

    names: dict[str, str]

    def there(self, text):
        return re.sub(r"[a-z_]+", lambda word: self.names[word[0]], text)

    def input(self, name, dims, **more):
        return super().input(name, self.there(dims), **more)

    def parameter(self, name, dims, summed=(), stacked=()):
        return super().parameter(name, self.there(dims), summed, stacked)

    def apply(self, kind, path, line, *inputs, work=None, mask=None, **more):
        if mask is not None:
            mask = Mask(self.names[mask.query], self.names[mask.key], mask.window)
        work = work and self.there(work)
        return super().apply(kind, path, self.there(line), *inputs, work=work, mask=mask, **more)

    def linear(self, path, line, x, **more):
        weight = self.parameter(f"{path}.weight", line.split("->")[0].split(",")[1], summed=("unused",))
        return self.apply(kinds.CONTRACT, path, line, x, weight)


@FEW
@given(st.permutations([*"abcdefghijkl"]), st.sampled_from(["math", "flash"]), st.booleans())
def test_renaming_every_name_changes_nothing(letters, attention, windowed):
    sizes = gpt_sizes(2, 8, 3, 4)
    mask = Mask(window=3) if windowed else Mask()
    names = dict(zip(sizes, letters, strict=True))
    renamed_program = type("Here", (Renamed,), {"names": names})
    plain = derive(gpt_block(attention=attention, mask=mask), sizes)
    original, lines.Program = lines.Program, renamed_program
    try:
        other = derive(gpt_block(attention=attention, mask=mask), {names[name]: n for name, n in sizes.items()})
    finally:
        lines.Program = original
    assert [op.cost for op in ops(ledger(other).body)] == [op.cost for op in ops(ledger(plain).body)]
    assert list(other.kept) == list(plain.kept)
    assert kept_bytes(other, statistics=True) == kept_bytes(plain, statistics=True)
    assert ledger(other).memory() == ledger(plain).memory()


@FEW
@given(SMALL, SMALL, SMALL, SMALL, st.sampled_from(["math", "flash"]))
def test_everything_grows_with_the_sequence_and_is_linear_in_the_batch(b, s, a, d_head, attention):
    program = gpt_block(attention=attention)
    here, longer, wider = (
        ledger(derive(program, gpt_sizes(*sizes, a, d_head))) for sizes in ((b, s), (b, s + 1), (3 * b, s))
    )
    assert longer.flops() > here.flops()
    assert longer.memory().peak_bytes > here.memory().peak_bytes
    totals, tripled = (each.totals(lambda op: op.phase) for each in (here, wider))
    for phase, cost in totals.items():
        assert tripled[phase].matrix_flops == 3 * cost.matrix_flops
        assert tripled[phase].transcendentals == 3 * cost.transcendentals


def test_a_balanced_share_of_tokens_may_be_a_fraction():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "expert slot d", needs_grad=True)
    p.exit = p.linear("up", "expert slot d, expert d k -> expert slot k", x)
    block = derive(p, {"expert": 8, "slot": Fraction(3, 8), "d": 5, "k": 7})
    assert matrix_flops(block, "forward") == 2 * 3 * 5 * 7


@pytest.mark.parametrize("line", ["b, d k -> b k", "b d e, d k -> b k", "b d -> b", "b d, d k, k -> b"])
def test_a_line_that_does_not_fit_its_operands_is_refused(line):
    p = Program("p", HALF)
    with pytest.raises(PatternError, match="does not fit"):
        p.apply(kinds.CONTRACT, "y", line, p.input("x", "b d", needs_grad=True), p.parameter("w", "d k"))


@pytest.mark.parametrize("line", ["b (d e), d k -> b k", "b 2, d k -> b k", "... d, d k -> ... k"])
def test_a_statement_names_each_dim_by_one_name(line):
    p = Program("p", HALF)
    with pytest.raises(PatternError, match="single names"):
        p.apply(kinds.CONTRACT, "y", line, p.input("x", "b d", needs_grad=True), p.parameter("w", "d k"))
