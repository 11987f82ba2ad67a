"""Does a chain of blocks keep each tensor once, recompute what its policy says, and cost by distinct blocks?"""

from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import HALF, SINGLE, derive, layer_norm, ledger, mlp, ops, same, squared_loss

from sixnd.ledger import Block
from sixnd.notation import kinds
from sixnd.notation.program import Program
from sixnd.notation.step import Stage
from sixnd.plan import Recompute

ACTIVATIONS, TEMPORARIES = 4, 5
FEW = settings(max_examples=40, deadline=None)


def source(numerics=SINGLE, dims="batch d"):
    """Makes the first tensor of a chain, and trains one weight so that a gradient is wanted."""
    p = Program("source", numerics)
    x = p.input("x", dims, needs_grad=False, role="input")
    p.exit = p.apply(kinds.MULTIPLY, "scale", f"{dims}, d -> {dims}", x, p.parameter("scale", "d"))
    return p


def chain(block, depth, sizes, recompute=None, numerics=SINGLE):
    """Source, `depth` times the block, and a loss. Gradients are there already and are added to."""
    first, repeated, last = (
        derive(program, sizes, accumulates=lambda tensor: True)
        for program in (source(numerics), block, squared_loss(numerics))
    )
    return ledger(Stage(first, False), *[repeated] * depth, Stage(last, False), recompute=recompute)


def net(led):
    return [sum(column) for column in zip(*(node.profile.net for node in led.body), strict=True)]


def fullest(led):
    return max(sample.levels[ACTIVATIONS] + sample.levels[TEMPORARIES] for sample in led.timeline())


def n_blocks(nodes):
    return sum(1 if isinstance(node, Block) else n_blocks(node.body) for node in nodes)


# ------------------------------------------------------------------------------------------- what lies between blocks

POLICIES = st.sampled_from([Recompute(), Recompute("full"), *(Recompute("every", n) for n in (1, 2, 3, 5, 99))])
KINDS = [None, kinds.RELU, kinds.GELU, kinds.DROPOUT, kinds.SIGMOID]


@FEW
@given(st.integers(1, 9), st.integers(1, 3), st.sampled_from(KINDS), POLICIES, st.sampled_from([SINGLE, HALF]))
def test_every_chain_frees_what_it_makes(depth, matmuls, activation, recompute, numerics):
    sizes = {"batch": 4, "d": 8, "k": 8}
    led = chain(mlp(matmuls, numerics=numerics, activation=activation), depth, sizes, recompute, numerics)
    assert net(led) == [0] * 8
    assert all(min(sample.levels) >= 0 for sample in led.timeline())


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize(
    "activation, tensors",
    [(kinds.RELU, 1), (kinds.SIGMOID, 1), (kinds.GELU, 2), (None, 1)],
    ids=["relu keeps its output", "sigmoid too", "gelu keeps its input beside", "a bare matmul keeps its input"],
)
def test_the_tensor_between_two_blocks_is_kept_once(depth, activation, tensors):
    b, d = 4, 8
    led = chain(mlp(activation=activation), depth, {"batch": b, "d": d, "k": d})
    after_forward = [s.levels[ACTIVATIONS] for s in led.timeline() if s.phase == "forward"][-1]
    first, loss = 4 * b * d, 4
    assert after_forward == first + 4 * b * d * tensors * depth + loss


def test_without_the_pre_activation_memory_halves():
    """Linear and ReLU: what autograd keeps is the output alone, which is the next linear's operand."""
    sizes = {"batch": 4, "d": 8, "k": 8}
    relu, gelu = (chain(mlp(activation=kind), 50, sizes).memory() for kind in (kinds.RELU, kinds.GELU))
    assert 1.9 < gelu.maxima["activations"] / relu.maxima["activations"] < 2.0


# ------------------------------------------------------------------------------------------- recomputation


@FEW
@given(st.integers(1, 12), POLICIES)
def test_recomputation_runs_each_blocks_forward_once_more(depth, recompute):
    led = chain(mlp(2, activation=kinds.GELU), depth, {"batch": 4, "d": 8, "k": 8}, recompute)
    costs = led.totals(lambda op: (op.phase, op.path.split(".")[0]))
    again = costs.get(("recompute", "mlp"))
    if recompute.policy == "none":
        assert again is None
    else:
        assert again == costs["forward", "mlp"]
    assert ("recompute", "source") not in costs
    assert ("recompute", "loss") not in costs


