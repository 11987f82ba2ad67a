"""Can any plan at all make an account fail in a way that is not one clear sentence, or say what cannot be?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.errors import SixndError
from sixnd.ledger import CATEGORIES
from sixnd.machines import machine_names
from sixnd.models.config import read_config
from sixnd.planning.account import account
from sixnd.planning.conventions import CONVENTIONS
from sixnd.planning.policies import optimizer_names, precision_names

NAMES = [
    "gpt2",
    "llama-3.2-1b",
    "smollm2-135m",
    "gemma-3-1b",
    "opt-350m",
    "olmoe-1b-7b",
    "deepseek-v2-lite",
    "gpt-oss-20b",
    "pythia-160m",
    "bloom-560m",
]
SIZES = st.one_of(st.integers(1, 9), st.integers(1, 5000))
MACHINES = st.sampled_from(["h100", "a100-40gb", "v100", "b200", "mi300x", "rtx-4090", "t4", *machine_names()])
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "batch": SIZES,
        "seq": SIZES,
        "accumulation": st.sampled_from([1, 2, 3, 8]),
        "phase": st.sampled_from(["train", "train", "prefill", "decode"]),
        "precision": st.sampled_from(precision_names()),
        "optimizer": st.sampled_from(optimizer_names()),
        "recompute": st.sampled_from(["none", "selective", "full", "sqrt", "every:3", "every:1000"]),
        "attention": st.sampled_from(["flash", "math"]),
        "kernels": st.sampled_from(["fused", "eager"]),
        "shard": st.sampled_from(["none", "ddp", "zero1", "zero2", "zero3"]),
        "foreach": st.booleans(),
        "mfu_convention": st.sampled_from(CONVENTIONS),
        "tokens": st.integers(1, 10**14),
        "global_batch": st.integers(1, 10**7),
    },
)
PLACES = st.builds(lambda n, name: f"{n}x{name}", st.sampled_from([1, 1, 2, 3, 8, 30, 512]), MACHINES)


def check(result):
    memory, time = result.memory, result.time
    assert sum(getattr(memory, f"{name}_bytes") for name in CATEGORIES) == memory.peak_bytes
    assert all(getattr(memory, f"{name}_bytes") >= 0 for name in CATEGORIES)
    assert 0 < time.ideal_seconds <= time.seconds
    assert 0 < time.mfu <= time.ideal_mfu
    bound = time.bound
    assert bound.compute + bound.memory + bound.communication + bound.overhead == pytest.approx(1)
    assert result.flops.total == result.ledger.flops()
    assert (result.room is not None) is memory.fits
    if result.workload.phase == "train":
        net = [sum(column) for column in zip(*(node.profile.net for node in result.ledger.body), strict=True)]
        assert net == [0] * len(CATEGORIES)
    for remedy in result.remedies:
        assert remedy.device_bytes <= memory.capacity_bytes
    if result.room is not None:
        assert result.room.batch >= result.plan.micro_batch
        assert result.room.seq >= result.plan.seq
    result.to_dict()


def account_or_refusal(model, on, choices):
    """The account, or the sentence with which it was refused; anything else that is raised fails the test."""
    try:
        return account(model() if callable(model) else model, on=on, **choices), ""
    except SixndError as error:
        return None, str(error)


def judge(found, refusal):
    if found is None:
        assert refusal.strip()
        assert "\n" not in refusal
    else:
        check(found)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(NAMES), PLACES, CHOICES)
def test_a_plan_is_accounted_for_or_refused_in_a_sentence(name, on, choices):
    judge(*account_or_refusal(name, on, choices))


SHAPES = st.fixed_dictionaries(
    {
        "model_type": st.sampled_from(["llama", "gpt2", "mixtral", "gemma2", "opt", "qwen3_moe", "gpt_neox", "falcon"]),
        "hidden_size": st.sampled_from([1, 8, 48]),
        "num_hidden_layers": st.integers(1, 4),
        "num_attention_heads": st.sampled_from([1, 2, 4]),
        "vocab_size": st.integers(1, 99),
    },
    optional={
        "num_key_value_heads": st.sampled_from([1, 2]),
        "intermediate_size": st.integers(1, 99),
        "max_position_embeddings": st.integers(1, 300),
        "tie_word_embeddings": st.booleans(),
        "head_dim": st.sampled_from([1, 2, 8]),
        "num_experts_per_tok": st.integers(1, 3),
    },
)


@settings(max_examples=60, deadline=None)
@given(SHAPES, PLACES, CHOICES)
def test_models_of_any_small_shape(config, on, choices):
    judge(*account_or_refusal(lambda: read_config(config, "tiny"), on, choices))
