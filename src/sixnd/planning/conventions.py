"""Which FLOPs does an MFU divide? Six answers in use, each named.

Letters: N parameters (active ones of a mixture of experts), Nmm those without an untied input embedding, L layers,
H heads x head dim, T context. All are for one token, forward and backward.

    exact         every contraction of forward and backward, attention dense (each query with each key)
    exact-causal  the same, attention only over the pairs that the mask lets through
    6N            Kaplan et al. 2020; nothing for attention
    6N+12LHT      PaLM 2022 (Chowdhery et al., appendix B), llm-foundry, nanoGPT
    6Nmm+12LHT    torchtitan, NeMo 24.07
    6Nmm+6LHT     Megatron-Bridge 25.09 and later, MaxText since 2025: causal attention is half of it
"""

from __future__ import annotations

from sixnd.errors import UsageError, near_miss
from sixnd.models.architecture import Architecture

CONVENTIONS = ("exact", "exact-causal", "6N", "6N+12LHT", "6Nmm+12LHT", "6Nmm+6LHT")


def check_convention(name: str) -> str:
    """Return the convention's own spelling; raises `UsageError` for an unknown one."""
    for known in CONVENTIONS:
        if name.lower().replace(" ", "") == known.lower():
            return known
    raise UsageError(
        f"MFU convention {name!r} is not known: expected one of {', '.join(CONVENTIONS)}{near_miss(name, CONVENTIONS)}"
    )


def attention_width(model: Architecture) -> int:
    """L times H of the conventions: heads x head dim, added up over layers."""
    return sum(layer.attention.heads * layer.attention.d_head for layer in model.layers)


def flops_by_convention(
    n_active: int, n_matmul: int, width: int, seq: int, tokens: int, exact: int, causal: int
) -> dict[str, int]:
    """Model FLOPs of `tokens` tokens with context `seq` under every convention.

    torchtitan's Llama 3 8B: 6 x 7.505e9 + 12 x 32 x 4096 x 8192 = 57.91e9 a token.

    >>> flops_by_convention(8030261248, 7504924672, 32 * 4096, 8192, 1, 0, 0)["6Nmm+12LHT"]
    57914449920
    """
    quadratic = width * seq
    per_token = {
        "6N": 6 * n_active,
        "6N+12LHT": 6 * n_active + 12 * quadratic,
        "6Nmm+12LHT": 6 * n_matmul + 12 * quadratic,
        "6Nmm+6LHT": 6 * n_matmul + 6 * quadratic,
    }
    return {"exact": exact, "exact-causal": causal, **{name: flops * tokens for name, flops in per_token.items()}}
