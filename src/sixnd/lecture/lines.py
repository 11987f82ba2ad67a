"""The lecture on einops and FLOPs: names that are summed, the cost of a line, and backward as two more of them."""

from __future__ import annotations

from sixnd.lecture.claim import Claim
from sixnd.models.config import load_architecture
from sixnd.models.mlp import LAYER, mlp_step
from sixnd.notation.cost import contraction, contraction_flops, gradient_line
from sixnd.notation.einops import line_cost
from sixnd.notation.kinds import GELU, RELU
from sixnd.notation.parse import names_of, parse_line
from sixnd.plan import Plan
from sixnd.planning.account import flops_part
from sixnd.planning.build import build
from sixnd.planning.policies import get_precision


def einsum() -> Claim:
    """L09: names that are not on the output are summed."""
    line = "batch seq1 hidden, batch seq2 hidden -> batch seq1 seq2"
    sizes = {"batch": 2, "seq1": 3, "seq2": 4, "hidden": 16}
    answer = line_cost(line, sizes)
    dots = line_cost(
        "... seq1 hidden, ... seq2 hidden -> ... seq1 seq2",
        {k: v for k, v in sizes.items() if k != "batch"},
        ellipsis=[2],
    )
    ok = answer.flops == 2 * 2 * 3 * 4 * 16 == dots.flops and answer.out_shape == (2, 3, 4) == dots.out_shape
    value = f"{answer.formula} = {answer.flops}; result {' x '.join(map(str, answer.out_shape))}; the same with ..."
    return Claim("L09", "names not on the output are summed; the cost", "2 x batch x seq1 x seq2 x hidden", value, ok)


def rearrange() -> Claim:
    """L10: reduce, and split - multiply - fold back."""
    total = line_cost("... hidden -> ...", {"hidden": 8}, ellipsis=[3], op="reduce")
    split = line_cost("... (heads hidden1) -> ... heads hidden1", {"heads": 2, "hidden1": 4}, ellipsis=[3])
    times = line_cost(
        "... hidden1, hidden1 hidden2 -> ... hidden2", {"hidden1": 4, "hidden2": 4}, ellipsis=[3, 2], op="einsum"
    )
    fold = line_cost("... heads hidden2 -> ... (heads hidden2)", {"heads": 2, "hidden2": 4}, ellipsis=[3])
    turned = line_cost("... heads hidden2 -> ... (hidden2 heads)", {"heads": 2, "hidden2": 4}, ellipsis=[3])
    shapes = [total.out_shape, split.out_shape, times.out_shape, fold.out_shape]
    ok = shapes == [(3,), (3, 2, 4), (3, 2, 4), (3, 8)]
    ok = ok and (split.layout, fold.layout, turned.layout) == ("view", "view", "copy")
    layouts = f"split {split.layout}, fold {fold.layout}, in the other order {turned.layout}"
    value = f"shapes {', '.join(map(str, shapes))}; {layouts}"
    expected = "3 x 8 to 3 x 2 x 4 and back, the order written is the order got; view or copy"
    return Claim("L10", "reduce; heads split off, multiplied by 4 x 4, folded back", expected, value, ok)


def matmul() -> Claim:
    """L12: a matrix product, and forward as two FLOPs for each token and parameter."""
    line = parse_line("B D, D K -> B K")
    b, d, k = 32, 128, 512
    terms = tuple(names_of(term) for term in line.inputs)
    flops = contraction_flops(contraction(terms, names_of(line.output)), {"B": b, "D": d, "K": k})
    ok = flops.matrix == 2 * b * d * k == 2 * b * (d * k)
    value = f"{flops.formula} = {flops.matrix:,} = 2 x {b} tokens x {d * k:,} parameters"
    return Claim("L12", "matmul of B x D by D x K; forward is 2 x tokens x parameters", "2BDK", value, ok)


def deep_network() -> Claim:
    """L20: forward 2ND, backward 4ND by differentiating the notation."""
    n_layers, d_model, batch = 16, 64, 32
    ledger = mlp_step(n_layers, d_model, batch, get_precision("fp32").numerics())
    phases = ledger.totals(lambda op: op.phase)
    forward, backward = phases["forward"].matrix_flops, phases["backward"].matrix_flops
    n_params = n_layers * d_model**2
    first = 2 * batch * d_model**2  # the first layer's input is data: nobody asks for its gradient
    terms = tuple(names_of(term) for term in parse_line(LAYER).inputs)
    result = names_of(parse_line(LAYER).output)
    same = gradient_line(terms, result, 0).names, gradient_line(terms, result, 1).names
    ok = forward == 2 * n_params * batch and backward + first == 4 * n_params * batch and set(same[0]) == set(same[1])
    value = (
        f"forward {forward / (n_params * batch):g} ND, backward {backward / (n_params * batch):g} ND "
        f"({(backward + first) / (n_params * batch):g} ND if the input needed a gradient)"
    )
    return Claim("L20", "L layers of D x D: parameters D^2 L, forward 2ND, backward 4ND", "2ND + 4ND = 6ND", value, ok)


def long_context() -> Claim:
    """L21: the term quadratic in the sequence beside 6ND."""
    model = load_architecture("llama-3.1-8b")
    ratios = {}
    for seq in (2048, 8192, 32768, 131072):
        flops = flops_part(build(model, Plan(seq=seq)))
        ratios[seq] = flops.model / flops.six_n_d
    grows = list(ratios.values())
    slope = (grows[3] - 1) / (grows[2] - 1)
    ok = grows == sorted(grows) and abs(slope - 4) < 0.05  # FLOPs a token grow in proportion to the sequence
    value = ", ".join(f"{seq // 1024}k: {ratio:.2f} x 6ND" for seq, ratio in ratios.items())
    return Claim(
        "L21",
        "long context adds a term quadratic in length (Llama 3.1 8B)",
        "ratio - 1 in proportion to the length",
        value,
        ok,
    )


def separate_counts() -> Claim:
    """T4: a compare is not a multiply-add."""
    relu, gelu = RELU.forward, GELU.forward
    value = (
        f"ReLU: {relu.comparisons} comparison, {relu.vector} FLOP; "
        f"GELU: {gelu.vector} FLOPs, {gelu.transcendentals} transcendental"
    )
    ok = (relu.comparisons, relu.vector) == (1, 0) and gelu.transcendentals == 1
    expected = "matrix, vector, comparisons, transcendentals counted apart"
    return Claim("T4", "a compare in ReLU is not a multiply-add", expected, value, ok)


ROWS = (einsum, rearrange, matmul, deep_network, long_context, separate_counts)
