"""Whatever a config.json says: an architecture whose sizes fit one another, or one `ConfigError`; nothing else."""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sixnd.errors import ConfigError
from sixnd.models.architecture import Architecture, Experts
from sixnd.models.config import load_architecture, read_config
from sixnd.models.families import known_families, load_family

NASTY = [
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    7,
    8,
    64,
    -1,
    0.5,
    1e308,
    10**30,
    "",
    "x",
    "gelu",
    [],
    [1],
    ["full_attention"] * 4,
    {},
    {"a": 1},
]
json_values = st.recursive(
    st.sampled_from(NASTY) | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


def known_keys(family: str) -> list[str]:
    """Every key that a family has a word to say about."""
    it = load_family(family)
    keys = {key for keys in it.keys.values() for key in keys} | set(it.switches) | set(it.must)
    return sorted({key.split(".")[0] for key in keys})


def sound(architecture: Architecture) -> None:
    """Hold an architecture to what every reader of it relies on."""
    assert architecture.d_model > 0
    assert architecture.vocab > 0
    assert architecture.layers
    for layer in set(architecture.layers):
        assert layer.attention.heads % layer.attention.kv_heads == 0
        assert layer.window is None or layer.window > 0
        assert 0 <= layer.attention.rotary_fraction <= 1
        if isinstance(layer.feed_forward, Experts):
            assert 1 <= layer.feed_forward.top_k <= layer.feed_forward.n_experts
    assert oracle.parameter_count(architecture) > 0
    hash(architecture)


@contextlib.contextmanager
def plain_refusal() -> Iterator[None]:
    """Let one kind of error pass, if its text is one clear line; any other error is a failure."""
    text = "fine"
    try:
        yield
    except ConfigError as error:
        text = str(error)
    assert 0 < len(text) < 2000
    assert "\n" not in text


def read_or_refuse(config: dict) -> None:
    with plain_refusal():
        sound(read_config(config, "fuzz"))


@given(
    st.dictionaries(st.text(max_size=20), json_values, max_size=6), st.sampled_from([*known_families(), "zebra", None])
)
def test_any_object_is_read_or_refused(config, family):
    read_or_refuse({**config, "model_type": family})


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_known_keys_with_any_values(data):
    family = data.draw(st.sampled_from(known_families()))
    keys = data.draw(st.lists(st.sampled_from(known_keys(family)), max_size=6, unique=True))
    read_or_refuse({"model_type": family, **{key: data.draw(json_values) for key in keys}})


@pytest.mark.parametrize("family", known_families())
def test_every_known_key_with_every_nasty_value(family):
    for key in known_keys(family):
        for value in NASTY:
            read_or_refuse({"model_type": family, key: value})


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, raw):
    file = tmp_path_factory.mktemp("fuzz") / "config.json"
    file.write_bytes(raw)
    with pytest.raises(ConfigError):
        load_architecture(str(file))


@given(st.text(max_size=80))
def test_any_name_is_found_or_refused(name):
    with plain_refusal():
        load_architecture(name)


def test_damaged_files(tmp_path: Path):
    text = json.dumps(
        {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2}
    ).encode()
    rng = random.Random(7)
    for _ in range(300):
        damaged = bytearray(text)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "config.json").write_bytes(
            bytes(damaged[: rng.randint(1, len(damaged))] if rng.random() < 0.5 else damaged)
        )
        with plain_refusal():
            sound(load_architecture(str(tmp_path)))
