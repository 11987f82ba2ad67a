"""Do we answer as reality did what people have asked in public? Each row names its thread on GitHub, or its source.

Facts are those of the thread; the answers come from the public functions, and nothing is worked out here by hand.
"""

from functools import cache

import pytest

from sixnd.errors import InputError
from sixnd.formats import get_format, storage_bytes
from sixnd.machines import parse_cluster, peak, resolve
from sixnd.models.config import read_config
from sixnd.planning.account import account as accounted
from sixnd.planning.napkin import training_time
from sixnd.planning.policies import bytes_per_param_text, get_optimizer, get_precision, stored_per_param

GIB, GB, TERA = 2**30, 10**9, 10**12


@cache
def account(model, **options):
    return accounted(model, advise=False, **options)


@cache
def llada_8b():
    """GSAI-ML/LLaDA-8B-Base: a Llama with multi-head attention and its own vocabulary."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 126464,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }
    return read_config(config, "llada-8b")


def stored(result):
    """Parameters, gradients, master copy and optimizer state together, in bytes on one device."""
    maxima = result.memory.maxima
    return sum(maxima[name] for name in ("parameters", "gradients", "master", "optimizer"))


# ------------------------------------------------------------------------------------------- does it fit?

FITS = [
    ("tatsu-lab/stanford_alpaca#56: LLaMA-7B, one A100-80GB", "llama-7b", "a100-80gb", {"seq": 512}, False),
    ("tatsu-lab/stanford_alpaca#56: LLaMA-7B, two A100-80GB", "llama-7b", "2xa100-80gb", {"seq": 512}, True),
    (
        "lm-sys/FastChat#1110: LLaMA-7B with checkpointing, 4 x 40 GB",
        "llama-7b",
        "4xa100-40gb",
        {"seq": 2048, "recompute": "full"},
        True,
    ),
    (
        "huggingface/trl#2294: the text layers alone of Llama-3.2-90B, 8 x A100-80GB, FSDP",
        "llama-3-70b",
        "8xa100-80gb",
        {"seq": 1024, "recompute": "full"},
        False,
    ),
    ("ZHZisZZ/dllm#9: LLaDA-8B, ZeRO-2, 2 x A100-40GB", llada_8b, "2xa100-40gb", {"seq": 512, "shard": "zero2"}, False),
    (
        "pytorch/torchtitan#1884: Llama-3-8B at 8192, 4 x H100, full recompute",
        "llama-3-8b",
        "4xh100",
        {"recompute": "full"},
        True,
    ),
]


@pytest.mark.parametrize("model, on, options, truth", [row[1:] for row in FITS], ids=[row[0] for row in FITS])
def test_verdicts(model, on, options, truth):
    result = account(model() if callable(model) else model, on=on, **options)
    assert result.memory.fits is truth
    assert ("does not fit" in result.verdict) is not truth


# ------------------------------------------------------------------------------------------- bytes


def test_an_oom_message_names_the_master_copy():
    """ZHZisZZ/dllm#9: "Tried to allocate 14.9 GiB" as ZeRO-2 made its optimizer, 8.0B parameters on two devices."""
    result = account(llada_8b(), on="2xa100-40gb", shard="zero2", seq=512)
    assert result.model.params.total == pytest.approx(8.0e9, rel=0.005)
    assert round(result.memory.master_bytes / GIB, 1) == 14.9


def test_fastchat_range_of_bytes_for_llama_7b():
    """lm-sys/FastChat#1110: 16 to 20 bytes a parameter, which is 108 to 135 GB."""
    least, most = (account("llama-7b", seq=512, precision=name) for name in ("bf16-master", "bf16-fp32grad"))
    assert round(stored(least) / GB) == 108
    assert 108 < stored(most) / GB < 135