def test_full_recompute_turns_eight_matmuls_of_backward_into_twelve():
    """As torchtitan tests it: two layers of two matmuls; backward has two for each, recomputation one more."""
    sizes = {"batch": 4, "d": 8, "k": 8}

    def matmuls(recompute):
        led = chain(mlp(2), 2, sizes, recompute)
        return sum(n for op, n in led.counted if op.kind == "contract" and op.phase in ("backward", "recompute"))

    assert (matmuls(Recompute()), matmuls(Recompute("full"))) == (8, 12)


def residual_mlp(numerics=SINGLE):
    """LayerNorm, d to 4 d, GELU, 4 d to d, and the sum."""
    p = Program("block", numerics)
    x = p.entry = p.input("x", "batch d", needs_grad=True)
    h = layer_norm(p, "norm", x, "batch d", "d")
    h = p.linear("up", "batch d, d f -> batch f", h, bias=True)
    h = p.apply(kinds.GELU, "gelu", same("batch f"), h)
    h = p.linear("down", "batch f, f d -> batch d", h, bias=True)
    p.exit = p.apply(kinds.ADD, "sum", "batch d, batch d -> batch d", h, x)
    return p


# Measured with torch 2.13 on a CPU: live bytes above parameters, gradients and input, in MB, of L residual blocks with
# d = 256, f = 1024, 512 rows, float32, under torch.utils.checkpoint (our own measurement, November 2026).
MEASURED = [
    (16, "none", 87.1),
    (16, "every block", 16.3),
    (16, "segments of sqrt L", 25.7),
    (36, "none", 192.0),
    (36, "every block", 26.9),
    (36, "segments of sqrt L", 37.3),
    (64, "none", 339.0),
    (64, "every block", 41.8),
    (64, "segments of sqrt L", 48.8),
]


def policy_of(mode, depth):
    return {
        "none": Recompute(),
        "every block": Recompute("full"),
        "segments of sqrt L": Recompute("every", isqrt(depth)),
    }[mode]


@pytest.mark.parametrize("depth, mode, megabytes", MEASURED, ids=[f"L={d}, {mode}" for d, mode, _ in MEASURED])
def test_checkpointing_peaks_where_it_was_measured(depth, mode, megabytes):
    sizes = {"batch": 512, "d": 256, "f": 1024}
    led, the_input = chain(residual_mlp(), depth, sizes, policy_of(mode, depth)), 4 * 512 * 256
    assert (fullest(led) - the_input) / 1e6 == pytest.approx(megabytes, rel=0.01)


@pytest.mark.parametrize("depth", [16, 36, 64])
def test_blocks_that_save_ten_times_their_output_are_best_recomputed_one_by_one(depth):
    """With r the saved units of a block, segments of s keep L/s + r s: best at s = sqrt(L / r), not at sqrt(L)."""
    sizes = {"batch": 512, "d": 256, "f": 1024}
    peaks = {s: fullest(chain(residual_mlp(), depth, sizes, Recompute("every", s))) for s in (1, 2, 3, isqrt(depth))}
    best = round((depth / 10) ** 0.5)
    assert min(peaks, key=peaks.get) == best
    assert peaks[isqrt(depth)] > peaks[1]
    assert peaks[1] == fullest(chain(residual_mlp(), depth, sizes, Recompute("full")))


# ------------------------------------------------------------------------------------------- cost of the fold


@pytest.mark.parametrize("recompute", [Recompute(), Recompute("full"), Recompute("every", 10)], ids=lambda r: r.policy)
def test_a_thousand_equal_blocks_are_written_once(recompute):
    sizes = {"batch": 4, "d": 8, "k": 8}
    short, long = (chain(mlp(activation=kinds.GELU), depth, sizes, recompute) for depth in (100, 1000))
    assert n_blocks(long.body) == n_blocks(short.body)
    assert len(long.counted) == len(short.counted)
    costs = [led.totals(lambda op: (op.phase, op.path)) for led in (short, long)]
    assert costs[1]["forward", "mlp.matmul0"] == costs[0]["forward", "mlp.matmul0"] * 10
    assert len(list(ops(long.body))) == len(list(ops(short.body)))
