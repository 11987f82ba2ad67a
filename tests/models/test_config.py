"""Is a config.json read as its family's own code would read it, and is what cannot be read refused in one sentence?"""

import json
import subprocess
import sys
from pathlib import Path

import oracle
import pytest

from sixnd.errors import ConfigError
from sixnd.models import families
from sixnd.models.architecture import Experts, FeedForward, Latent
from sixnd.models.bundled import FOLDER, bundled_names, normalise
from sixnd.models.config import load_architecture, read_config
from sixnd.models.families import known_families, load_family

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 100,
}


def rows_of(table):
    text = (Path(__file__).parent / table).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


GOLDEN = rows_of("golden.jsonl")
USUAL = rows_of("usual_keys.jsonl")
# Parameters as published or as stored (each stored tensor once, tied heads once), from the models' own pages.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "gpt-j-6b": 6_050_882_784,
    "gpt-neox-20b": 20_554_567_680,
    "pythia-1b": 1_011_781_632,
    "pythia-6.9b": 6_857_302_016,
    "pythia-12b": 11_846_072_320,
    "opt-125m": 125_239_296,
    "opt-350m": 331_196_416,
    "opt-6.7b": 6_658_473_984,
    "opt-30b": 29_974_540_288,
    "bloom-560m": 559_214_592,
    "bloom-176b": 176_247_271_424,
    "mpt-7b": 6_649_286_656,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "llama-65b": 65_285_660_672,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "tinyllama-1.1b": 1_100_048_384,
    "smollm2-135m": 134_515_008,
    "smollm3-3b": 3_075_098_624,
    "mistral-7b": 7_241_732_096,
    "mistral-nemo-12b": 12_247_782_400,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gemma-7b": 8_537_680_896,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-27b": 27_009_346_304,
    "phi-2": 2_779_683_840,
    "phi-3-mini": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "olmo-2-7b": 7_298_617_344,
    "olmo-2-32b": 32_234_279_936,
    "olmoe-1b-7b": 6_919_161_856,
    "stablelm-2-1.6b": 1_644_515_328,
    "granite-3-8b": 8_170_848_256,
    "command-r": 34_980_831_232,
    "command-r-plus": 103_810_674_688,
    "starcoder-15b": 15_517_456_384,
    "starcoder2-15b": 15_957_889_024,
    "deepseek-moe-16b": 16_375_728_128,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_404_352,  # without the 14848 numbers of the router's correction, a buffer
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "dbrx": 131_596_523_520,
    "internlm2-7b": 7_737_708_544,
    "baichuan2-7b": 7_505_973_248,
    "qwen-7b": 7_721_324_544,
    "seed-oss-36b": 36_151_104_512,
}


def tiny(**keys):
    return read_config({**TINY, **keys}, "tiny")


# ------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("row", GOLDEN, ids=[f"{row['family']}-{index}" for index, row in enumerate(GOLDEN)])
def test_golden_counts_of_every_family(row):
    architecture = read_config(row["config"], "golden")
    assert oracle.parameter_count(architecture) == row["params"]
    assert not [note for note in architecture.notes if "not known" in note]
    if row.get("flops"):
        assert oracle.forward_flops(architecture, 64) == row["flops"]


@pytest.mark.parametrize("row", USUAL, ids=[row["config"]["model_type"] for row in USUAL])
def test_configs_with_all_the_usual_keys_are_read_without_a_word_on_any(row):
    architecture = read_config(row["config"], "usual")
    assert oracle.parameter_count(architecture) == row["params"]
    assert not [note for note in architecture.notes if "not known" in note or "default" in note]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameter_counts(name):
    assert oracle.parameter_count(load_architecture(name)) == PUBLISHED[name]