def test_trl_numbers_for_90b_on_eight_devices():
    """huggingface/trl#2294: about 180 GB for each of 8 GPUs, and 22.5 GB for the weights alone."""
    each = stored_per_param(get_precision("bf16-master"), get_optimizer("adamw"))
    assert sum(each.values()) * 90 * GB / 8 == 180 * GB
    assert storage_bytes(get_format("bf16"), 90 * GB) / 8 == 22.5 * GB


def test_full_training_of_llama_3_1_70b():
    """huggingface/blog#2245: the post said 300 GB, then 519; AdamW in mixed precision keeps 1129."""
    assert round(stored(account("llama-3.1-70b", seq=128)) / GB) == 1129


def test_llama_2_7b_with_plain_sgd():
    """meta-pytorch/torchtune#389: 13.51 GB after setup and a peak of 27.83 GB in true bf16."""
    memory = account("llama-2-7b", on="a100-40gb", precision="bf16-pure", optimizer="sgd", seq=512).memory
    assert memory.parameters_bytes / GB == pytest.approx(13.51, rel=0.005)
    assert memory.peak_bytes / GB == pytest.approx(27.83, rel=0.05)


def test_adam_in_many_tensor_form_peaks_in_the_optimizer():
    """modelscope/ms-swift#411: out of memory inside _foreach_add of AdamW, Mistral-7B at 4096 on one A100-80GB."""
    plan = {"on": "a100-80gb", "precision": "bf16-pure", "seq": 4096}
    many, fused = (account("mistral-7b", foreach=foreach, **plan).memory for foreach in (True, False))
    assert many.peak_at == "optimizer optimizer.adamw"
    assert many.temporaries_bytes == many.parameters_bytes  # one more copy
    assert many.peak_bytes / GB == pytest.approx(57.9 + 14.5, rel=0.001)
    assert not fused.peak_at.startswith("optimizer")


def test_eighteen_bytes_a_parameter():
    """NVIDIA/Megatron-LM#654: 2 weight + 4 main + 4 gradient + 8 Adam."""
    text = bytes_per_param_text(get_precision("bf16-fp32grad"), get_optimizer("adamw"))
    assert text == "2 parameter + 4 gradient + 4 master + 8 optimizer = 18"


def test_state_of_adam_and_a_shadow_copy():
    """roboflow/rf-detr#1342: 389.3 MB more were measured for 32,111,170 float32 parameters."""
    n = 32_111_170
    state = stored_per_param(get_precision("fp32"), get_optimizer("adamw"))["optimizer"]
    assert (state * n + storage_bytes(get_format("fp32"), n)) / 10**6 == pytest.approx(389.3, rel=0.011)


@pytest.mark.parametrize("rows, gib", [(8192, 4.638), (1024, 0.580)])
def test_logits_in_float32(rows, gib):
    """ISEEKYAN/Megatron-LM#132: cross-entropy of 8192 x 151,936 saves 4.638 GiB, in chunks of 1024 rows 0.580."""
    result = account("qwen3-8b", seq=rows)
    (kept,) = {spec for op, _ in result.ledger.counted for spec in op.outputs if "log_probabilities" in spec.name}
    assert kept.n_elements == rows * 151_936
    assert kept.n_bytes / GIB == pytest.approx(gib, abs=0.0015)


# ------------------------------------------------------------------------------------------- caches


def test_an_engine_reserves_windowed_layers_in_full():
    """alvarobartt/hf-mem#60: vLLM holds 78,384 tokens of gpt-oss-120b in 5.38 GiB; without windowed layers: half."""
    memory = account("gpt-oss-120b", phase="decode", seq=78_384).memory
    assert memory.kv_cache_reserved_bytes == 78_384 * 73_728
    assert round(memory.kv_cache_reserved_bytes / GIB, 2) == 5.38
    assert memory.kv_cache_bytes / memory.kv_cache_reserved_bytes == pytest.approx(0.5, abs=0.001)


