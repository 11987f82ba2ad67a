"""Are safetensors headers read as they are written, and are broken ones refused in one sentence?"""

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd.errors import ConfigError
from sixnd.formats import format_names
from sixnd.models.config import read_config
from sixnd.models.weight_check import check_weights
from sixnd.models.weights import DTYPES, WeightTensor, gather, read_header, read_weights
from sixnd.planning.account import account

NO_FORMAT = {"e4m3fnuz", "e5m2fnuz", "uint16", "uint32", "uint64", "complex64"}  # stored, and in no catalogue


def write(path: Path, tensors: dict, data: bytes | None = None, **more: object) -> Path:
    """Write a safetensors file by hand: `tensors` is name -> (dtype, shape)."""
    header, at = dict(more), 0
    for name, (dtype, shape) in tensors.items():
        n_values = 1
        for size in shape:
            n_values *= size
        n_bytes = n_values * DTYPES[dtype][1] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + (bytes(at) if data is None else data))
    return path


def test_one_file(tmp_path):
    tensors = {"embed.weight": ("BF16", [100, 64]), "norm.weight": ("F32", [64]), "scale": ("F32", [])}
    weights = read_weights(write(tmp_path / "x.safetensors", tensors, __metadata__={"format": "pt"}))
    assert [(tensor.name, tensor.shape, tensor.format_name) for tensor in weights.tensors] == [
        ("embed.weight", (100, 64), "bfloat16"),
        ("norm.weight", (64,), "float32"),
        ("scale", (), "float32"),
    ]
    assert (weights.n_params, weights.n_bytes) == (6465, 12800 + 260)
    assert weights.values_by_format == {"bfloat16": 6400, "float32": 65}


def test_a_folder_and_its_index(tmp_path):
    write(tmp_path / "model-1-of-2.safetensors", {"a": ("F16", [2, 3])})
    write(tmp_path / "model-2-of-2.safetensors", {"b": ("I8", [5])})
    assert read_weights(tmp_path).n_params == 11
    places = {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 17}, "weight_map": places}), encoding="utf-8")
    write(tmp_path / "other.safetensors", {"c": ("I8", [5])})
    assert read_weights(tmp_path) == read_weights(index)
    assert read_weights(index).n_params == 11


def test_every_stored_dtype_is_a_format(tmp_path):
    assert {name for name, _ in DTYPES.values()} <= {*format_names(), *NO_FORMAT}
    for dtype, (name, bits) in DTYPES.items():
        tensor = read_header(write(tmp_path / "x.safetensors", {"w": (dtype, [8])}))[0]
        assert (tensor.format_name, tensor.n_bytes) == (name, bits)


@pytest.mark.parametrize(
    "places, words",
    [
        ({"a": "gone-1.safetensors", "b": "gone-2.safetensors"}, "2 of 2 files are missing: gone-1.safetensors"),
        ({"a": "../a.safetensors"}, "is not the name of"),
        ({"a": "a.bin"}, "is not the name of"),
        ({"z": "here.safetensors"}, "names tensor 'z'"),
        ({"a": 3}, "'weight_map' must say"),
        (None, "'weight_map' must say"),
    ],
)
def test_broken_indexes(tmp_path, places, words):
    write(tmp_path / "here.safetensors", {"a": ("F16", [2])})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        read_weights(index)


def entry(**keys):
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **keys}}


@pytest.mark.parametrize(
    "header, n_data, words",
    [
        (entry(), 4, "may be cut short"),
        (entry(), 12, "holds 12 bytes of data"),
        (entry(dtype="F33"), 8, "is not one of"),
        (entry(dtype=3), 8, "is not one of"),
        (entry(shape=[-2]), 8, "shape must be"),
        (entry(shape=[True, 2]), 8, "shape must be"),
        (entry(shape=[3]), 8, "takes 12 bytes, not 8"),
        (entry(data_offsets=[0]), 8, "two whole numbers"),
        (entry(data_offsets=[8, 0]), 8, "takes 8 bytes, not -8"),
        (entry(data_offsets=[4, 12]), 12, "hole of 4 bytes"),
        ({**entry(), "v": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, 12, "overlaps"),
        ({"w": 3}, 0, "must have dtype"),
    ],
)
def test_broken_headers(tmp_path, header, n_data, words):
    raw = json.dumps(header).encode()
    file = tmp_path / "x.safetensors"
    file.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(n_data))
    with pytest.raises(ConfigError, match=words):
        read_weights(file)


