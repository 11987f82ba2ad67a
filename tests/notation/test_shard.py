"""Which collectives follow from splitting names over a mesh, and with how many bytes?"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines import GPT_SIZES, HALF, collectives, derive, gpt_block, kept_bytes, ledger, matrix_flops, ops, same

from sixnd.errors import UsageError
from sixnd.formats import get_format
from sixnd.notation import kinds
from sixnd.notation.program import Program, product
from sixnd.notation.shard import Layout, Sharding, collective, local_elements, moves, summed_axes, wire_bytes
from sixnd.plan import Mesh

S = GPT_SIZES
DP = Mesh({"dp": 4})
BY_BATCH = {"batch": ("dp",)}


def parameter_bytes(program, sizes=S):
    return sum(2 * product(p.dims, sizes) for p in program.parameters)


def rows(derived, phase=None):
    """(phase, collective, axes, bytes) in order."""
    return [(when, name, axes, n_bytes) for when, name, axes, _, n_bytes in collectives(derived, phase)]


# ------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize(
    "have, want, expected",
    [
        (Layout(((), ()), ("tp",)), Layout(((), ())), [("all_reduce", ("tp",))]),
        (Layout(((), ()), ("tp",)), Layout(((), ("tp",))), [("reduce_scatter", ("tp",))]),
        (Layout((("tp",), ())), Layout(((), ())), [("all_gather", ("tp",))]),
        (Layout((("tp",), ())), Layout(((), ("tp",))), [("all_to_all", ("tp",))]),
        (Layout(((), ())), Layout((("tp",), ())), []),
        (Layout(((), ()), ("tp",)), Layout(((), ()), ("tp",)), []),
        (Layout((("dp",), ()), ("tp",)), Layout((("dp",), ())), [("all_reduce", ("tp",))]),
        (Layout((("dp", "ep"), ())), Layout((("dp",), ("ep",))), [("all_to_all", ("ep",))]),
        (Layout((("dp",), ("tp",))), Layout(((), ())), [("all_gather", ("dp", "tp"))]),
        (Layout((("dp",), ()), ("tp", "cp")), Layout(((), ("cp",))), None),
    ],
    ids=["reduce", "scatter", "gather", "exchange", "take a part", "stay", "other axis", "experts", "both", "mixed"],
)
def test_a_collective_is_the_difference_of_two_layouts(have, want, expected):
    found = moves(have, want)
    if expected is None:
        assert dict(found) == {"reduce_scatter": ("cp",), "all_reduce": ("tp",), "all_gather": ("dp",)}
    else:
        assert found == expected


def test_split_names_that_are_summed_leave_partial_sums():
    splits = {"batch": ("dp",), "d_ff": ("tp", "cp")}
    assert summed_axes(("batch", "d_model"), splits) == ("tp", "cp")
    assert summed_axes(("d_ff", "d_model"), splits) == ("dp",)


@given(st.integers(1, 64), st.integers(1, 50))
def test_a_ring_sends_all_but_one_part(n, part):
    move = collective("all_gather", ("x",), n * part, Mesh({"x": n}))
    assert wire_bytes(move) == (n - 1) * part
    assert wire_bytes(collective("all_reduce", ("x",), n * part, Mesh({"x": n}))) == 2 * (n - 1) * part
    assert local_elements(("a",), {"a": n * part}, Layout((("x",),)), Mesh({"x": n})) == part


@given(st.integers(2, 200), st.integers(1, 50))
def test_sizes_after_a_collective_are_whole_numbers(n, part):
    """A reduce-scatter over 49 devices leaves a 49th part, and not one element less."""
    p = Program("p", HALF)
    h = p.linear("up", "batch d, d k -> batch k", p.input("x", "batch d", needs_grad=False))
    p.exit = p.apply(kinds.GELU, "act", same("batch k"), h)
    sharding = Sharding(Mesh({"t": n}), {"d": ("t",)}, {"gelu": {"batch": ("t",)}})
    block = derive(p, {"batch": n * part, "d": n, "k": 3}, sharding)
    made = {op.kind: op.outputs[0].n_elements for op in ops(ledger(block).body) if op.phase == "forward"}
    assert made == {"contract": 3 * n * part, "reduce_scatter": 3 * part, "gelu": 3 * part}


# ------------------------------------------------------------------------------------------- which axes a line uses


def test_an_axis_that_two_names_want_goes_to_the_first():
    sharding = Sharding(Mesh({"tp": 2}), {"heads": ("tp",), "d_model": ("tp",)})
    assert sharding.splits_of("contract", ("d_model", "heads"), {"heads": 4, "d_model": 8}) == {"heads": ("tp",)}
    assert sharding.splits_of("contract", ("d_model",), {"d_model": 8}) == {"d_model": ("tp",)}


@pytest.mark.parametrize("name", ["heads", "batch", "d_ff"])
def test_a_size_that_does_not_divide_is_refused_by_name(name):
    sharding = Sharding(Mesh({"x": 5}), {name: ("x",)})
    with pytest.raises(UsageError, match=rf"{name} = {S[name]} does not divide over 5 devices \(x\)"):
        derive(gpt_block(), S, sharding).forward(keep=True, entry_owned=True)


def test_kinds_may_be_split_where_nothing_else_is():
    sharding = Sharding(Mesh({"tp": 2}), by_kind={"gelu": {"seq": ("tp",)}})
    work = {op.kind: op.cost.vector_flops for op in ops(ledger(derive(gpt_block(), S, sharding)).body)}
    whole = {op.kind: op.cost.vector_flops for op in ops(ledger(derive(gpt_block(), S)).body)}
    assert work["gelu"] * 2 == whole["gelu"]
    assert work["layer-norm"] == whole["layer-norm"]


# ------------------------------------------------------------------------------------------- data parallelism


def test_data_parallelism_all_reduces_the_gradient_of_every_weight_and_nothing_else():
    block = derive(gpt_block(), S, Sharding(DP, BY_BATCH))
    assert rows(block) == [("backward", "all_reduce", ("dp",), parameter_bytes(gpt_block()))]
    assert kept_bytes(block) * 4 == kept_bytes(derive(gpt_block(), S))


def test_data_parallelism_with_split_state_scatters_gradients_instead():
    block = derive(gpt_block(), S, Sharding(DP, BY_BATCH, optimizer=("dp",)))
    assert rows(block) == [("backward", "reduce_scatter", ("dp",), parameter_bytes(gpt_block()))]


@pytest.mark.parametrize("attention", ["math", "flash"])
def test_parameters_stored_split_are_gathered_twice_and_scattered_once(attention):
    sizes, program = {**S, "one": 1, "kv": 12, "group": 1, "d_value": 8}, gpt_block(attention=attention)
    axes, everything = ("dp",), parameter_bytes(program)
    block = derive(program, sizes, Sharding(DP, BY_BATCH, parameters=axes, gradients=axes, optimizer=axes))
    assert rows(block) == [
        ("forward", "all_gather", axes, everything),
        ("backward", "all_gather", axes, everything),
        ("backward", "reduce_scatter", axes, everything),
    ]
    assert sum(node.profile.net[1] for node in ledger(block).body) == everything // 4  # what stays of the gradients


def test_two_axes_split_each_weights_gradient_and_its_reduction():
    sharding = Sharding(Mesh({"dp": 2, "tp": 4}), {**BY_BATCH, "heads": ("tp",), "d_ff": ("tp",)})
    block, h = derive(gpt_block(), S, sharding), S["d_model"]
    (gradients,) = [row for row in collectives(block) if row[3].endswith(".gradients")]
    assert gradients[1:3] == ("all_reduce", ("dp",))
    assert gradients[4] == 2 * (12 * h * h // 4 + 4 * h)
    tensor = [row for row in rows(block) if row[2] == ("tp",)]
    assert [row[1] for row in tensor] == ["all_reduce"] * 4
    assert {row[3] for row in tensor} == {2 * S["batch"] * S["seq"] * h // 2}


# ------------------------------------------------------------------------------------------- partial sums are lazy


def test_partial_sums_pass_through_views_both_ways():
    p = Program("p", HALF)
    x = p.apply(kinds.RELU, "first", same("b d"), p.input("x", "b d", needs_grad=True))
    x = p.apply(kinds.VIEW, "view", "b d -> b d", x)
    h = p.apply(kinds.RELU, "act", same("b k"), p.linear("up", "b d, d k -> b k", x))
    p.exit = p.apply(kinds.VIEW, "back", "b d -> b d", p.linear("down", "b k, k d -> b d", h))
    block = derive(p, {"b": 4, "d": 6, "k": 8}, Sharding(Mesh({"tp": 2}), {"k": ("tp",)}))
    assert rows(block) == [(phase, "all_reduce", ("tp",), 48) for phase in ("forward", "backward")]


def test_three_readers_of_one_tensor_cost_one_backward_all_reduce():
    p = Program("p", HALF)
    x = p.apply(kinds.RELU, "first", same("b d"), p.input("x", "b d", needs_grad=True))
    q, k, v = (p.linear(name, "b d, d k -> b k", x) for name in "qkv")
    p.exit = p.apply(kinds.ADD, "sum", "b k, b k -> b k", p.apply(kinds.ADD, "two", "b k, b k -> b k", q, k), v)
    block = derive(p, {"b": 4, "d": 6, "k": 8}, Sharding(Mesh({"tp": 2}), {"k": ("tp",)}))
    assert rows(block, "backward") == [("backward", "all_reduce", ("tp",), 48)]


def test_a_sum_of_partial_sums_is_reduced_once():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    y, z = (p.linear(name, "b d, d k -> b k", x) for name in ("one", "other"))
    p.exit = p.apply(kinds.ADD, "sum", "b k, b k -> b k", y, z)
    block = derive(p, {"b": 4, "d": 6, "k": 5}, Sharding(Mesh({"tp": 2}), {"d": ("tp",)}))
    assert rows(block, "forward") == [("forward", "all_reduce", ("tp",), 2 * 4 * 5)]


def test_a_partial_sum_is_reduced_before_a_whole_tensor_is_added():
    p = Program("p", HALF)
    x = p.entry = p.input("x", "b d", needs_grad=True)
    y = p.linear("down", "b k, k d -> b d", p.linear("up", "b d, d k -> b k", x))
    p.exit = p.apply(kinds.ADD, "sum", "b d, b d -> b d", y, x)
    block = derive(p, {"b": 4, "d": 6, "k": 8}, Sharding(Mesh({"tp": 2}), {"k": ("tp",)}))
    assert [op.kind for op in ops(ledger(block).body)][:4] == ["contract", "contract", "all_reduce", "add"]


def test_sums_over_an_axis_are_scattered_before_a_line_that_splits_on_it():
    """A dropout is linear, but one that works on a part of the tokens needs whole numbers of its part."""
    p = Program("p", HALF)
    y = p.linear("down", "seq f, f d -> seq d", p.input("x", "seq f", needs_grad=True))
    p.exit = p.apply(kinds.DROPOUT, "dropout", same("seq d"), y)
    sharding = Sharding(Mesh({"tp": 2}), {"f": ("tp",)}, {"dropout": {"seq": ("tp",)}})
    assert rows(derive(p, {"seq": 4, "f": 6, "d": 10}, sharding), "forward") == [
        ("forward", "reduce_scatter", ("tp",), 80)
    ]


# ------------------------------------------------------------------------------------------- reduced names


def vocabulary_loss():
    p = Program("head", HALF)
    x = p.entry = p.input("x", "batch seq d_model", needs_grad=True)
    logits = p.linear("logits", "batch seq d_model, vocab d_model -> batch seq vocab", x)
    targets = p.input("targets", "batch seq", needs_grad=False, format=get_format("int64"), role="input")
    p.apply(kinds.LOSS, "loss", "batch seq vocab, batch seq -> ", logits, targets, format=get_format("float32"))
    return p


def test_a_loss_over_a_split_vocabulary_exchanges_its_state_and_not_its_logits():
    sizes = {"batch": 4, "seq": 8, "d_model": 6, "vocab": 32}
    block = derive(vocabulary_loss(), sizes, Sharding(Mesh({"tp": 4}), {"vocab": ("tp",)}))
    state = 2 * 4 * 4 * 8  # a maximum and a sum in float32 for each token
    hidden = 2 * 4 * 8 * 6
    assert rows(block) == [("forward", "all_reduce", ("tp",), state), ("backward", "all_reduce", ("tp",), hidden)]
    kept = {spec.name: spec.n_elements for spec in block.kept.values() if spec.dims[-1:] == ("vocab",)}
    assert set(kept.values()) == {4 * 8 * 32 // 4}


def test_a_softmax_over_split_keys_exchanges_two_numbers_a_row():
    sharding = Sharding(Mesh({"cp": 4}), {"key": ("cp",)})
    block = derive(gpt_block(), S, sharding)
    (state,) = [row for row in collectives(block, "forward") if row[3] == "block.softmax.state"]
    assert state[1:3] == ("all_reduce", ("cp",))
    assert state[4] == 4 * 2 * S["batch"] * S["heads"] * S["query"]


# ------------------------------------------------------------------------------------------- experts


def experts():
    p = Program("experts", HALF)
    x = p.entry = p.input("x", "batch seq d_model", needs_grad=True)
    scores = p.linear("router", "batch seq d_model, d_model expert -> batch seq expert", x)
    chosen = p.apply(kinds.ROUTE, "top", "batch seq expert -> batch seq top_k", scores)
    line = "batch seq d_model, batch seq top_k -> expert slot d_model"
    h = p.apply(kinds.DISPATCH, "dispatch", line, x, chosen)
    h = p.linear("up", "expert slot d_model, expert d_model d_ff -> expert slot d_ff", h)
    h = p.apply(kinds.GELU, "gelu", same("expert slot d_ff"), h)
    h = p.linear("down", "expert slot d_ff, expert d_ff d_model -> expert slot d_model", h)
    line = "expert slot d_model, batch seq top_k -> batch seq d_model"
    p.exit = p.apply(kinds.COMBINE, "combine", line, h, chosen)
    return p


EXPERT_SIZES = {"batch": 8, "seq": 16, "d_model": 10, "d_ff": 12, "expert": 4, "top_k": 2, "slot": Fraction(64)}
EXPERT_MESH = Mesh({"dp": 2, "ep": 4})
EXPERT_SPLITS = {"batch": ("dp", "ep"), "expert": ("ep",), "slot": ("dp",)}


def test_expert_parallelism_exchanges_tokens_at_dispatch_and_combine_both_ways():
    block = derive(experts(), EXPERT_SIZES, Sharding(EXPERT_MESH, EXPERT_SPLITS))
    tokens_of_a_device = 8 * 16 // 8
    exchanged = [row for row in rows(block) if row[1] == "all_to_all"]
    n_bytes = 2 * tokens_of_a_device * 2 * 10  # each token goes to top_k = 2 experts
    assert exchanged == [(phase, "all_to_all", ("ep",), n_bytes) for phase in ("forward",) * 2 + ("backward",) * 2]


def test_expert_parallelism_reduces_each_experts_gradient_among_its_own_copies_only():
    block = derive(experts(), EXPERT_SIZES, Sharding(EXPERT_MESH, EXPERT_SPLITS))
    reduced = {row[2]: row[4] for row in collectives(block) if row[3].endswith(".gradients")}
    assert reduced == {("dp",): 2 * 2 * 4 * 10 * 12 // 4, ("dp", "ep"): 2 * 10 * 4}
    assert {row[1] for row in rows(block)} == {"all_to_all", "all_reduce"}


def test_experts_split_over_devices_do_the_same_matmuls_together():
    whole = derive(experts(), EXPERT_SIZES)
    split = derive(experts(), EXPERT_SIZES, Sharding(EXPERT_MESH, EXPERT_SPLITS))
    for phase in ("forward", "backward"):
        assert matrix_flops(split, phase) * 8 == matrix_flops(whole, phase)


@pytest.mark.parametrize("n_experts", [4, 8, 32])
def test_slots_that_are_no_whole_number_on_a_device_still_cost_their_share(n_experts):
    sizes = {**EXPERT_SIZES, "batch": 2, "seq": 1, "expert": n_experts, "slot": Fraction(2 * 2, n_experts)}
    sharding = Sharding(Mesh({"dp": 2}), {"batch": ("dp",), "slot": ("dp",)})
    whole, split = derive(experts(), sizes), derive(experts(), sizes, sharding)
    assert matrix_flops(split, "forward") * 2 == matrix_flops(whole, "forward")


def test_a_part_of_a_whole_tensor_is_a_copy_that_is_freed():
    """Kept is the part, not the whole behind it."""
    p = Program("p", HALF)
    h = p.linear("up", "batch d, d k -> batch k", p.input("x", "batch d", needs_grad=True))
    p.exit = p.apply(kinds.GELU, "act", same("batch k"), h)
    block = derive(p, {"batch": 8, "d": 3, "k": 5}, Sharding(Mesh({"tp": 2}), by_kind={"gelu": {"batch": ("tp",)}}))
    assert kept_bytes(block) == 2 * 8 * 3 + 2 * 8 * 5 // 2
    body = ledger(block).body
    assert sum(node.profile.net[4] for node in body) == 2 * 8 * 5 // 2 - 2 * 8 * 3  # the result, less the input
