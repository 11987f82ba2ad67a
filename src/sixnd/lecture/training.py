"""The lecture on training: optimizer state, recomputation, and a model as a pile of tensors."""

from __future__ import annotations

import json
import struct
import tempfile
from math import isqrt
from pathlib import Path

from sixnd.lecture.claim import Claim
from sixnd.ledger import Ledger
from sixnd.models.config import read_config
from sixnd.models.mlp import mlp_step
from sixnd.models.weight_check import check_weights
from sixnd.models.weights import read_weights
from sixnd.notation import kinds
from sixnd.notation.program import product
from sixnd.plan import Plan, Recompute
from sixnd.planning.build import build
from sixnd.planning.policies import get_optimizer, get_precision, stored_per_param
from sixnd.units import format_count

STATES = {"sgd": 0, "momentum": 4, "adagrad": 4, "rmsprop": 4, "adam": 8, "adamw": 8}
WIDTH, BATCH, DEPTH = 64, 32, 64


def optimizer_state() -> Claim:
    """L23: bytes of state for each parameter in float32."""
    precision = get_precision("fp32")
    found = {name: int(stored_per_param(precision, get_optimizer(name)).get("optimizer", 0)) for name in STATES}
    value = ", ".join(f"{name} {n}" for name, n in found.items())
    expected = "SGD 0, momentum 4, Adagrad 4, RMSProp 4, Adam(W) 8 bytes per parameter"
    return Claim("L23", "optimizer state in float32", expected, value, found == STATES)


def _mlp(recompute: Recompute, activation: kinds.Kind = kinds.RELU, depth: int = DEPTH) -> Ledger:
    return mlp_step(depth, WIDTH, BATCH, get_precision("fp32").numerics(), recompute, activation)


def _kept(ledger: Ledger) -> float:
    """Peak activations in units of one layer's output."""
    return ledger.memory().maxima["activations"] / (4 * BATCH * WIDTH)


def checkpointing() -> Claim:
    """L25, the predicted half: halving, keeping nothing, every sqrt(L), and where it misleads."""
    relu, gelu = _kept(_mlp(Recompute())), _kept(_mlp(Recompute(), kinds.GELU))
    peaks = {every: _kept(_mlp(Recompute("every", every))) for every in range(1, DEPTH + 1)}
    side = isqrt(DEPTH)
    again = _recomputed(_mlp(Recompute("every", side)))
    nothing = DEPTH * (DEPTH - 1) // 2  # layer i of backward runs the i layers before it again, keeping none
    block, root = _transformer_peaks()
    ok = abs(gelu / relu - 2) < 0.05 and peaks[side] == min(peaks.values()) and abs(peaks[side] - 2 * side) <= 1
    ok = ok and abs(again - 1) < 0.05 and block < root
    value = (
        f"pre-activations kept {gelu:.0f}, not kept {relu:.0f}; L = {DEPTH}: every {side} is least, {peaks[side]:.0f} "
        f"kept, {again:.2f} forwards again; nothing kept: {nothing:,} layers again; a transformer of {DEPTH} blocks: "
        f"every block {block:.0f}, every {side} {root:.0f} block outputs"
    )
    expected = (
        "halves; L^2 / 2; every sqrt(L): about 2 sqrt(L) kept, one forward; in transformers every block is better"
    )
    return Claim("L25", "activation checkpointing (predicted)", expected, value, ok)


def _recomputed(ledger: Ledger) -> float:
    phases = ledger.totals(lambda op: op.phase)
    return phases["recompute"].matrix_flops / phases["forward"].matrix_flops


def _transformer_peaks() -> tuple[float, float]:
    """Peak activations of a deep transformer in block outputs, recomputing every block and every sqrt(L)."""
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 176,
        "num_attention_heads": 4,
        "num_hidden_layers": DEPTH,
        "vocab_size": 32,
    }
    model = read_config(config, "deep")
    peaks = []
    for every in (1, isqrt(DEPTH)):
        plan = Plan(seq=128, recompute=Recompute("every", every))
        peaks.append(build(model, plan).ledger.memory().maxima["activations"] / (2 * 128 * 64))
    return peaks[0], peaks[1]


def pile_of_tensors() -> Claim:
    """L28: the headers of a weights file, read alone, agree with the config beside it."""
    config = {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 100,
        "tie_word_embeddings": True,
    }
    model = read_config(config, "tiny")
    built = build(model, Plan(seq=1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        entries: dict[str, object] = {}
        at = 0
        for part in built.parts:
            for copy in range(part.count):
                for tensor in part.program.parameters:
                    shape = [product((name,), part.sizes) for name in tensor.dims]
                    end = at + 2 * product(tensor.dims, part.sizes)
                    entries[f"{copy}.{tensor.name}"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
                    at = end
        header = json.dumps(entries).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))
        weights = read_weights(path)
    check = check_weights(weights, model, built.n_params)
    ok = check.unexplained == 0 and weights.n_bytes == 2 * built.n_params
    held = f"{len(weights.tensors)} tensors, {format_count(weights.n_params)} values, {weights.n_bytes:,} bytes"
    value = f"{held}; {check.unexplained} unexplained"
    expected = "tensors, shapes, formats and bytes from the header, in agreement with the config"
    return Claim("L28", "a model is a pile of tensors", expected, value, ok)


ROWS = (optimizer_state, checkpointing, pile_of_tensors)
