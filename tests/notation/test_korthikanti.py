"""Do the published figures of a GPT block's activations and communication follow from its lines?

Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), equations 1
to 4: 16-bit formats, dropout masks of one byte, statistics of the norms left out, as there.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import (
    AUTOCAST,
    FLOAT16,
    HALF,
    collectives,
    derive,
    gpt_block,
    kept_bytes,
    ledger,
    matrix_flops,
    squared_loss,
)

from sixnd.notation.program import Numerics
from sixnd.notation.shard import Sharding
from sixnd.notation.step import Stage
from sixnd.plan import Mesh, Recompute

FP16 = Numerics(FLOAT16, FLOAT16, FLOAT16, FLOAT16)
FEW = settings(max_examples=40, deadline=None)
WAYS = st.sampled_from([2, 4, 8])


ONE = st.just(1)


@st.composite
def blocks(draw, ways=ONE):
    """(sizes, s, b, h, a, t) with heads, d_ff and seq divisible by t."""
    t = draw(ways)
    b, a, s = draw(st.integers(1, 4)), t * draw(st.integers(1, 3)), t * draw(st.integers(1, 9))
    d_head = draw(st.integers(1, 9))
    h = a * d_head
    sizes = {"batch": b, "seq": s, "query": s, "key": s, "d_model": h, "heads": a, "d_head": d_head, "d_ff": 4 * h}
    return sizes, s, b, h, a, t


def tensor_parallel(t):
    return Sharding(Mesh({"tp": t}), {"heads": ("tp",), "d_ff": ("tp",)})


def sequence_parallel(t):
    """Tensor parallelism with `seq` split where it cannot help: in norms, dropouts and sums."""
    seq = {"seq": ("tp",)}
    dropout = {"heads": ("tp",), **seq}
    by_kind = {"layer-norm": seq, "add": seq, "dropout": dropout}
    return Sharding(Mesh({"tp": t}), {"heads": ("tp",), "d_ff": ("tp",)}, by_kind)


@FEW
@given(blocks(), st.sampled_from([HALF, FP16]))
def test_saved_activations(block, numerics):
    sizes, s, b, h, a, _ = block
    assert kept_bytes(derive(gpt_block(numerics), sizes)) == 34 * s * b * h + 5 * a * s * s * b


@FEW
@given(blocks(WAYS))
def test_saved_activations_under_tensor_parallelism(block):
    sizes, s, b, h, a, t = block
    kept = kept_bytes(derive(gpt_block(), sizes, tensor_parallel(t)))
    assert kept * t == 10 * s * b * h * t + 24 * s * b * h + 5 * a * s * s * b


@FEW
@given(blocks(WAYS))
def test_saved_activations_under_sequence_parallelism(block):
    sizes, s, b, h, a, t = block
    kept = kept_bytes(derive(gpt_block(), sizes, sequence_parallel(t)))
    assert kept * t == 34 * s * b * h + 5 * a * s * s * b


@FEW
@given(blocks())
def test_selective_recompute_leaves_what_is_linear_in_the_sequence(block):
    sizes, s, b, h, _, _ = block
    derived = derive(gpt_block(), sizes, selective=True)
    assert kept_bytes(derived) == 34 * s * b * h
    again = ledger(derived).totals(lambda op: op.phase)["recompute"]
    assert again.matrix_flops == 4 * b * s * s * h


@FEW
@given(blocks(WAYS))
def test_tensor_parallelism_costs_two_all_reduces_forward_and_two_backward(block):
    sizes, s, b, h, _, t = block
    moved = collectives(derive(gpt_block(), sizes, tensor_parallel(t)))
    all_reduce = [(name, axes, n_bytes) for _, name, axes, _, n_bytes in moved]
    assert all_reduce == [("all_reduce", ("tp",), 2 * b * s * h)] * 4
    assert [phase for phase, *_ in moved] == ["forward"] * 2 + ["backward"] * 2


@FEW
@given(blocks(WAYS))
def test_sequence_parallelism_gathers_and_scatters_what_tensor_parallelism_all_reduces(block):
    sizes, s, b, h, _, t = block
    derived = derive(gpt_block(), sizes, sequence_parallel(t))
    activations = [row for row in collectives(derived) if not row[3].endswith(".gradients")]
    assert {row[4] for row in activations} == {2 * b * s * h}
    names = {phase: [row[1] for row in activations if row[0] == phase] for phase, *_ in activations}
    assert names == {
        "forward": ["all_gather", "reduce_scatter"] * 2,
        "backward": ["all_gather", "reduce_scatter"] * 2,
        "recompute": ["all_gather"] * 2,  # the operands of q, k, v and of the way up, kept split (section 4.2.2)
    }
    (norms,) = [row for row in collectives(derived) if row[3].endswith(".gradients")]
    assert norms[:2] == ("backward", "all_reduce")  # weights and biases of two norms, which saw a part of the tokens
    assert norms[4] == 2 * 4 * h


@FEW
@given(blocks(WAYS))
def test_wires_carry_the_same_under_both(block):
    """Section 4.2.3: an all-reduce in a ring is a reduce-scatter and an all-gather."""
    sizes, s, b, h, _, t = block

    def wire(sharding, phases):
        ops = [op for op, _ in ledger(derive(gpt_block(), sizes, sharding)).counted]
        return sum(op.cost.wire_bytes for op in ops if op.phase in phases and not op.path.endswith(".gradients"))

    for phase in ("forward", "backward"):
        assert (
            wire(sequence_parallel(t), (phase,))
            == wire(tensor_parallel(t), (phase,))
            == 4 * 2 * b * s * h * (t - 1) // t
        )


@FEW
@given(blocks(WAYS), st.sampled_from([tensor_parallel, sequence_parallel]))
def test_each_device_does_its_share_of_the_matmuls(block, sharding):
    sizes, *_, t = block
    whole, share = derive(gpt_block(), sizes), derive(gpt_block(), sizes, sharding(t))
    for phase in ("forward", "backward"):
        assert matrix_flops(share, phase) * t == matrix_flops(whole, phase)


@pytest.mark.parametrize("policy", [Recompute(), Recompute("full"), Recompute("every", 2)], ids=lambda r: r.policy)
@pytest.mark.parametrize("numerics", [HALF, AUTOCAST], ids=["half", "autocast"])
@pytest.mark.parametrize("sharding", [tensor_parallel, sequence_parallel])
def test_a_chain_of_split_blocks_frees_all_that_it_makes(sharding, numerics, policy):
    sizes = {"batch": 2, "seq": 8, "query": 8, "key": 8, "d_model": 32, "heads": 4, "d_head": 8, "d_ff": 128}
    block = derive(gpt_block(numerics), sizes, sharding(4))
    head = Stage(derive(squared_loss(numerics, "batch seq d_model"), sizes, sharding(4)), recomputable=False)
    body = ledger(*[block] * 3, head, recompute=policy).body
    net = [sum(column) for column in zip(*(node.profile.net for node in body), strict=True)]
    assert net[1] == 3 * sum(spec.n_elements for _, spec in gradients_of(block)) * numerics.gradient.bits // 8
    entry = block.entry.n_bytes  # made before the chain and freed in it; its gradient stays for what is before
    assert net[4:7] == [-entry, entry, 0]


def gradients_of(block):
    return [(tensor, placed.spec) for tensor, placed in block.derivation.parameter_gradients.items()]