def test_both_bounds_of_a_windowed_cache():
    """alvarobartt/hf-mem#70: gpt-oss-20b, 32 x 8192: 6.09 GiB by min(window, length), 12.00 as engines reserve."""
    memory = account("gpt-oss-20b", phase="decode", seq=8192, batch=32).memory
    assert round(memory.kv_cache_bytes / GIB, 2) == 6.09
    assert memory.kv_cache_reserved_bytes == 12 * GIB


def test_experts_are_all_stored_and_few_compute():
    """AlexsJones/llmfit#230: a mixture of experts was said to fit by its active parameters."""
    result = account("qwen3-30b-a3b", phase="decode", precision="int4", seq=1024)
    params = result.model.params
    assert result.memory.parameters_bytes > params.total / 2 > 4 * params.active
    assert result.flops.forward.matrix < 2 * params.active * 1.5


def test_selective_recompute_saves_nothing_under_flash_attention():
    """NVIDIA/Megatron-LM#1225: to 30 % by the paper, and the peak fell from 25.52 to 24.94 GB: no scores are kept."""
    held = {
        (attention, recompute): account("gpt2-xl", batch=8, attention=attention, recompute=recompute).memory.peak_bytes
        for attention in ("flash", "math")
        for recompute in ("none", "selective")
    }
    assert held["flash", "selective"] / held["flash", "none"] > 24.94 / 25.52
    assert held["math", "selective"] < 0.5 * held["math", "none"]
    assert held["math", "selective"] == held["flash", "selective"]


# ------------------------------------------------------------------------------------------- MFU and its conventions


def rate(name, format="bf16"):
    return peak(resolve(name), format).flop_per_second


RESCALED = [
    ("karpathy/nanoGPT#464: 104 % on an H100 by an A100's peak", 104, "a100", "h100", "bf16", 32.8, 0.05),
    ("pytorch/torchtitan#4779: 152 % on an MI350X by an A100's", 152, "a100", "mi350x", "bf16", 20.5, 0.1),
    ("karpathy/nanochat#147: 23.4 % on A100s by an H100's peak", 23.4, "h100", "a100", "bf16", 74.1, 0.15),
    ("karpathy/nanoGPT#466: 0.96 % on a TITAN Xp by an A100's", 0.96, "a100", "titan-xp", "fp32", 25, 0.5),
]


@pytest.mark.parametrize("said, by, on, format, truth, within", [r[1:] for r in RESCALED], ids=[r[0] for r in RESCALED])
def test_utilisation_by_the_wrong_peak(said, by, on, format, truth, within):
    assert said * rate(by) / rate(on, format) == pytest.approx(truth, abs=within)


def test_an_engine_that_a_machine_lacks_is_no_number():
    with pytest.raises(InputError, match="no bf16 engine"):
        rate("titan-xp")


def test_peaks_are_dense_for_every_form():
    """Lightning-AI/pytorch-lightning#20660, #21743: one table held 1978.8 for some forms and 989.4 for others."""
    assert round(rate("h200-sxm") / TERA) in (989, 990)
    for name in ("h100-sxm", "h100-nvl", "h100-pcie", "h200-nvl"):
        assert rate(name) <= rate("h200-sxm") < 1000 * TERA


RATES = [
    (
        "pytorch/torchtitan#1884: Llama-3-8B at 8192, 5,615 tokens/s a device: 325.20 TFLOP/s, 32.88 %",
        ("llama-3-8b", {"on": "4xh100", "seq": 8192}),
        "6Nmm+12LHT",
        5615,
        325.20,
        0.3288,
    ),
    (
        "pytorch/torchtitan#481: Llama-3.1-405B at 8192, 109 tokens/s a device: 29 %",
        ("llama-3.1-405b", {"on": "128xh100", "seq": 8192}),
        "6Nmm+12LHT",
        109,
        None,
        0.289,
    ),
    (
        "karpathy/nanoGPT#110: GPT-2 at 562 ms for 5 x 12 x 1024 tokens a device: 30 %",
        ("gpt2", {"on": "8xa100-40gb", "batch": 12, "accumulation": 5, "shard": "ddp"}),
        "6N+12LHT",
        5 * 12 * 1024 / 0.562,
        None,
        0.300,
    ),
]


