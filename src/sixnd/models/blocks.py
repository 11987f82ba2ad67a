"""How is a transformer written in the notation?

Three programs: the embedding, one for each distinct layer, and the head with the loss. Each is lines over named dims;
no FLOP, byte or parameter formula stands here or anywhere else for a model.

The names: batch; seq (tokens of the line), query and key (the same tokens as attention pairs them); d_model; kv and
group (key-value heads, and query heads for each); d_head, d_value; d_ff; vocab; expert and slot (experts, and tokens
for each). In decode a step is one new token: seq = query = 1 and key is the context, read from the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sixnd.formats import get_format
from sixnd.models.architecture import Architecture, Attention, Experts, FeedForward, Layer, NormKind
from sixnd.notation import kinds
from sixnd.notation.program import Mask, Numerics, Program, Share, Size, Sizes, Tensor
from sixnd.plan import AttentionKernel, WorkPhase

_SCORES = "batch kv group query key"
_ACTIVATIONS = {
    "relu": kinds.RELU,
    "relu2": kinds.RELU2,
    "gelu": kinds.GELU,
    "gelu-tanh": kinds.GELU,
    "silu": kinds.SILU,
}
_GATED = {
    "relu": kinds.GATED_RELU,
    "gelu": kinds.GATED_GELU,
    "gelu-tanh": kinds.GATED_GELU,
    "silu": kinds.GATED_SILU,
}


@dataclass(frozen=True)
class Workload:
    """What the lines are written for: numerics, phase, the attention kernel, and the format of the cache."""

    numerics: Numerics
    phase: WorkPhase = "train"
    attention: AttentionKernel = "flash"

    @property
    def trains(self) -> bool:
        """Whether there is a backward."""
        return self.phase == "train"


def base_sizes(model: Architecture, batch: int, seq: int, phase: WorkPhase) -> dict[str, Size]:
    """The sizes that every block shares. In decode one token for each sequence attends to `seq` of context."""
    tokens = 1 if phase == "decode" else seq
    return {
        "batch": batch,
        "seq": tokens,
        "query": tokens,
        "key": seq,
        "d_model": model.d_model,
        "d_embedding": model.d_embedding or model.d_model,
        "vocab": model.vocab,
        "positions": model.position_rows or model.max_positions,
        "one": 1,
    }


def layer_sizes(layer: Layer, base: dict[str, Size], phase: WorkPhase) -> Sizes:
    """The sizes of one layer's own names. A windowed layer's ideal cache holds no more than its window."""
    attention, ff = layer.attention, layer.feed_forward
    sizes = dict(base)
    sizes.update(
        heads=attention.heads,
        kv=attention.kv_heads,
        group=attention.heads // attention.kv_heads,
        d_head=attention.d_head,
        d_value=attention.d_value,
        d_rotary=int(attention.d_head * attention.rotary_fraction),
    )
    if phase == "decode" and layer.window is not None:
        sizes["key"] = min(int(base["key"]), layer.window)
    if latent := attention.latent:
        sizes.update(
            q_rank=latent.q_rank or 0,
            kv_rank=latent.kv_rank,
            d_rope=latent.d_rope,
            d_nope=latent.d_nope,
            d_latent=latent.kv_rank + latent.d_rope,
        )
    if isinstance(ff, FeedForward):
        sizes["d_ff"] = ff.d_ff
    else:
        tokens = int(base["batch"]) * int(base["seq"])
        sizes.update(
            d_expert=ff.d_ff,
            d_shared=ff.d_shared,
            expert=ff.n_experts,
            top_k=ff.top_k,
            slot=Fraction(tokens * ff.top_k, ff.n_experts),
        )
    return sizes


def embedding_program(model: Architecture, work: Workload) -> Program:
    """Token ids become rows of the embedding table, with the learned positions, norm and dropout that the model has."""
    p = Program("embedding", work.numerics, work.trains)
    ids = p.input("tokens", "batch seq", needs_grad=False, format=get_format("int64"), role="input")
    table = p.parameter("weight", "vocab d_embedding")
    x = p.apply(kinds.GATHER, "rows", "batch seq, vocab d_embedding -> batch seq d_embedding", ids, table)
    if model.d_embedding not in (0, model.d_model):
        x = p.linear("project_in", "batch seq d_embedding, d_embedding d_model -> batch seq d_model", x)
    if model.positions == "learned":
        where = p.parameter("positions", "positions d_model")
        at = p.input("places", "seq", needs_grad=False, format=get_format("int64"), role="input")
        rows = p.apply(kinds.GATHER, "position_rows", "seq, positions d_model -> seq d_model", at, where)
        x = p.apply(kinds.BIAS, "add_positions", "batch seq d_model, seq d_model -> batch seq d_model", x, rows)
    if model.embedding_norm:
        x = _norm(p, model, "norm", x)
    if model.embedding_dropout and work.trains:
        x = _dropout(p, "dropout", x)
    p.exit = x
    return p


def layer_program(model: Architecture, layer: Layer, path: str, work: Workload) -> Program:
    """One transformer layer: attention and feed-forward around the residual stream, norms where the model puts them."""
    p = Program(path, work.numerics, work.trains)
    x = p.entry = p.input("x", "batch seq d_model", needs_grad=work.trains)
    placement = model.norm_placement
    if placement in ("parallel", "parallel-two"):
        h = _norm(p, model, "norm", x)
        g = h if placement == "parallel" else _norm(p, model, "mlp_norm", x)
        a = _drop(p, model, work, "attention.dropout", _attention(p, model, layer, h, work))
        f = _drop(p, model, work, "mlp.dropout", _feed_forward(p, layer, g))
        p.exit = _add(p, "residual", _add(p, "branches", a, f), x)
        return p
    for name in ("attention", "mlp"):
        before = placement in ("pre", "sandwich")
        h = _norm(p, model, f"{name}_norm", x) if before else x
        y = _attention(p, model, layer, h, work) if name == "attention" else _feed_forward(p, layer, h)
        if placement in ("branch", "sandwich"):
            y = _norm(p, model, f"{name}_post_norm", y)
        x = _add(p, f"{name}.residual", _drop(p, model, work, f"{name}.dropout", y), x)
        if placement == "post":
            x = _norm(p, model, f"{name}_norm", x)
    p.exit = x
    return p


def head_program(model: Architecture, work: Workload, tied: Tensor | None) -> Program:
    """The final norm, the vocabulary projection and, in training, the loss in float32. A tied head reads `tied`."""
    p = Program("head", work.numerics, work.trains)
    x = p.entry = p.input("x", "batch seq d_model", needs_grad=work.trains)
    if model.final_norm:
        x = _norm(p, model, "norm", x)
    if model.d_embedding not in (0, model.d_model):
        x = p.linear("project_out", "batch seq d_model, d_model d_embedding -> batch seq d_embedding", x)
    if work.phase == "prefill":
        x = p.apply(kinds.SLICE, "last", "batch seq d_embedding -> batch one d_embedding", x)
    seq = "one" if work.phase == "prefill" else "seq"
    line = f"batch {seq} d_embedding, vocab d_embedding -> batch {seq} vocab"
    logits = p.linear("logits", line, x, bias=model.head_bias, tied=tied)
    if model.logit_softcap:
        logits = p.apply(kinds.SOFTCAP, "softcap", _same(f"batch {seq} vocab"), logits)
    if not work.trains:
        p.exit = logits
        return p
    wide = get_format("float32")
    if logits.format != wide:
        logits = p.apply(kinds.CAST, "logits.float32", _same("batch seq vocab"), logits, format=wide)
    targets = p.input("targets", "batch seq", needs_grad=False, format=get_format("int64"), role="input")
    p.apply(kinds.LOSS, "loss", "batch seq vocab, batch seq -> ", logits, targets, format=wide)
    return p


def _attention(p: Program, model: Architecture, layer: Layer, x: Tensor, work: Workload) -> Tensor:
    a = layer.attention
    if a.latent is not None:
        q, k, v = _latent_qkv(p, model, a, x, work)
    else:
        q, k, v = _cached(p, *_qkv(p, model, layer, x), work)
    absorbed = a.latent is not None and work.phase == "decode"
    p.region = "attention core"
    if absorbed:
        line = "batch query kv group d_latent, batch key d_latent, batch key kv_rank -> batch query kv group kv_rank"
        out = p.apply(
            kinds.LATENT_ATTENTION, "attention.core", line, q, k, v, mask=Mask(window=layer.window), work=_SCORES
        )
    else:
        out = _core(p, model, layer, q, k, v, work)
    p.region = ""
    if a.sinks:
        sinks = p.parameter("attention.sinks", "kv group")
        line = "batch seq kv group d_value, kv group -> batch seq kv group d_value"
        out = p.apply(kinds.BIAS, "attention.sinks", line, out, sinks)
    if absorbed:
        line = "batch seq kv group kv_rank, kv_rank kv d_value -> batch seq kv group d_value"
        out = p.linear("attention.v_up", line, out)
    line = "batch seq kv group d_value, kv group d_value d_model -> batch seq d_model"
    return p.linear("attention.out", line, out, bias=a.out_bias)


def _core(p: Program, model: Architecture, layer: Layer, q: Tensor, k: Tensor, v: Tensor, work: Workload) -> Tensor:
    """Scores, softmax and values: one fused kernel, or line by line with every score stored."""
    mask = Mask(window=layer.window)
    to_scores = "batch query kv group d_head, batch key kv d_head -> batch kv group query key"
    if work.attention == "flash":
        line = "batch query kv group d_head, batch key kv d_head, batch key kv d_value -> batch query kv group d_value"
        return p.apply(kinds.ATTENTION, "attention.core", line, q, k, v, mask=mask, work=_SCORES)
    scores = p.apply(kinds.CONTRACT, "attention.scores", to_scores, q, k, mask=mask)
    if layer.attention.softcap:
        scores = p.apply(kinds.SOFTCAP, "attention.softcap", _same(_SCORES), scores)
    weights = _softmax(p, scores)
    if model.attention_dropout and work.trains:
        weights = _dropout(p, "attention.weights_dropout", weights, _SCORES)
    to_values = "batch kv group query key, batch key kv d_value -> batch query kv group d_value"
    return p.apply(kinds.CONTRACT, "attention.values", to_values, weights, v, mask=mask)


def _softmax(p: Program, scores: Tensor) -> Tensor:
    """Over the keys; uncompiled PyTorch models widen the scores to float32 for it and narrow the weights again."""
    wide = get_format("float32")
    if p.numerics.fused or scores.format == wide:
        return p.apply(kinds.SOFTMAX, "attention.softmax", _same(_SCORES), scores)
    scores = p.apply(kinds.CAST, "attention.scores.float32", _same(_SCORES), scores, format=wide)
    weights = p.apply(kinds.SOFTMAX, "attention.softmax", _same(_SCORES), scores, format=wide)
    return p.apply(kinds.CAST, "attention.softmax.narrowed", _same(_SCORES), weights)


def _qkv(p: Program, model: Architecture, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a = layer.attention
    q = p.linear(
        "attention.q", "batch seq d_model, d_model kv group d_head -> batch seq kv group d_head", x, bias=a.qkv_bias
    )
    k = p.linear("attention.k", "batch seq d_model, d_model kv d_head -> batch seq kv d_head", x, bias=a.qkv_bias)
    v = p.linear("attention.v", "batch seq d_model, d_model kv d_value -> batch seq kv d_value", x, bias=a.qkv_bias)
    if a.qk_norm != "none":
        dims = {
            "head": ("d_head", "d_head"),
            "every-head": ("kv group d_head", "kv d_head"),
            "all": ("kv group d_head", "kv d_head"),
        }
        for_q, for_k = dims[a.qk_norm]
        q = _norm(p, model, "attention.q_norm", q, for_q, a.qk_norm_kind)
        k = _norm(p, model, "attention.k_norm", k, for_k, a.qk_norm_kind)
    if a.v_norm:
        v = _norm(p, model, "attention.v_norm", v, "", "rms")
    if model.positions == "rotary" and layer.rotary:
        q = p.apply(
            kinds.ROTARY,
            "attention.q_rotary",
            _same("batch seq kv group d_head"),
            q,
            work="batch seq kv group d_rotary",
        )
        k = p.apply(kinds.ROTARY, "attention.k_rotary", _same("batch seq kv d_head"), k, work="batch seq kv d_rotary")
    return q, k, v


def _latent_qkv(
    p: Program, model: Architecture, a: Attention, x: Tensor, work: Workload
) -> tuple[Tensor, Tensor, Tensor]:
    """MLA. In decode the up-projections of k and v move onto the query and the output (DeepSeek-V2 2024, 2.1.2)."""
    assert a.latent is not None
    if a.latent.q_rank:
        c = p.linear("attention.q_down", "batch seq d_model, d_model q_rank -> batch seq q_rank", x, bias=a.qkv_bias)
        c = _norm(p, model, "attention.q_norm", c, "q_rank")
        q = p.linear("attention.q_up", "batch seq q_rank, q_rank kv group d_head -> batch seq kv group d_head", c)
    else:
        q = p.linear("attention.q", "batch seq d_model, d_model kv group d_head -> batch seq kv group d_head", x)
    q = p.apply(
        kinds.ROTARY, "attention.q_rotary", _same("batch seq kv group d_head"), q, work="batch seq kv group d_rope"
    )
    down = "batch seq d_model, d_model kv_rank -> batch seq kv_rank"
    latent = p.linear("attention.kv_down", down, x, bias=a.qkv_bias)
    turned = p.linear("attention.k_rope", "batch seq d_model, d_model d_rope -> batch seq d_rope", x, bias=a.qkv_bias)
    latent = _norm(p, model, "attention.kv_norm", latent, "kv_rank")
    turned = p.apply(kinds.ROTARY, "attention.k_rotary", _same("batch seq d_rope"), turned)
    if not work.trains:
        line = "batch seq kv_rank, batch seq d_rope -> batch seq d_latent"
        row = p.apply(kinds.CONCAT, "attention.row", line, latent, turned)
        p.apply(kinds.CACHE, "attention.cache", _same("batch seq d_latent"), row, role="kv_cache")
        cache = p.cache("cache", "batch key d_latent")
        if work.phase == "decode":
            return _absorbed(p, q), cache, cache
    k = p.linear("attention.k_up", "batch seq kv_rank, kv_rank kv d_nope -> batch seq kv d_nope", latent)
    v = p.linear("attention.v_up", "batch seq kv_rank, kv_rank kv d_value -> batch seq kv d_value", latent)
    joined = "batch seq kv d_nope, batch seq d_rope -> batch seq kv d_head"
    return q, p.apply(kinds.CONCAT, "attention.k", joined, k, turned), v


def _absorbed(p: Program, q: Tensor) -> Tensor:
    """Queries brought into the latent space: every head then attends to the one cached row of d_latent."""
    nope = p.apply(kinds.SLICE, "attention.q_nope", "batch seq kv group d_head -> batch seq kv group d_nope", q)
    rope = p.apply(kinds.SLICE, "attention.q_rope", "batch seq kv group d_head -> batch seq kv group d_rope", q)
    line = "batch seq kv group d_nope, kv_rank kv d_nope -> batch seq kv group kv_rank"
    nope = p.linear("attention.k_up", line, nope)
    joined = "batch seq kv group kv_rank, batch seq kv group d_rope -> batch seq kv group d_latent"
    return p.apply(kinds.CONCAT, "attention.q_latent", joined, nope, rope)


def _cached(p: Program, q: Tensor, k: Tensor, v: Tensor, work: Workload) -> tuple[Tensor, Tensor, Tensor]:
    """In inference new keys and values go to the cache; decode then reads the whole of it."""
    if work.trains:
        return q, k, v
    for name, tensor in (("k", k), ("v", v)):
        p.apply(kinds.CACHE, f"attention.{name}_cache", _same(" ".join(tensor.dims)), tensor, role="kv_cache")
    k_cache, v_cache = p.cache("k_cache", "batch key kv d_head"), p.cache("v_cache", "batch key kv d_value")
    return (q, k_cache, v_cache) if work.phase == "decode" else (q, k, v)


def _feed_forward(p: Program, layer: Layer, x: Tensor) -> Tensor:
    ff = layer.feed_forward
    if isinstance(ff, Experts):
        return _experts(p, ff, x)
    return _dense(p, "mlp", "batch seq", "d_model", "d_ff", ff, x)


def _dense(
    p: Program,
    path: str,
    rows: str,
    d_in: str,
    d_ff: str,
    ff: FeedForward | Experts,
    x: Tensor,
    expert: str = "",
    share: Share | None = None,
) -> Tensor:
    """Up, activate, down; gated where there are two ways up. `rows` are the tokens, or experts' slots."""
    own = f"{expert} " if expert else ""
    up_line = f"{rows} {d_in}, {own}{d_in} {d_ff} -> {rows} {d_ff}"
    up = p.linear(f"{path}.up", up_line, x, bias=ff.bias, share=share)
    if ff.gated:
        gate = p.linear(f"{path}.gate", up_line, x, bias=ff.bias, share=share)
        both = f"{rows} {d_ff}, {rows} {d_ff} -> {rows} {d_ff}"
        h = _gated(p, f"{path}.activation", both, ff, gate, up)
    else:
        h = p.apply(_ACTIVATIONS[ff.activation], f"{path}.activation", _same(f"{rows} {d_ff}"), up)
    line = f"{rows} {d_ff}, {own}{d_ff} {d_in} -> {rows} {d_in}"
    return p.linear(f"{path}.down", line, h, bias=ff.bias, share=share)


