"""The lecture on einops and FLOPs: names that are summed, the cost of a line, and backward as two more of them."""

from __future__ import annotations

from itertools import pairwise

from sixnd.lecture.claim import Claim, near
from sixnd.models.config import load_architecture
from sixnd.models.mlp import mlp_step
from sixnd.notation.cost import contraction, contraction_flops
from sixnd.notation.einops import line_cost
from sixnd.notation.kinds import GELU, RELU
from sixnd.notation.parse import names_of, parse_line
from sixnd.notation.program import product
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
    ok = ok and (total.flops, times.flops) == (3 * 8 - 3, 2 * 3 * 2 * 4 * 4)
    layouts = f"split {split.layout}, fold {fold.layout}, in the other order {turned.layout}"
    value = f"shapes {', '.join(map(str, shapes))}; {layouts}"
    expected = "3 x 8 to 3 x 2 x 4 and back, the order written is the order got; view or copy"
    return Claim("L10", "reduce; heads split off, multiplied by 4 x 4, folded back", expected, value, ok)


def matmul() -> Claim:
    """L12: a matrix product, and forward as two FLOPs for each token and parameter."""
    line = parse_line("B D, D K -> B K")
    sizes = {"B": 32, "D": 128, "K": 512}
    terms = tuple(names_of(term) for term in line.inputs)
    flops = contraction_flops(contraction(terms, names_of(line.output)), sizes)
    n_tokens, n_params = sizes["B"], product(terms[1], sizes)
    ok = flops.formula == "2·B·D·K" and flops.matrix == 2 * n_tokens * n_params
    value = f"{flops.formula} = {flops.matrix:,} = 2 x {n_tokens} tokens x {n_params:,} parameters"
    return Claim("L12", "matmul of B x D by D x K; forward is 2 x tokens x parameters", "2BDK", value, ok)


def deep_network() -> Claim:
    """L20: forward 2ND, backward 4ND by differentiating the notation."""
    n_layers, d_model, batch = 16, 64, 32
    data, asked = (
        mlp_step(n_layers, d_model, batch, get_precision("fp32").numerics(), input_needs_grad=wanted)
        for wanted in (False, True)
    )
    n_params = sum(tensor.n_elements for tensor in data.resident)
    phases, whole = data.totals(lambda op: op.phase), asked.totals(lambda op: op.phase)["backward"].matrix_flops
    forward, backward = phases["forward"].matrix_flops, phases["backward"].matrix_flops
    nd = n_params * batch
    ok = n_params == d_model**2 * n_layers and (forward, whole) == (2 * nd, 4 * nd)
    ok = ok and backward == (4 * n_layers - 2) * batch * d_model**2  # nobody asks for the gradient of data
    value = (
        f"{n_layers} layers of {d_model} x {d_model}: {n_params:,} parameters; forward {forward / nd:g} ND, backward "
        f"{whole / nd:g} ND, or {backward / nd:g} ND where the input is data and needs no gradient"
    )
    expected = "D^2 L; 2ND + 4ND = 6ND"
    return Claim("L20", "L layers of D x D: parameters D^2 L, forward 2ND, backward 4ND", expected, value, ok)


def long_context() -> Claim:
    """L21: the term quadratic in the sequence beside 6ND."""
    model = load_architecture("llama-3.1-8b")
    counted = {seq: flops_part(build(model, Plan(seq=seq))) for seq in (2048, 8192, 32768, 131072)}
    ratios = {seq: flops.model / flops.six_n_d for seq, flops in counted.items()}
    beyond = [ratio - 1 for ratio in ratios.values()]  # for each token in proportion to the length
    ok = all(near(more, 4 * less, 0.01) for less, more in pairwise(beyond))
    ok = ok and all(near(flops.model, flops.conventions["6Nmm+12LHT"], 1e-4) for flops in counted.values())
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
    d_model, batch = 64, 32
    numerics = get_precision("fp32").numerics()
    costs = [
        mlp_step(1, d_model, batch, numerics, None, kind).totals(lambda op: (op.phase, op.kind))["forward", kind.name]
        for kind in (RELU, GELU)
    ]
    relu, gelu = costs
    n = d_model * batch
    value = (
        f"{n:,} elements: ReLU {relu.comparisons:,} comparisons, {relu.flops} FLOPs; "
        f"GELU {gelu.vector_flops:,} vector FLOPs, {gelu.transcendentals:,} transcendentals; matrix FLOPs none"
    )
    ok = (relu.comparisons, relu.flops, relu.transcendentals) == (n, 0, 0)
    ok = ok and (gelu.matrix_flops, gelu.vector_flops, gelu.transcendentals) == (0, 8 * n, n)
    expected = "matrix, vector, comparisons, transcendentals counted apart"
    return Claim("T4", "a compare in ReLU is not a multiply-add", expected, value, ok)


ROWS = (einsum, rearrange, matmul, deep_network, long_context, separate_counts)
