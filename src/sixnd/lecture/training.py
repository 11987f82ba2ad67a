"""The lecture on what a training run holds: optimizer state, and a model as a pile of tensors."""

from __future__ import annotations

import json
import struct
import tempfile
from math import prod
from pathlib import Path

from sixnd.lecture.checkpointing import checkpointing
from sixnd.lecture.claim import Claim
from sixnd.models.config import read_config
from sixnd.models.weight_check import check_weights
from sixnd.models.weights import read_weights
from sixnd.plan import Plan
from sixnd.planning.build import build
from sixnd.planning.policies import get_optimizer, get_precision, stored_per_param

STATES = {"sgd": 0, "momentum": 4, "adagrad": 4, "rmsprop": 4, "adam": 8, "adamw": 8}
TINY = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 100,
    "tie_word_embeddings": True,
}
LAYER = {
    "self_attn.q_proj": (32, 32),
    "self_attn.k_proj": (16, 32),
    "self_attn.v_proj": (16, 32),
    "self_attn.o_proj": (32, 32),
    "mlp.gate_proj": (64, 32),
    "mlp.up_proj": (64, 32),
    "mlp.down_proj": (32, 64),
    "input_layernorm": (32,),
    "post_attention_layernorm": (32,),
}
"""One layer of `TINY` as such models are stored; written out, so that the count from the config has a witness."""


def optimizer_state() -> Claim:
    """L23: bytes of state for each parameter in float32."""
    precision = get_precision("fp32")
    found = {name: int(stored_per_param(precision, get_optimizer(name)).get("optimizer", 0)) for name in STATES}
    value = ", ".join(f"{name} {n}" for name, n in found.items())
    expected = "SGD 0, momentum 4, Adagrad 4, RMSProp 4, Adam(W) 8 bytes per parameter"
    return Claim("L23", "optimizer state in float32", expected, value, found == STATES)


def pile_of_tensors() -> Claim:
    """L28: the headers of a weights file, read alone, agree with the config beside it."""
    model = read_config(TINY, "tiny")
    n_params = build(model, Plan(seq=1)).n_params
    shapes = {"model.embed_tokens.weight": (100, 32), "model.norm.weight": (32,)}
    for i in range(len(model.layers)):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in LAYER.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        _write_zeros(path, shapes)
        weights = read_weights(path)
    check = check_weights(weights, model, n_params)
    formats = ", ".join(weights.values_by_format)
    ok = check.unexplained == 0 and {tensor.name: tensor.shape for tensor in weights.tensors} == shapes
    ok = ok and weights.n_bytes == 2 * n_params and formats == "bfloat16"
    held = f"{len(weights.tensors)} tensors, {weights.n_params:,} values in {formats}, {weights.n_bytes:,} bytes"
    value = f"{held}; {n_params:,} by the config, {check.unexplained} unexplained"
    expected = "tensors, shapes, formats and bytes from the header, in agreement with the config"
    return Claim("L28", "a model is a pile of tensors", expected, value, ok)


def _write_zeros(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Write a safetensors file of bf16 zeros: the header's length, the header, the data."""
    header: dict[str, object] = {}
    at = 0
    for name, shape in shapes.items():
        end = at + 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(at))


ROWS = (optimizer_state, checkpointing, pile_of_tensors)