@pytest.mark.parametrize("what, name, speed, tflops, mfu", [row[1:] for row in RATES], ids=[row[0] for row in RATES])
def test_published_rates(what, name, speed, tflops, mfu):
    result = account(what[0], mfu_convention=name, **what[1])
    work = result.workload
    per_token = result.flops.conventions[name] * work.devices / work.tokens_per_step
    assert per_token * speed / result.time.mfu_peak_flop_per_second == pytest.approx(mfu, abs=0.002)
    if tflops is not None:
        assert per_token * speed / TERA == pytest.approx(tflops, abs=0.05)
    # and our own MFU is that of our own time
    assert result.time.mfu * result.time.mfu_peak_flop_per_second == pytest.approx(
        per_token * result.time.tokens_per_second_per_device
    )


def test_halving_attention_for_causal_masks():
    """AI-Hypercomputer/maxtext#1988: llama2-7b, 4 x 8192: weights 1299.00, attention 422.21, then 211.11 TFLOP."""
    flops = account("llama-2-7b", batch=4, seq=8192).flops
    whole, half = flops.conventions["6Nmm+12LHT"], flops.conventions["6Nmm+6LHT"]
    assert round((whole - half) / TERA, 2) == 211.11
    assert round(2 * (whole - half) / TERA, 2) == 422.21
    assert (2 * half - whole) / TERA == pytest.approx(1299.00, abs=0.06)  # with the norms' weights
    assert (flops.model - 2 * (whole - half)) / TERA == pytest.approx(1299.00, abs=0.01)  # contractions alone
    skipped = flops.model - flops.forward.matrix_causal - flops.backward.matrix_causal
    assert skipped / TERA == pytest.approx(422.21 - 211.11, abs=0.03)  # s(s-1)/2 pairs, not half of s x s


# ------------------------------------------------------------------------------------------- time


def test_the_lecture():
    """CS336, lecture 2: 70B parameters, 15T tokens, 1024 H100 at half their peak: 143 days, truncated."""
    answer = training_time(parse_cluster("1024xh100"), params=70 * 10**9, tokens=15 * 10**12, mfu=0.5)
    assert answer.flops == 63 * 10**23
    assert round(answer.days, 2) == 143.93


def test_megatron_600m_on_64_v100():
    """NVIDIA/Megatron-LM#449: 4.32 s for 256 x 2048 tokens is 95.4 days for 1T tokens, at 5.5 % of the peak."""
    answer = training_time(parse_cluster("64xv100"), params=6 * 10**8, tokens=10**12, days=95.4, engine="float16")
    assert round(answer.mfu * 100, 1) == 5.5


@pytest.mark.parametrize(
    "name, hours, mfu",
    [("llama-2-7b", 184_320, 39.1), ("llama-2-13b", 368_640, 37.7), ("llama-2-70b", 1_720_320, 42.9)],
)
def test_llama_2_model_card(name, hours, mfu):
    """Quoted in OpenBMB/MiniCPM#36: A100-80GB hours for 2T tokens."""
    n_params = account(name, seq=64).model.params.total
    answer = training_time(parse_cluster("a100-80gb"), params=n_params, tokens=2 * 10**12, days=hours / 24)
    assert answer.mfu * 100 == pytest.approx(mfu, abs=0.1)


def test_a_small_model_reaches_little():
    """wdndev/tiny-llm-zh#5: 92M parameters, 42B tokens, eight A100 for about 15 hours."""
    answer = training_time(parse_cluster("8xa100"), params=92 * 10**6, tokens=42 * 10**9, days=15 / 24)
    assert round(answer.mfu * 100, 1) == 17.2
