"""Does the deep network come out as the lecture counts it, with nothing typed and no memory lost?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.models.mlp import mlp_step
from sixnd.notation import kinds
from sixnd.notation.kinds import Kind
from sixnd.plan import Recompute
from sixnd.planning.policies import get_precision

GRADIENTS, ACTIVATIONS, TEMPORARIES = 1, 4, 5
FEW = settings(max_examples=40, deadline=None)
SHAPES = {"depth": st.integers(1, 9), "d": st.integers(1, 40), "batch": st.integers(1, 20)}
POLICIES = [Recompute(), Recompute("full"), *(Recompute("every", n) for n in (1, 2, 3, 99))]
PRECISIONS = ["fp32", "bf16", "bf16-master", "amp-bf16"]
# A ReLU that was written without looking: it keeps its input beside the output that the next matrix keeps.
CARELESS = Kind("relu", kinds.RELU.forward, kinds.RELU.backward, keeps=("0",))


def numerics(name="fp32"):
    return get_precision(name).numerics()


def flops(ledger):
    return {phase: cost.matrix_flops for phase, cost in ledger.totals(lambda op: op.phase).items()}


def net(ledger):
    return [sum(column) for column in zip(*(node.profile.net for node in ledger.body), strict=True)]


def after_forward(ledger):
    return [sample.levels[ACTIVATIONS] for sample in ledger.timeline() if sample.phase == "forward"][-1]


@FEW
@given(**SHAPES)
def test_parameters_forward_and_backward(depth, d, batch):
    data, asked = (mlp_step(depth, d, batch, numerics(), input_needs_grad=wanted) for wanted in (False, True))
    assert sum(tensor.n_elements for tensor in data.resident) == d**2 * depth
    assert data.memory().resident["parameters"] == 4 * d**2 * depth
    assert flops(data) == {"forward": 2 * batch * d**2 * depth, "backward": (4 * depth - 2) * batch * d**2}
    assert flops(asked) == {"forward": 2 * batch * d**2 * depth, "backward": 4 * depth * batch * d**2}


@pytest.mark.parametrize("recompute", POLICIES, ids=lambda r: f"{r.policy} {r.every}")
@pytest.mark.parametrize("activation", [kinds.RELU, kinds.GELU, CARELESS], ids=["relu", "gelu", "careless relu"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("depth", [1, 2, 7])
def test_only_gradients_are_left(depth, precision, activation, recompute):
    d, batch = 8, 4
    ledger = mlp_step(depth, d, batch, numerics(precision), recompute, activation)
    left = [0] * 8
    left[GRADIENTS] = numerics(precision).gradient.bits // 8 * d**2 * depth
    assert net(ledger) == left
    assert all(min(sample.levels) >= 0 for sample in ledger.timeline())


@pytest.mark.parametrize("recompute", POLICIES, ids=lambda r: f"{r.policy} {r.every}")
def test_the_gradient_of_the_input_is_left_where_it_is_asked_for(recompute):
    left = [0] * 8
    left[GRADIENTS], left[TEMPORARIES] = 4 * 3 * 8**2, 4 * 4 * 8
    assert net(mlp_step(3, 8, 4, numerics(), recompute, input_needs_grad=True)) == left


@pytest.mark.parametrize(
    "activation, tensors",
    [(kinds.RELU, 1), (kinds.GELU, 2), (CARELESS, 2)],
    ids=["relu keeps its output", "gelu keeps its input beside", "a relu that keeps its input"],
)
@pytest.mark.parametrize("depth", [2, 3, 8])
def test_each_layer_keeps_one_tensor(depth, activation, tensors):
    """Looked at while the mean is taken: its operand is there, too, and itself, one number."""
    d, batch = 8, 4
    left = after_forward(mlp_step(depth, d, batch, numerics(), None, activation))
    assert left == 4 * batch * d * tensors * depth + 4


@FEW
@given(**SHAPES, every=st.integers(1, 9))
def test_every_policy_runs_forward_again_once(depth, d, batch, every):
    counted = flops(mlp_step(depth, d, batch, numerics(), Recompute("every", every)))
    assert counted["recompute"] == counted["forward"]
    assert counted["backward"] == (4 * depth - 2) * batch * d**2


@FEW
@given(**SHAPES, times=st.integers(2, 5))
def test_linear_in_batch_and_additive_over_layers(depth, d, batch, times):
    one = mlp_step(depth, d, batch, numerics())
    wide = mlp_step(depth, d, batch * times, numerics())
    deep = mlp_step(depth * times, d, batch, numerics(), input_needs_grad=True)
    whole = mlp_step(depth, d, batch, numerics(), input_needs_grad=True)
    assert flops(wide) == {phase: times * n for phase, n in flops(one).items()}
    assert flops(deep) == {phase: times * n for phase, n in flops(whole).items()}


def test_equal_layers_are_written_once():
    short, long = mlp_step(10, 8, 4, numerics()), mlp_step(1000, 8, 4, numerics())
    assert len(short.counted) == len(long.counted)
