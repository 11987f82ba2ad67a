"""Does transformers, asked on the meta device, count the parameters that a config.json's architecture has?"""

import random

import oracle
import pytest
import witness

from sixnd.models.config import read_config
from sixnd.models.families import known_families

pytest.importorskip("torch", reason="torch, an outside witness, is not installed")
transformers = pytest.importorskip("transformers", reason="transformers, an outside witness, is not installed")
pytestmark = pytest.mark.slow
DRAWS = 12


@pytest.fixture(autouse=True)
def quiet():
    transformers.logging.set_verbosity_error()


@pytest.mark.parametrize("family", known_families())
def test_small_models_at_random(family):
    if family not in witness.families():
        pytest.skip(f"transformers builds no causal model of {family}")
    for index in range(DRAWS):
        config = witness.draw(family, random.Random(f"{family} witness {index}"))
        counted = witness.count_parameters(witness.model_of(config))
        assert oracle.parameter_count(read_config(config, "few keys")) == counted, config
        assert oracle.parameter_count(read_config(witness.full_config(config), "all keys")) == counted, config


@pytest.mark.parametrize(
    "config_class, model_class",
    [
        ("Gemma3Config", "Gemma3ForConditionalGeneration"),
        ("Llama4Config", "Llama4ForConditionalGeneration"),
        ("Qwen2_5_VLConfig", "Qwen2_5_VLForConditionalGeneration"),
        ("Qwen3VLConfig", "Qwen3VLForConditionalGeneration"),
    ],
)
def test_the_text_part_of_a_model_with_vision(config_class, model_class):
    import torch

    config = getattr(transformers, config_class)()
    with torch.device("meta"):
        model = getattr(transformers, model_class)(config)
    parts = [*model.language_model.parameters()] if hasattr(model, "language_model") else []
    parts = parts or [*model.model.language_model.parameters()]
    if not any(
        part.shape[:1] == (model.get_output_embeddings().weight.shape[0],) and part.dim() == 2 for part in parts
    ):
        raise AssertionError("the text part has no embedding")
    distinct = {id(part): part for part in [*parts, *model.get_output_embeddings().parameters()]}
    counted = sum(part.numel() for part in distinct.values())
    architecture = read_config(config.to_dict(), config_class)
    assert oracle.parameter_count(architecture) == counted
    assert any("only the 'text_config' is counted" in note for note in architecture.notes)