def test_golden_rows_cover_the_families_that_have_a_witness():
    without = {
        *("baichuan", "deepseek", "internlm2", "kimi_k2", "minicpm", "qwen"),  # their code is not in transformers
        *("gemma3", "llama4", "mistral3", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"),  # a text part and others
        *("qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text"),
    }
    assert set(known_families()) - {row["family"] for row in GOLDEN} == without


# ------------------------------------------------------------------------------------------- families


def test_absent_is_the_familys_default_not_false():
    assert not tiny().tied
    assert tiny(model_type="gemma", num_key_value_heads=8).tied
    assert read_config({"model_type": "gpt2"}, "x").tied
    assert not tiny(model_type="gemma", num_key_value_heads=8, tie_word_embeddings=False).tied
    assert not read_config({"model_type": "gptj"}, "x").tied


def test_key_value_heads_absent_null_and_given():
    assert tiny().layers[0].attention.kv_heads == 8
    assert tiny(num_key_value_heads=2).layers[0].attention.kv_heads == 2
    mistral = {**TINY, "model_type": "mistral", "num_attention_heads": 32}
    assert read_config(mistral, "x").layers[0].attention.kv_heads == 8
    assert read_config({**mistral, "num_key_value_heads": None}, "x").layers[0].attention.kv_heads == 32


def test_head_dim_need_not_be_d_model_over_heads():
    assert tiny(head_dim=24).layers[0].attention.d_head == 24
    assert tiny(model_type="qwen3", num_key_value_heads=8).layers[0].attention.d_head == 128
    assert tiny(num_attention_heads=7, head_dim=16).layers[0].attention.heads == 7


def test_falcon_is_three_kinds():
    seven, forty = load_architecture("falcon-7b"), load_architecture("falcon-40b")
    assert (seven.layers[0].attention.kv_heads, seven.norm_placement) == (1, "parallel")
    assert (forty.layers[0].attention.kv_heads, forty.norm_placement) == (8, "parallel-two")
    flags = {"alibi": True, "bias": True, "multi_query": False, "parallel_attn": False}
    rw = read_config({"model_type": "falcon", "hidden_size": 64, "num_attention_heads": 8, **flags}, "rw")
    assert (rw.positions, rw.norm_placement, rw.layers[0].attention.kv_heads) == ("alibi", "pre", 8)
    assert rw.layers[0].attention.qkv_bias
    assert not rw.layers[0].rotary


def test_opt_350m_norms_after_the_sum_and_projects_its_embedding():
    opt = load_architecture("opt-350m")
    assert (opt.norm_placement, opt.final_norm, opt.d_embedding, opt.position_rows) == ("post", False, 512, 2050)


def test_neox_residuals():
    assert load_architecture("gpt-neox-20b").norm_placement == "parallel-two"
    assert read_config({"model_type": "gpt_neox", "use_parallel_residual": False}, "x").norm_placement == "pre"


def test_mla_and_dense_layers_first():
    v3 = load_architecture("deepseek-v3")
    attention = v3.layers[0].attention
    assert attention.latent == Latent(1536, 512, 64, 128)
    assert (attention.d_head, attention.d_value, attention.kv_heads) == (192, 128, 128)
    assert [isinstance(layer.feed_forward, Experts) for layer in v3.layers] == [False] * 3 + [True] * 58
    assert any("multi-token-prediction" in note for note in v3.notes)
    assert load_architecture("deepseek-v2-lite").layers[0].attention.latent.q_rank is None


def test_experts_every_other_layer():
    maverick = load_architecture("llama-4-maverick")
    assert [isinstance(layer.feed_forward, Experts) for layer in maverick.layers[:4]] == [False, True, False, True]
    assert maverick.layers[0].feed_forward == FeedForward(16384, True, "silu")
    sparse = {
        **TINY,
        "model_type": "qwen3_moe",
        "num_key_value_heads": 8,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [3],
    }
    layers = read_config(sparse, "x").layers
    assert [isinstance(layer.feed_forward, Experts) for layer in layers] == [False, True, False, False]


@pytest.mark.parametrize(
    "config, windows",
    [
        ({"model_type": "gemma2", "sliding_window": 8}, [8, None, 8, None]),
        ({"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 3}, [8, 8, None, 8]),
        ({"model_type": "gemma3_text", "sliding_window": 8}, [8, 8, 8, 8]),
        ({"model_type": "mistral"}, [4096] * 4),
        ({"model_type": "mistral", "sliding_window": None}, [None] * 4),
        ({"model_type": "qwen2", "sliding_window": 8, "max_window_layers": 2}, [None] * 4),
        (
            {"model_type": "qwen2", "sliding_window": 8, "max_window_layers": 2, "use_sliding_window": True},
            [None, None, 8, 8],
        ),
        ({"model_type": "gpt_oss", "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}, [None] * 3 + [128]),
        ({"model_type": "gpt_neo", "num_layers": 4, "hidden_size": 64}, [None, 256, None, 256]),
        (
            {"model_type": "gpt_neo", "num_layers": 4, "attention_types": [[["local", "global"], 2]]},
            [256, None, 256, None],
        ),
        ({"model_type": "exaone4", "sliding_window": 8, "sliding_window_pattern": "LLG"}, [8, 8, None, 8]),
        ({"model_type": "llama", "sliding_window": 8}, [None] * 4),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else "",
)
def test_windows(config, windows):
    sizes = {} if config["model_type"] == "gpt_neo" else {**TINY, "num_key_value_heads": 8}
    assert [layer.window for layer in read_config({**sizes, **config}, "x").layers] == windows


@pytest.mark.parametrize(
    "config, rotary",
    [
        ({"model_type": "smollm3"}, [True, True, True, False]),
        ({"model_type": "smollm3", "no_rope_layers": [0, 1, 1, 0]}, [False, True, True, False]),
        ({"model_type": "cohere2"}, [True, True, True, False]),
        ({"model_type": "llama4_text"}, [True, True, True, False]),
        ({"model_type": "exaone4", "sliding_window": None}, [True] * 4),
        ({"model_type": "exaone4"}, [True, True, True, False]),
        ({"model_type": "llama"}, [True] * 4),
    ],
)
def test_layers_that_turn_nothing(config, rotary):
    keys = {**TINY, "num_attention_heads": 32, "num_key_value_heads": 8, **config}
    assert [layer.rotary for layer in read_config(keys, "x").layers] == rotary


def test_dropout_is_whether_there_is_any():
    gpt2 = read_config({"model_type": "gpt2"}, "x")
    assert (gpt2.residual_dropout, gpt2.attention_dropout, gpt2.embedding_dropout) == (True, True, True)
    none = read_config({"model_type": "gpt2", "resid_pdrop": 0.0, "attn_pdrop": 0, "embd_pdrop": 0.0}, "x")
    assert (none.residual_dropout, none.attention_dropout, none.embedding_dropout) == (False, False, False)


def test_equal_layers_are_one_record():
    assert len({id(layer) for layer in load_architecture("llama-3.1-405b").layers}) == 1


def test_partial_rotation():
    assert load_architecture("gpt-j-6b").layers[0].attention.rotary_fraction == 0.25
    assert load_architecture("phi-2").layers[0].attention.rotary_fraction == 0.4
    assert read_config({"model_type": "gpt_neox", "rotary_pct": 1.0}, "x").layers[0].attention.rotary_fraction == 1.0


# ------------------------------------------------------------------------------------------- parts and notes


def test_only_the_text_config_is_read():
    text = {key: value for key, value in TINY.items() if key != "model_type"}
    outer = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152}}
    model = read_config(outer, "x")
    assert (model.family, model.d_model) == ("gemma3_text", 64)
    assert "only the 'text_config' is counted; 'vision_config' is not" in model.notes
    assert read_config({"model_type": "llava", "text_config": TINY}, "x").family == "llama"


def test_unknown_keys_are_one_note():
    assert tiny(foo=1).notes == ("config key 'foo' is not known to family 'llama' and was ignored",)
    assert len(tiny(foo=1, bar=2).notes) == 1
    assert "and 12 more" in tiny(**{f"foo_{index}": 1 for index in range(20)}).notes[0]


def test_keys_without_effect_are_no_notes():
    inert = {"bos_token_id": 1, "rope_theta": 5e5, "torch_dtype": None, "use_cache": True, "_name": "x", "id2label": {}}
    assert tiny(**inert).notes == ()


def test_what_is_filled_in_packed_or_left_out_is_noted():
    assert "intermediate_size = 11008" in " ".join(read_config({"model_type": "llama"}, "x").notes)
    assert "quantised (method 'awq')" in " ".join(tiny(quantization_config={"quant_method": "awq"}).notes)
    assert "bfloat16" in " ".join(tiny(torch_dtype="bfloat16").notes)


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_descriptions_leave_nothing_to_note(name):
    notes = load_architecture(name).notes
    assert not [note for note in notes if "not known" in note or "default" in note]


# ------------------------------------------------------------------------------------------- refusals

REFUSED = [
    ({"model_type": None}, "there is no 'model_type'"),
    ({"model_type": 7}, "'model_type' must be text"),
    ({"model_type": "lama"}, "did you mean 'llama'"),
    ({"model_type": "bert"}, "is an encoder; only decoder-only"),
    ({"model_type": "t5"}, "is an encoder with a decoder"),
    ({"model_type": "mamba2"}, "state-space"),
    ({"is_encoder_decoder": True}, "'is_encoder_decoder'"),
    ({"hidden_size": -4096}, "'hidden_size' must be a whole number"),
    ({"hidden_size": 10**30}, "'hidden_size'"),
    ({"hidden_size": True}, "'hidden_size'"),
    ({"hidden_size": 4096.0}, "'hidden_size'"),
    ({"hidden_size": "big"}, "'hidden_size'"),
    ({"num_hidden_layers": 0}, "'num_hidden_layers'"),
    ({"num_hidden_layers": 10_001}, "'num_hidden_layers'"),
    ({"num_attention_heads": 31}, "'num_attention_heads' = 31 does not divide 'hidden_size' = 64"),
    ({"num_key_value_heads": 5}, "'num_key_value_heads' = 5 does not divide 'num_attention_heads' = 8"),
    ({"hidden_act": "sillu"}, "did you mean 'silu'"),
    ({"attention_bias": "yes"}, "'attention_bias' must be true or false"),
    ({"attention_dropout": -1}, "'attention_dropout'"),
    ({"num_local_experts": 8}, "'num_local_experts' changes shapes"),
    ({"kv_lora_rank": 512}, "'kv_lora_rank' changes shapes"),
    ({"layer_types": ["linear_attention"] * 4}, "'layer_types' must be one of"),
    ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "names 1 layers"),
    ({"model_type": "smollm3", "no_rope_layers": [1]}, "names 1 layers"),
    ({"model_type": "mixtral", "num_key_value_heads": 8, "num_experts_per_tok": 9}, "'num_experts_per_tok'"),
    ({"model_type": "mixtral", "num_key_value_heads": 8, "num_local_experts": 2, "num_experts": 4}, "means the same"),
    ({"model_type": "deepseek_v2"}, "'num_experts_per_tok' is needed"),
    ({"model_type": "gpt_neox", "num_key_value_heads": 4}, "is only understood as 8"),
    ({"text_config": {"model_type": "zebra"}}, "zebra"),
    ({"text_config": {"model_type": 3}}, "'text_config.model_type' must be text"),
]


@pytest.mark.parametrize("keys, words", REFUSED, ids=[str(index) for index in range(len(REFUSED))])
def test_refusals_name_the_key(keys, words):
    with pytest.raises(ConfigError) as caught:
        tiny(**keys)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1800


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "is empty"),
        (b'{"model_type": "llama", "hidden_', "not valid JSON"),
        (b"[1,2]", "holds a list"),
        (b"null", "holds null"),
        (b'{"model_type":"llama","hidden_size":NaN}', "NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "nested too deeply"),
        (bytes(range(256)) * 16, "is not text"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "not valid JSON"),
    ],
    ids=["empty", "truncated", "list", "null", "nan", "deep", "deep-object", "binary", "digits"],
)
def test_files_that_are_no_config(tmp_path, content, words):
    (tmp_path / "config.json").write_bytes(content)
    for path in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(ConfigError, match=words):
            load_architecture(str(path))


def test_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "nowhere.json", tmp_path, f"{tmp_path}/a\0b"):
        with pytest.raises(ConfigError):
            load_architecture(str(path))
    with (tmp_path / "huge.json").open("wb") as huge:
        huge.truncate(65 * 2**20)
    with pytest.raises(ConfigError, match="at most"):
        load_architecture(str(tmp_path / "huge.json"))


