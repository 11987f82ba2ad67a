"""The lecture on activation checkpointing: what is kept, what is run again, and where the square root misleads.

Two chains are asked. In the deep network every layer saves one tensor of the size of its output (r = 1), as in the
lecture. A transformer's block saves r times its output; recomputed in segments of k blocks, L of them hold

    L / k  inputs of segments  +  k · r  for the segment that is being run again

outputs of a block, least at k = sqrt(L / r); and k = 1 is below k = sqrt(L) until L = r². No such formula is used
here: every number is the peak of a ledger, and the formula is what it is held against.
"""

from __future__ import annotations

from math import isqrt, sqrt

import msgspec

from sixnd.lecture.claim import Claim, near
from sixnd.ledger import Cost, Ledger, Phase
from sixnd.models.config import read_config
from sixnd.models.mlp import mlp_step
from sixnd.notation.kinds import GELU, RELU, Kind
from sixnd.plan import Plan, Recompute
from sixnd.planning.build import build
from sixnd.planning.policies import get_precision

WIDTH, BATCH, DEPTH = 64, 32, 64
BLOCK = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 4,
    "vocab_size": 32,
}
CONTEXT = 128


class Part(msgspec.Struct, frozen=True):
    """One part of the claim: what comes out, and whether it is what the lecture says."""

    value: str
    ok: bool


def checkpointing() -> Claim:
    """L25, the predicted half: halving, keeping nothing, every sqrt(L), and where that misleads."""
    parts = (pre_activations(), nothing_kept(), square_root(), transformer_blocks())
    expected = (
        "without pre-activations half; nothing kept: L^2 / 2 layers again; every sqrt(L): memory and layers at a time "
        "about sqrt(L); blocks that save r outputs: every block better until L = r^2, best segment sqrt(L / r)"
    )
    value, ok = "; ".join(part.value for part in parts), all(part.ok for part in parts)
    return Claim("L25", f"activation checkpointing, predicted; L = {DEPTH}, in outputs of a layer", expected, value, ok)


def pre_activations() -> Part:
    """ReLU keeps its output, which the next matrix keeps anyway; GELU keeps its input beside it."""
    without, beside = _kept(_mlp()), _kept(_mlp(activation=GELU))
    return Part(f"pre-activations kept {beside:.0f}, not kept {without:.0f}", near(beside / without, 2, 0.02))


def nothing_kept() -> Part:
    """Before the backward of each layer, the network up to it runs forward again: `depth` ever shorter networks."""
    again = sum(_matrix_flops(_mlp(depth=depth), "forward") for depth in range(1, DEPTH + 1))
    layers = again // _matrix_flops(_mlp(depth=1), "forward")
    return Part(f"nothing kept: {layers:,} layers again", near(layers, DEPTH**2 / 2, 0.02))


def square_root() -> Part:
    """No other segment peaks lower than sqrt(L), and all of forward is run again once, sqrt(L) layers at a time."""
    side = isqrt(DEPTH)
    ledgers = {every: _mlp(Recompute("every", every)) for every in range(1, DEPTH + 1)}
    peaks = {every: _kept(ledger) for every, ledger in ledgers.items()}
    again = _matrix_flops(ledgers[side], "recompute") / _matrix_flops(ledgers[side], "forward")
    at_ends = min(peaks[1], peaks[DEPTH])
    ok = peaks[side] == min(peaks.values()) and near(peaks[side], 2 * sqrt(DEPTH), 0.05) and near(again, 1)
    value = (
        f"every {side}: {peaks[side]:.0f} kept, no other segment keeps less ({at_ends:.0f} at 1 or {DEPTH}), "
        f"{side} layers again at a time, {again:g} forward in all"
    )
    return Part(value, ok and at_ends > 3 * peaks[side])


def transformer_blocks() -> Part:
    """Where every block is best, where sqrt(L) overtakes it, and the best segment."""
    saved = _deep_peak(2, None) - _deep_peak(1, None)
    below, above = int(saved), int(saved) + 1  # the crossing at r^2 lies between two squares
    every_block = [_deep_peak(side**2, 1) for side in (below, above)]
    root = [_deep_peak(side**2, side) for side in (below, above)]
    peaks = {every: _deep_peak(DEPTH, every) for every in range(1, isqrt(DEPTH) + 1)}
    best = min(peaks, key=lambda every: peaks[every])
    ok = saved > 10 and every_block[0] < root[0] and every_block[1] > root[1] and best == round(sqrt(DEPTH / saved))
    value = (
        f"a transformer's block saves r = {saved:.1f}: every block beats sqrt(L) at L = {below**2} "
        f"({every_block[0]:.0f}, {root[0]:.0f}) and no longer at {above**2} ({every_block[1]:.0f}, {root[1]:.0f}), "
        f"r^2 = {saved**2:.0f}; at {DEPTH} the best segment is {best}, sqrt(L / r) = {sqrt(DEPTH / saved):.1f}"
    )
    return Part(value, ok)


def _mlp(recompute: Recompute | None = None, activation: Kind = RELU, depth: int = DEPTH) -> Ledger:
    return mlp_step(depth, WIDTH, BATCH, get_precision("fp32").numerics(), recompute, activation)


def _kept(ledger: Ledger) -> float:
    """Peak activations in outputs of a layer."""
    return ledger.memory().maxima["activations"] / (4 * BATCH * WIDTH)


def _matrix_flops(ledger: Ledger, phase: Phase) -> int:
    return ledger.totals(lambda op: op.phase).get(phase, Cost()).matrix_flops


def _deep_peak(n_layers: int, every: int | None) -> float:
    """Peak activations of a deep transformer, in outputs of a block (bf16)."""
    model = read_config({**BLOCK, "num_hidden_layers": n_layers}, "deep")
    recompute = Recompute() if every is None else Recompute("every", every)
    ledger = build(model, Plan(seq=CONTEXT, recompute=recompute)).ledger
    return ledger.memory().maxima["activations"] / (2 * CONTEXT * model.d_model)
