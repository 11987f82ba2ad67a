"""An outside witness: what transformers and torch count for a config, on the meta device, without weights.

Run as a program it writes `golden.jsonl`: configs of every family that transformers has, their parameter counts, and
the forward matmul FLOPs of one sequence of 64 tokens by torch's FlopCounterMode (eager attention with a dense mask,
each token through its own experts only). Configs are drawn at random from the choices below, so that each option of
each family occurs.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

DRAWS = 5
SILENT = {"tie_word_embeddings", "attention_bias", "mlp_bias", "qkv_bias", "use_bias", "use_qk_norm", "qk_layernorm"}
GOLDEN = Path(__file__).parent / "golden.jsonl"
SEQ = 64
FLAGS = [
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "qkv_bias",
    "use_qkv_bias",
    "use_bias",
    "bias",
    "attention_out_bias",
    "enable_bias",
    "lm_head_bias",
    "use_qk_norm",
    "qk_layernorm",
    "use_parallel_residual",
    "parallel_attn",
    "new_decoder_architecture",
    "multi_query",
    "alibi",
    "do_layer_norm_before",
    "_remove_final_layer_norm",
    "layer_norm_elementwise_affine",
]
# The key of a transformers configuration -> what is drawn for it; a key that a family lacks is left out.
CHOICES: dict[str, list[Any]] = {
    "hidden_size": [64, 96, 128],
    "num_hidden_layers": [2, 3, 5],
    "num_attention_heads": [2, 4, 8],
    "intermediate_size": [40, 112, 160],
    "intermediate_size_mlp": [48, 72],
    "n_inner": [None, 80],
    "ffn_dim": [72, 128],
    "ffn_hidden_size": [None, 88],
    "head_dim": [None, 16, 24],
    "vocab_size": [101, 256, 333],
    "max_position_embeddings": [64, 96],
    "word_embed_proj_dim": [None, 32],
    "num_kv_heads": [None, 1, 2],
    "num_key_value_heads": [1, 2, "heads"],
    "num_ln_in_parallel_attn": [None, 1, 2],
    "rotary_dim": [4, 8],
    "num_local_experts": [2, 4],
    "num_experts": [2, 4],
    "n_routed_experts": [4, 8],
    "moe_num_experts": [4],
    "num_experts_per_tok": [1, 2],
    "moe_k": [1, 2],
    "moe_intermediate_size": [24, 40],
    "shared_expert_intermediate_size": [24, 56],
    "shared_intermediate_size": [0, 56],
    "n_shared_experts": [1, 2],
    "moe_num_shared_experts": [0, 1, 2],
    "first_k_dense_replace": [0, 1, 2],
    "moe_layer_start_index": [0, 1],
    "moe_layer_end_index": [-1, 1],
    "moe_layer_interval": [1, 2],
    "decoder_sparse_step": [1, 2],
    "interleave_moe_layer_step": [1, 2],
    "mlp_only_layers": [None, [1]],
    "n_group": [1],
    "topk_group": [1],
    "q_lora_rank": [None, 24],
    "kv_lora_rank": [16, 32],
    "qk_rope_head_dim": [8],
    "qk_nope_head_dim": [8, 16],
    "v_head_dim": [12, 16],
    "sliding_window": [None, 8, 16],
    "attention_chunk_size": [None, 16],
    "window_size": [8, 32],
    "max_window_layers": [1, 2],
    "no_rope_layer_interval": [2, 4],
    "use_sliding_window": [True, False],
    "hidden_dropout": [0.0, 0.1],
    "attention_dropout": [0.0, 0.1],
    "partial_rotary_factor": [0.5, 1.0],
    **{key: [True, False] for key in FLAGS},
}
# What a family needs beside: keys forced, or (...) left out.
FORCED: dict[str, dict[str, Any]] = {
    "gpt_neo": {"num_hidden_layers": 4, "attention_types": [[["global", "local"], 2]]},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
        "tie_word_embeddings": False,
        "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "exaone4": {"sliding_window": 8},
    "ernie4_5_moe": {"use_bias": False},
    "deepseek_v2": {"mlp_bias": False, "head_dim": ..., "num_key_value_heads": "heads"},
    "deepseek_v3": {"head_dim": ..., "num_key_value_heads": "heads"},
    "minicpm3": {"head_dim": ..., "num_key_value_heads": "heads"},
    "youtu": {"head_dim": ..., "num_key_value_heads": "heads"},
    "hunyuan_v1_dense": {"head_dim": 16},
    "ministral": {"head_dim": 16, "sliding_window": 8},
    "internlm3": {"qkv_bias": ..., "bias": ..., "mlp_bias": True, "attention_bias": True},
    "phimoe": {"num_experts_per_tok": 2},
    "phi": {"head_dim": ...},
    "olmoe": {"head_dim": ...},
}
TYPED = {"gemma2", "gemma3_text", "olmo3", "cohere2", "gpt_oss", "qwen2", "qwen3", "exaone4", "smollm3"}
WRAPPERS = {"gemma3", "llama4", "mistral3"}
DEFAULT_NEEDS = {"hunyuan_v1_dense": {"head_dim": 128}}
NO_DEFAULT = {"deepseek_v2", "dots1", "dbrx", "ministral", "nemotron", "glm4_moe"}  # their defaults build no model
NO_FLOPS = {"llama4_text", "dbrx"}  # every expert runs on every token; cannot be counted
BOOKKEEPING = {"id2label", "label2id", "architectures", "_name_or_path"}
NO_KV = {"gpt2", "gpt_neo", "gptj", "codegen", "gpt_neox", "opt", "bloom", "mpt", "gpt_bigcode", "persimmon", "dbrx"}
NO_HEAD_DIM = NO_KV | {"stablelm", "falcon", "cohere2"}


def draw(family: str, rng: random.Random) -> dict[str, Any]:
    """Draw the keys of one small model of `family`, as they would stand in a config.json."""
    from transformers import AutoConfig

    fields = set(AutoConfig.for_model(family).to_dict())
    names = type(AutoConfig.for_model(family)).attribute_map
    fields |= {ours for ours, theirs in names.items() if theirs in fields}
    if family not in NO_HEAD_DIM and "kv_lora_rank" not in fields:
        fields.add("head_dim")
    if family in {"phi", "stablelm", "gpt_neox", "nemotron", "glm4_moe", "phi3", "glm"}:
        fields.add("partial_rotary_factor")
    picked = {key: rng.choice(options) for key, options in CHOICES.items() if key in fields}
    picked = {key: value for key, value in picked.items() if key not in SILENT or rng.random() < 0.7}
    if "pad_token_id" in fields:
        picked["pad_token_id"] = 0
    picked.update(FORCED.get(family, {}))
    heads = picked["num_attention_heads"]
    picked["num_key_value_heads"] = min(
        heads, heads if picked.get("num_key_value_heads") == "heads" else picked.get("num_key_value_heads", 1)
    )
    if family in NO_KV or "num_key_value_heads" not in fields:
        del picked["num_key_value_heads"]
    _fit(family, picked, rng)
    if picked.get("head_dim") is None:
        picked.pop("head_dim", None)
    drop = [key for key, value in picked.items() if value is ...]
    given = {names.get(key, key): value for key, value in picked.items() if key not in drop}
    return {"model_type": family, **given}


def _fit(family: str, picked: dict[str, Any], rng: random.Random) -> None:
    """Make the drawn keys fit one another."""
    if picked.get("num_kv_heads"):
        picked["num_kv_heads"] = min(picked["num_kv_heads"], picked["num_attention_heads"])
    if picked.get("mlp_only_layers") and picked["num_hidden_layers"] < 2:
        picked["mlp_only_layers"] = None
    if "sliding_window" in picked and picked.get("use_sliding_window") and picked["sliding_window"] is None:
        picked["sliding_window"] = 8
    if family == "falcon" and not picked["parallel_attn"]:
        picked.update(new_decoder_architecture=False, num_ln_in_parallel_attn=None)
    if family == "falcon" and not picked["new_decoder_architecture"]:
        picked.update(num_ln_in_parallel_attn=None, num_kv_heads=None)
    if rng.random() < 0.3 and family in TYPED and picked.get("use_sliding_window", True):
        picked["layer_types"] = [
            rng.choice(["full_attention", "sliding_attention"]) for _ in range(picked["num_hidden_layers"])
        ]
    if family in {"gpt_oss", "gemma2", "gemma3_text", "olmo3", "cohere2"} and not picked.get("sliding_window"):
        picked["sliding_window"] = 16


def configuration(config: dict[str, Any]) -> Any:
    """Return transformers' configuration for the keys of a config.json."""
    from transformers import AutoConfig

    return AutoConfig.for_model(
        config["model_type"], **{key: value for key, value in config.items() if key != "model_type"}
    )