def _gated(p: Program, path: str, line: str, ff: FeedForward | Experts, gate: Tensor, up: Tensor) -> Tensor:
    """act(gate) * up: one kernel that keeps both, or two, the second keeping act(gate) as well."""
    if p.numerics.fused:
        return p.apply(_GATED[ff.activation], path, line, gate, up)
    activated = p.apply(_ACTIVATIONS[ff.activation], f"{path}.gate", _same(" ".join(gate.dims)), gate)
    return p.apply(kinds.MULTIPLY, path, line, activated, up)


def _experts(p: Program, ff: Experts, x: Tensor) -> Tensor:
    """Every token to its top_k experts, balanced: expert x slot = tokens x top_k."""
    bias = ff.router_bias
    scores = p.linear("router", "batch seq d_model, d_model expert -> batch seq expert", x, bias=bias)
    chosen = p.apply(kinds.ROUTE, "router.top", "batch seq expert -> batch seq top_k", scores)
    slots = p.apply(
        kinds.DISPATCH, "experts.dispatch", "batch seq d_model, batch seq top_k -> expert slot d_model", x, chosen
    )
    h = _dense(p, "experts", "expert slot", "d_model", "d_expert", ff, slots, "expert", _experts_read)
    y = p.apply(
        kinds.COMBINE, "experts.combine", "expert slot d_model, batch seq top_k -> batch seq d_model", h, chosen
    )
    if ff.d_shared:
        shared = _dense(
            p, "shared_expert", "batch seq", "d_model", "d_shared", FeedForward(ff.d_shared, ff.gated, ff.activation), x
        )
        if ff.shared_gate:
            gate = p.linear("shared_expert.weight", "batch seq d_model, d_model one -> batch seq one", x)
            gate = p.apply(kinds.SIGMOID, "shared_expert.sigmoid", _same("batch seq one"), gate)
            line = "batch seq d_model, batch seq one -> batch seq d_model"
            shared = p.apply(kinds.MULTIPLY, "shared_expert.gated", line, shared, gate)
        y = _add(p, "experts.sum", y, shared)
    return y


