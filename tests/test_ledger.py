"""Do the folds of a ledger say what walking every op of the step, repetitions written out, says?"""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.formats import get_format
from sixnd.ledger import CATEGORIES, Block, Cost, Ledger, Op, Repeat, TensorSpec
from sixnd.models.config import load_architecture
from sixnd.plan import Plan, Recompute
from sixnd.planning.build import build

BYTE = get_format("uint8")
ROLES = ("parameter", "gradient", "optimizer", "master", "activation", "temporary", "communication", "kv_cache")
PHASES = ("forward", "backward", "recompute", "optimizer")

# ------------------------------------------------------------------------------------------- random trees


def tensors():
    each = st.builds(
        lambda role, n: TensorSpec("t", (), n, BYTE, role), st.sampled_from(ROLES), st.integers(0, 9) | st.just(10**15)
    )
    return st.lists(each, max_size=2).map(tuple)


COSTS = st.integers(0, 10**18).map(lambda n: Cost(*(n >> k for k in range(8))))  # eight different fields
OPS = st.builds(
    lambda path, phase, cost, allocates, frees: Op("kind", path, phase, cost=cost, allocates=allocates, frees=frees),
    st.sampled_from("abcdef"),
    st.sampled_from(PHASES),
    COSTS,
    tensors(),
    tensors(),
)
BLOCKS = st.lists(OPS, min_size=1, max_size=5).map(lambda made: Block("block", tuple(made)))


def repeats(inner):
    return st.builds(Repeat, st.lists(inner, min_size=1, max_size=3).map(tuple), st.integers(1, 5))


NODES = st.recursive(BLOCKS, repeats, max_leaves=4)
LEDGERS = st.builds(Ledger, st.lists(NODES, min_size=1, max_size=3).map(tuple), tensors())
SOME = settings(max_examples=60, deadline=None)


def written_out(nodes):
    for node in nodes:
        if isinstance(node, Block):
            yield from node.ops
        else:
            for _ in range(node.count):
                yield from written_out(node.body)


def walked(ledger):
    """Peak, where it is, levels there and maxima, by looking at every moment of the step."""
    samples = list(ledger.timeline())
    fullest = max(samples, key=lambda sample: sum(sample.levels))  # the first of equals
    maxima = [max(column) for column in zip(*(sample.levels for sample in samples), strict=True)]
    return sum(fullest.levels), f"{fullest.phase} {fullest.path}", list(fullest.levels), maxima


@given(LEDGERS)
def test_memory_of_repetitions_is_that_of_the_walk(ledger):
    memory = ledger.memory()
    peak, where, levels, maxima = walked(ledger)
    assert memory.peak_bytes == peak
    assert memory.peak_at == where
    assert list(memory.by_category.values()) == levels
    base = memory.resident.values()
    assert list(memory.maxima.values()) == [max(pair) for pair in zip(maxima, base, strict=True)]
    assert sum(memory.by_category.values()) == memory.peak_bytes
    assert dict(memory.phase_peaks) == phase_peaks(ledger)


def phase_peaks(ledger):
    """The fullest moment of each phase, the first of equals."""
    found = {}
    for phase in PHASES:
        samples = [sample for sample in ledger.timeline() if sample.phase == phase]
        if samples:
            fullest = max(samples, key=lambda sample: sum(sample.levels))
            found[f"{phase} {fullest.path}"] = sum(fullest.levels)
    return found


@SOME
@given(NODES)
def test_net_change_is_what_was_allocated_less_what_was_freed(node):
    expected = dict.fromkeys(CATEGORIES, 0)
    for op in written_out([node]):
        for spec in op.allocates:
            expected[spec.category] += spec.n_bytes
        for spec in op.frees:
            expected[spec.category] -= spec.n_bytes
    assert dict(zip(CATEGORIES, node.profile.net, strict=True)) == expected


@SOME
@given(LEDGERS)
def test_totals_are_the_walk_added_up(ledger):
    by_phase, everything = {}, Cost()
    for op in written_out(ledger.body):
        by_phase[op.phase] = by_phase.get(op.phase, Cost()) + op.cost
        everything += op.cost
    assert ledger.totals(lambda op: op.phase) == by_phase
    assert ledger.totals(lambda op: None)[None] == everything
    assert ledger.flops() == everything.flops
    assert all(ledger.flops(phase) == cost.flops for phase, cost in by_phase.items())


@SOME
@given(LEDGERS, LEDGERS)
def test_folds_are_additive(one, other):
    both = Ledger(one.body + other.body).totals(lambda op: op.path)
    apart = [ledger.totals(lambda op: op.path) for ledger in (one, other)]
    assert both == {key: apart[0].get(key, Cost()) + apart[1].get(key, Cost()) for key in {**apart[0], **apart[1]}}


@SOME
@given(LEDGERS, st.integers(1, 10**6))
def test_folds_are_linear_in_counts(ledger, times):
    once, many = (Ledger(body).totals(lambda op: op.phase) for body in (ledger.body, (Repeat(ledger.body, times),)))
    assert many == {phase: cost * times for phase, cost in once.items()}


@given(COSTS, COSTS, COSTS, st.integers(0, 99), st.integers(0, 99))
def test_costs_add_and_scale_as_numbers_do(a, b, c, m, n):
    assert (a + b) + c == a + (b + c) == (c + a) + b
    assert a + Cost() == a
    assert a * m + a * n == a * (m + n)
    assert (a + b) * m == a * m + b * m
    assert (a * m).flops == a.flops * m
    assert (a + b).moved_bytes == a.moved_bytes + b.moved_bytes


