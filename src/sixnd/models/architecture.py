"""What has to be known about a transformer to write its lines?

An `Architecture` is pure description: sizes and choices, no arithmetic. `families.toml` and `config.py` read one from a
config.json; `blocks.py` writes it in the notation. A choice that changes no shape, no kept tensor and no cost (an
epsilon, a rope base, an initialiser) has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Positions = Literal["rotary", "learned", "alibi", "none"]
NormKind = Literal["rms", "rms-without-weight", "layer", "layer-without-bias", "layer-without-weight"]
NormPlacement = Literal["pre", "post", "branch", "sandwich", "parallel", "parallel-two"]
QkNorm = Literal["none", "head", "every-head", "all"]
Activation = Literal["relu", "relu2", "gelu", "gelu-tanh", "silu"]


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek V2): queries and keys/values pass through low-rank bottlenecks."""

    q_rank: int | None
    kv_rank: int
    d_rope: int
    d_nope: int


@dataclass(frozen=True)
class Attention:
    """One attention layer's shapes.

    `qk_norm` "head" shares one weight of d_head over the heads (Qwen 3, Gemma 3), "every-head" has one for each head
    (Cohere, StableLM), "all" normalises over heads and d_head together (OLMo 2). `rotary_fraction` is the share of
    d_head that turns. `sinks` adds one learned logit per head (gpt-oss). `d_value` differs from d_head under MLA.
    """

    heads: int
    kv_heads: int
    d_head: int
    d_value: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: QkNorm = "none"
    qk_norm_kind: NormKind = "rms"
    rotary_fraction: float = 1.0
    softcap: bool = False
    sinks: bool = False
    latent: Latent | None = None
    v_norm: bool = False


@dataclass(frozen=True)
class FeedForward:
    """A dense feed-forward layer: two matrices, or three where it is gated."""

    d_ff: int
    gated: bool
    activation: Activation
    bias: bool = False


@dataclass(frozen=True)
class Experts:
    """A mixture-of-experts layer; `d_shared` is the total width of the experts every token passes (0: none).

    `router_bias` counts one learned number per expert that only steers the choice (DeepSeek V3) or biases the
    router's logits (gpt-oss); `shared_gate` is a d_model -> 1 gate on the shared experts (Qwen 2 MoE).
    """

    n_experts: int
    top_k: int
    d_ff: int
    activation: Activation
    gated: bool = True
    bias: bool = False
    d_shared: int = 0
    shared_gate: bool = False
    router_bias: bool = False


@dataclass(frozen=True)
class Layer:
    """What one layer is made of. Equal layers are one distinct block, however many there are."""

    attention: Attention
    feed_forward: FeedForward | Experts
    window: int | None = None
    rotary: bool = True


@dataclass(frozen=True)
class Architecture:
    """A decoder-only transformer, written down.

    `norm_placement`: "pre" (GPT-2, Llama), "post" (after
    the sum: OPT-350m), "branch" (norms on the branches' outputs only: OLMo 2),
    "sandwich" (before and after each branch: Gemma 2), "parallel" (attention and feed-forward read one norm: GPT-J,
    Falcon-7B, Cohere), "parallel-two" (they read one each: GPT-NeoX, Falcon-40B).
    `position_rows` are the rows of a learned position table as stored (OPT stores two more than it uses).
    `d_embedding` differs from d_model where the embedding is projected (OPT-350m).
    """

    name: str
    family: str
    d_model: int
    vocab: int
    layers: tuple[Layer, ...]
    max_positions: int
    norm: NormKind = "rms"
    norm_placement: NormPlacement = "pre"
    positions: Positions = "rotary"
    position_rows: int = 0
    d_embedding: int = 0
    tied: bool = False
    head_bias: bool = False
    embedding_norm: bool = False
    final_norm: bool = True
    logit_softcap: bool = False
    residual_dropout: bool = False
    attention_dropout: bool = False
    embedding_dropout: bool = False
    notes: tuple[str, ...] = field(default=())