def _experts_read(sizes: Sizes) -> Fraction:
    """The share of the experts that a batch is expected to touch: 1 - (1 - top_k / experts)^tokens."""
    idle = Fraction(sizes["expert"] - sizes["top_k"], sizes["expert"])
    tokens = int(sizes["batch"] * sizes["seq"])
    return Fraction(1) - Fraction(float(idle) ** tokens)


def _norm(
    p: Program, model: Architecture, path: str, x: Tensor, dims: str = "d_model", norm: NormKind | None = None
) -> Tensor:
    """Normalise over the last name; `dims` are those of the weight."""
    norm = norm or model.norm
    rows = " ".join(x.dims)
    plain = norm.endswith("-without-weight") or not dims
    kind = (
        (kinds.RMS_NORM_PLAIN if plain else kinds.RMS_NORM)
        if norm.startswith("rms")
        else (kinds.LAYER_NORM_PLAIN if plain else kinds.LAYER_NORM)
    )
    if plain:
        return p.apply(kind, path, f"{rows} -> {rows}", x)
    if norm == "rms" and not p.numerics.fused:
        return _eager_rms_norm(p, path, x, dims)
    weights = [p.parameter(f"{path}.weight", dims)]
    if norm == "layer":
        weights.append(p.parameter(f"{path}.bias", dims))
    line = ", ".join([rows] + [dims] * len(weights)) + f" -> {rows}"
    return p.apply(kind, path, line, x, *weights)


