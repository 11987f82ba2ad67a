"""A witness for parameter counts: closed forms, written down once more and apart from the notation.

Letters: D model, V vocabulary, N query heads, K key-value heads, H head dim, U value dim, F feed-forward, E experts.
"""

from __future__ import annotations

from sixnd.models.architecture import Architecture, Attention, Experts, FeedForward, Layer

NORM_VECTORS = {"rms": 1, "layer": 2, "layer-without-bias": 1, "layer-without-weight": 0, "rms-without-weight": 0}
NORMS_PER_LAYER = {"pre": 2, "post": 2, "branch": 2, "sandwich": 4, "parallel": 1, "parallel-two": 2}


def parameter_count(architecture: Architecture) -> int:
    """Count every trained number once: embeddings, layers, final norm, head."""
    a = architecture
    D, V, W = a.d_model, a.vocab, a.d_embedding or a.d_model
    vectors = NORM_VECTORS[a.norm]
    embedding = V * W + (2 * W * D if W != D else 0) + a.position_rows * D
    embedding += (vectors * D if a.embedding_norm else 0) + (vectors * D if a.final_norm else 0)
    head = (0 if a.tied else V * W) + (V if a.head_bias else 0)
    return embedding + head + sum(layer_count(a, layer) for layer in a.layers)


def layer_count(architecture: Architecture, layer: Layer) -> int:
    """Count one layer: attention, feed-forward or experts, norms."""
    D = architecture.d_model
    norms = NORMS_PER_LAYER[architecture.norm_placement] * NORM_VECTORS[architecture.norm] * D
    ff = layer.feed_forward
    inner = experts_count(ff, D) if isinstance(ff, Experts) else feed_forward_count(ff, D)
    attention = layer.attention
    return norms + inner + (latent_count(attention, D) if attention.latent else attention_count(attention, D))


def attention_count(attention: Attention, D: int) -> int:
    """Count q, k, v and output, with biases, norms of q and k, sinks."""
    N, K, H, U = attention.heads, attention.kv_heads, attention.d_head, attention.d_value
    weights = D * (N * H + K * H + K * U) + N * U * D
    biases = (N * H + K * H + K * U if attention.qkv_bias else 0) + (D if attention.out_bias else 0)
    per_norm = {"none": 0, "head": 2 * H, "every-head": (N + K) * H, "all": (N + K) * H}[attention.qk_norm]
    return weights + biases + per_norm * NORM_VECTORS[attention.qk_norm_kind] + (N if attention.sinks else 0)


def latent_count(attention: Attention, D: int) -> int:
    """Count multi-head latent attention; `qkv_bias` puts biases on the two projections down."""
    latent = attention.latent
    assert latent is not None
    N, H, U = attention.heads, attention.d_head, attention.d_value
    rank = latent.q_rank
    queries = D * N * H if rank is None else D * rank + rank + rank * N * H
    keys_values = D * (latent.kv_rank + latent.d_rope) + latent.kv_rank + latent.kv_rank * N * (latent.d_nope + U)
    biases = (rank or 0) + latent.kv_rank + latent.d_rope if attention.qkv_bias else 0
    return queries + keys_values + biases + N * U * D + (D if attention.out_bias else 0)


def feed_forward_count(ff: FeedForward, D: int) -> int:
    """Count two matrices, or three where gated, and their biases."""
    into = 2 if ff.gated else 1
    return (into + 1) * D * ff.d_ff + (into * ff.d_ff + D if ff.bias else 0)


def experts_count(ff: Experts, D: int) -> int:
    """Count the experts, the router, and the experts that every token passes."""
    into = 2 if ff.gated else 1
    one = (into + 1) * D * ff.d_ff + (into * ff.d_ff + D if ff.bias else 0)
    router = ff.n_experts * (D + (1 if ff.router_bias else 0))
    return ff.n_experts * one + router + (into + 1) * D * ff.d_shared + (D if ff.shared_gate else 0)


def forward_flops(architecture: Architecture, T: int) -> int:
    """Count the matmul FLOPs of one sequence of T tokens, every query against every key, logits for all."""
    D, W = architecture.d_model, architecture.d_embedding or architecture.d_model
    head = 2 * T * W * architecture.vocab + (4 * T * W * D if W != D else 0)
    return head + sum(
        2 * T * layer_weights_met(layer, D) + scores_flops(layer.attention, T) for layer in architecture.layers
    )


def layer_weights_met(layer: Layer, D: int) -> int:
    """Count the weights of one layer that a token is multiplied with."""
    a, ff = layer.attention, layer.feed_forward
    N, K, H, U = a.heads, a.kv_heads, a.d_head, a.d_value
    met = D * (N * H + K * H + K * U) + N * U * D
    if latent := a.latent:
        met = D * N * H if latent.q_rank is None else latent.q_rank * (D + N * H)
        met += D * (latent.kv_rank + latent.d_rope) + latent.kv_rank * N * (latent.d_nope + U) + N * U * D
    matrices = 3 if ff.gated else 2
    if isinstance(ff, FeedForward):
        return met + matrices * D * ff.d_ff
    return met + matrices * D * (ff.top_k * ff.d_ff + ff.d_shared) + ff.n_experts * D + (D if ff.shared_gate else 0)


def scores_flops(attention: Attention, T: int) -> int:
    """Count queries against keys, and weights against values."""
    return 2 * T * T * attention.heads * (attention.d_head + attention.d_value)