@pytest.mark.parametrize(
    "raw, words",
    [
        (b"", "too few"),
        (b"\xff" * 8, "is no safetensors file"),
        ((10**6).to_bytes(8, "little") + b"{}", "cut short"),
        ((2).to_bytes(8, "little") + b"[]", "holds a list"),
        ((4).to_bytes(8, "little") + b"\xff\xfe{}", "is not text"),
        ((0).to_bytes(8, "little"), "is empty"),
    ],
)
def test_files_that_are_no_safetensors(tmp_path, raw, words):
    (tmp_path / "x.safetensors").write_bytes(raw)
    with pytest.raises(ConfigError, match=words):
        read_weights(tmp_path / "x.safetensors")


def test_nothing_there(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no \.safetensors"):
        read_weights(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_weights(tmp_path / "gone.safetensors")


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(tmp_path_factory, raw):
    file = tmp_path_factory.mktemp("fuzz") / "x.safetensors"
    file.write_bytes(raw)
    with contextlib.suppress(ConfigError):
        assert read_weights(file).n_bytes <= len(raw)


# ------------------------------------------------------------------------------------------- stored against counted


def stored(**shapes):
    tensors = [WeightTensor(name.replace("__", "."), shape, "bfloat16", 0) for name, shape in shapes.items()]
    return gather(tensors)


CONFIG = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2, "vocab_size": 100}
EMBEDDING = {"model__embed_tokens__weight": (100, 64)}
HEAD = {"lm_head__weight": (100, 64)}


@pytest.mark.parametrize(
    "tied, shapes, counted, reasons",
    [
        (False, {**EMBEDDING, **HEAD}, 12800, {}),
        (True, EMBEDDING, 6400, {}),
        (True, {**EMBEDDING, **HEAD}, 6400, {"stored once more": 6400}),
        (False, EMBEDDING, 12800, {"no head is stored": -6400}),
        (True, {**EMBEDDING, "model__layers__2__mlp__up_proj__weight": (4, 4)}, 6400, {"multi-token-prediction": 16}),
        (True, {**EMBEDDING, "model__layers__0__mlp__gate__e_score_correction_bias": (8,)}, 6400, {"router's": 8}),
        (True, {**EMBEDDING, "h__0__attn__bias": (1, 1, 8, 8)}, 6400, {"causal masks": 64}),
        (True, {**EMBEDDING, "vision_tower__x__weight": (8, 8)}, 6400, {"vision": 64}),
        (True, {**EMBEDDING, "model__layers__0__q_proj__qweight": (8, 8)}, 6400, {"quantised": 64}),
        (True, {**EMBEDDING, "model__layers__0__q_proj__weight_scale_inv": (8, 8)}, 6400, {"quantised": 64}),
    ],
)
def test_differences_have_reasons(tied, shapes, counted, reasons):
    architecture = read_config({**CONFIG, "tie_word_embeddings": tied}, "x")
    check = check_weights(stored(**shapes), architecture, counted)
    assert check.unexplained == 0
    assert check.difference == sum(reasons.values())
    assert len(check.reasons) == len(reasons)
    for (words, n_values), reason in zip(reasons.items(), check.reasons, strict=True):
        assert words in reason.text
        assert reason.n_values == n_values


def test_what_no_reason_covers_is_said():
    check = check_weights(stored(**EMBEDDING, **HEAD), read_config(CONFIG, "x"), 12801)
    assert (check.difference, check.unexplained) == (-1, -1)


def test_an_account_says_how_the_weights_beside_the_config_agree(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 10, "n_positions": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    alone = account(str(tmp_path), advise=False)
    assert not any("weights" in note for note in alone.notes)
    n = alone.model.params.total
    entry = {"wte.weight": {"dtype": "F32", "shape": [n], "data_offsets": [0, 4 * n]}}
    header = json.dumps(entry).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * n))
    assert account(str(tmp_path), advise=False).notes[0].endswith("agree with the config")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert "were not read" in account(str(tmp_path), advise=False).notes[0]