# ------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "written, name",
    [
        ("gpt2", "gpt2"),
        ("GPT2-XL", "gpt2-xl"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("google/gemma_2_9b", "gemma-2-9b"),
        ("mistral-7b-v0.3", "mistral-7b-v0.3"),
    ],
)
def test_names_are_normalised(written, name):
    assert normalise(written) == name
    assert load_architecture(written).name == name


def test_a_name_that_is_not_there_has_near_misses():
    with pytest.raises(ConfigError, match=r"did you mean .*'llama-3-8b'"):
        load_architecture("lama-3-8b")


def test_a_folder_gives_its_name(tmp_path):
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
    assert load_architecture(str(tmp_path / "my-model")).name == "my-model"


# ------------------------------------------------------------------------------------------- families' files


@pytest.mark.parametrize("name", known_families())
def test_every_family_reads_its_own_defaults(name):
    family = load_family(name)
    assert not set(family.keys) - set(families.SETTINGS)
    try:
        read_config({"model_type": name}, name)
    except ConfigError as error:
        assert name in {"deepseek_v2", "glm4_moe"}, error  # noqa: PT017


def test_a_family_that_is_like_another_needs_no_code(tmp_path, monkeypatch):
    for file in families.FOLDER.glob("*.toml"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "zebra.toml").write_text('like = "llama"\n[keys]\nd_ff = "stripes"\n', encoding="utf-8")
    monkeypatch.setattr(families, "FOLDER", tmp_path)
    for cached in (families.known_families, families.load_family, families._load):
        cached.cache_clear()
    zebra = read_config({**TINY, "model_type": "zebra", "stripes": 48}, "z")
    for cached in (families.known_families, families.load_family, families._load):
        cached.cache_clear()
    assert zebra.layers[0].feed_forward.d_ff == 48


def test_bundled_files_are_json_objects_of_known_families():
    for file in FOLDER.glob("*.json"):
        assert json.loads(file.read_text(encoding="utf-8"))["model_type"] in known_families()


def test_reading_a_config_imports_nothing_heavy():
    program = (
        "import sys; from sixnd.models.config import load_architecture; load_architecture('llama-3-8b');"
        "print(sorted({'torch', 'numpy', 'transformers', 'scipy'} & set(sys.modules)))"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