def _eager_rms_norm(p: Program, path: str, x: Tensor, dims: str) -> Tensor:
    """As models write it in PyTorch: widen to float32, normalise, narrow, times the weight. Keeps x twice more."""
    rows = " ".join(x.dims)
    weight, wide = p.parameter(f"{path}.weight", dims), get_format("float32")
    if x.format != wide:
        x = p.apply(kinds.CAST, f"{path}.float32", f"{rows} -> {rows}", x, format=wide)
    y = p.apply(kinds.RMS_NORM_PLAIN, f"{path}.normalise", f"{rows} -> {rows}", x)
    return p.apply(kinds.MULTIPLY, path, f"{rows}, {dims} -> {rows}", y, weight)


def _add(p: Program, path: str, a: Tensor, b: Tensor) -> Tensor:
    rows = "batch seq d_model"
    return p.apply(kinds.ADD, path, f"{rows}, {rows} -> {rows}", a, b)


def _drop(p: Program, model: Architecture, work: Workload, path: str, x: Tensor) -> Tensor:
    return _dropout(p, path, x) if model.residual_dropout and work.trains else x


def _dropout(p: Program, path: str, x: Tensor, rows: str = "batch seq d_model") -> Tensor:
    return p.apply(kinds.DROPOUT, path, _same(rows), x)


def _same(dims: str) -> str:
    return f"{dims} -> {dims}"