def test_a_block_without_ops_changes_nothing():
    held = (TensorSpec("w", (), 3, BYTE, "parameter"),)
    op = Op("k", "a", "forward", allocates=(TensorSpec("t", (), 5, BYTE, "activation"),))
    block, empty = Block("block", (op,)), Block("empty", ())
    plain = Ledger((block,), held).memory()
    for body in ((block, empty), (empty, block), (block, Repeat((empty,), 3)), (empty, empty, block, empty)):
        assert Ledger(body, held).memory() == plain
    for body in ((), (empty,), (Repeat((empty, empty), 5),)):
        assert Ledger(body, held).memory().peak_bytes == 3


def test_a_block_shared_by_two_places_is_counted_at_both():
    block = Block("layers", (Op("contract", "layers.up", "forward", cost=Cost(matrix_flops=7)),))
    ledger = Ledger((Repeat((block,), 3), block, Repeat((Repeat((block,), 2), block), 2)))
    assert [(op.path, times) for op, times in ledger.counted] == [("layers.up", 10)]
    assert ledger.flops("forward") == 70


def test_a_million_repetitions_take_two_looks():
    rises = Block("b", (Op("k", "up", "forward", allocates=(TensorSpec("t", (), 1, BYTE, "activation"),)),))
    memory = Ledger((Repeat((Repeat((rises,), 10**9),), 10**9),)).memory()
    assert memory.peak_bytes == 10**18


# ------------------------------------------------------------------------------------------- whole training steps


@cache
def shortened(name, n_layers=5):
    """A bundled model with few layers, and each of its kinds of layer among them."""
    model = load_architecture(name)
    kinds = list(dict.fromkeys(model.layers))
    layers = (kinds * n_layers)[: max(n_layers, len(kinds))] if len(kinds) > 1 else model.layers[:n_layers]
    return replace(model, layers=tuple(layers), vocab=1024)


POLICIES = [Recompute(), Recompute("selective"), Recompute("full"), Recompute("every", 2), Recompute("every", 3)]
SHARDS = [("none", 1), ("ddp", 4), ("zero1", 4), ("zero2", 4), ("zero3", 4)]
SHAPES = {
    "gpt2": "tied, learned positions, dropout",
    "opt-6.7b": "ReLU keeps its output",
    "opt-350m": "projected embedding, norm after the sum",
    "llama-3-8b": "grouped queries",
    "gemma-2-9b": "tied, alternating windows, soft caps, norms before and after",
    "falcon-7b": "parallel block with one norm",
    "gpt-neox-20b": "parallel block with two norms",
    "olmo-2-7b": "norms on the branches",
    "mixtral-8x7b": "experts",
    "deepseek-v3": "latent attention, dense layers first, a shared expert",
    "gpt-oss-20b": "experts with biases, sinks",
}


@cache
def policies_in_turn():
    """Every pair of recomputation and sharding, with accumulation, precision and kernels in turn beside them."""
    precisions = ("bf16-master", "amp-bf16", "fp32", "fp8-training", "nvfp4-training", "bf16-fp32grad")
    styles = (("flash", "fused"), ("math", "eager"), ("math", "fused"))
    rows = []
    for i, recompute in enumerate(POLICIES):
        for j, (shard, n) in enumerate(SHARDS):
            attention, kernels = styles[(i + 2 * j) % 3]
            plan = Plan(
                micro_batch=2,
                seq=128,
                accumulation=(1, 2, 5)[(i + j) % 3],
                precision=precisions[(i + 2 * j) % 6],
                recompute=recompute,
                attention=attention,
                shard=shard,
                kernels=kernels,
            )
            rows.append((plan, n))
    return rows


@pytest.mark.parametrize("name", SHAPES, ids=[f"{name}: {why}" for name, why in SHAPES.items()])
def test_a_step_ends_with_the_memory_that_it_began_with(name):
    for plan, n_devices in policies_in_turn():
        ledger = build(shortened(name), plan, n_devices).ledger
        change = [sum(column) for column in zip(*(node.profile.net for node in ledger.body), strict=True)]
        assert change == [0] * len(CATEGORIES), plan


@pytest.mark.parametrize("name", ["gpt2", "gemma-2-9b", "deepseek-v3"])
@pytest.mark.parametrize("recompute", POLICIES, ids=lambda r: f"{r.policy}-{r.every}")
def test_no_category_ever_falls_below_what_is_resident(name, recompute):
    ledger = build(shortened(name), Plan(1, 64, accumulation=3, recompute=recompute, attention="math"), 1).ledger
    base = list(ledger.memory().resident.values())
    for sample in ledger.timeline():
        assert all(level >= least for level, least in zip(sample.levels, base, strict=True)), sample


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["gpt2", "gemma-2-9b", "mixtral-8x7b", "opt-6.7b", "deepseek-v3"]),
    st.sampled_from(POLICIES),
    st.sampled_from(SHARDS),
    st.integers(1, 6),
    st.integers(4, 9),
)
def test_real_steps_peak_where_the_walk_peaks(name, recompute, where, accumulation, n_layers):
    plan = Plan(1, 64, accumulation=accumulation, recompute=recompute, shard=where[0], attention="math")
    ledger = build(shortened(name, n_layers), plan, where[1]).ledger
    memory, (peak, at, levels, maxima) = ledger.memory(), walked(ledger)
    assert (memory.peak_bytes, memory.peak_at) == (peak, at)
    assert list(memory.by_category.values()) == levels
    assert list(memory.maxima.values()) == maxima