def model_of(config: dict[str, Any], device: str = "meta") -> Any:
    """Build transformers' model of `config`: on the meta device it has shapes and no numbers."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device(device):
        return AutoModelForCausalLM.from_config(
            configuration(config), attn_implementation="eager", experts_implementation="eager"
        )


def full_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return what transformers itself would write for `config`: every key of the family."""
    written: dict[str, Any] = json.loads(configuration(config).to_json_string(use_diff=False))
    return written


def count_parameters(model: Any) -> int:
    """Sum the distinct parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_flops(model: Any) -> int:
    """Count the matmul FLOPs of one forward of `SEQ` tokens with logits for all; experts need a real (tiny) model."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    tokens = torch.zeros(1, SEQ, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(input_ids=tokens, use_cache=False)
    return int(counter.get_total_flops())


def families() -> list[str]:
    """List the families that can be read and that transformers can build."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from sixnd.models.families import known_families

    return [name for name in known_families() if name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and name not in WRAPPERS]


def rows(family: str) -> list[dict[str, Any]]:
    """Make the golden rows of one family: its default model, and small ones with few keys and with all."""
    found = []
    if family not in NO_DEFAULT:
        default = {"model_type": family, **DEFAULT_NEEDS.get(family, {})}
        found.append({"family": family, "config": default, "params": count_parameters(model_of(default))})
    for index in range(DRAWS):
        config = draw(family, random.Random(f"{family} {index}"))
        params = count_parameters(model_of(config))
        flops = None if family in NO_FLOPS else count_flops(model_of(config, "cpu"))
        written = (
            {key: value for key, value in full_config(config).items() if key not in BOOKKEEPING}
            if index < 2
            else config
        )
        found.append({"family": family, "config": written, "params": params, "flops": flops})
    return found


def main() -> int:
    """Write the golden table."""
    lines = [json.dumps(row) for family in families() for row in rows(family)]
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} rows in {GOLDEN}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
