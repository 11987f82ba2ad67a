"""Which layers attend through a window, turn their queries and keys, or hold experts?

Configs say it in many ways: a list of a type for each layer, a period, a first layer, a list of exceptions. Here each
way becomes one yes or no per layer; then layer is put together from the settings. Layers are counted from zero.
"""

from __future__ import annotations

from functools import cache
from typing import cast

from sixnd.errors import ConfigError
from sixnd.models.architecture import Activation, Attention, Experts, FeedForward, Latent, Layer, NormKind, QkNorm
from sixnd.models.resolve import Settings


def build_layers(settings: Settings) -> tuple[Layer, ...]:
    """Write out every layer, first to last; equal layers are one and the same record."""
    n_layers = settings.number("n_layers")
    rotary_first = [_in_rotary_list(settings, index) for index in range(n_layers)]
    windows = _windows(settings, rotary_first)

    @cache
    def layer(windowed: bool, rotary: bool, sparse: bool) -> Layer:
        return Layer(
            attention=_attention(settings, rotary),
            feed_forward=_experts(settings) if sparse else _feed_forward(settings),
            window=settings.number("window") if windowed else None,
            rotary=rotary,
        )

    return tuple(
        layer(windows[index], _rotary(settings, rotary_first[index], windows[index]), _sparse(settings, index))
        for index in range(n_layers)
    )


def _windows(settings: Settings, rotary: list[bool]) -> list[bool]:
    """Tell for each layer whether it attends through the window."""
    n_layers = settings.number("n_layers")
    if not settings.number("window"):
        return [False] * n_layers
    types = settings.list("layer_types")
    if types:
        if len(types) != n_layers:
            raise ConfigError(
                f"{settings.key('layer_types')!r} names {len(types)} layers and {settings.key('n_layers')!r} is"
                f" {n_layers}"
            )
        return [kind == "window" for kind in types]
    period = settings.number("window_period")
    match settings.word("window_layers"):
        case "all":
            return [True] * n_layers
        case "every":
            return [period > 0 and (index + 1) % period == 0 for index in range(n_layers)]
        case "all-but-every":
            return [period > 0 and (index + 1) % period != 0 for index in range(n_layers)]
        case "from":
            return [index >= settings.number("window_from") for index in range(n_layers)]
        case "rotary":
            return rotary
        case "not-rotary":
            return [not turns for turns in rotary]
    return [False] * n_layers


def _in_rotary_list(settings: Settings, index: int) -> bool:
    """Tell whether a list of layers (1 turns, 0 does not), or a period of layers that do not, lets this turn."""
    if settings.word("positions") != "rotary":
        return False
    listed = settings.list("rotary_list")
    if listed and len(listed) != settings.number("n_layers"):
        raise ConfigError(
            f"{settings.key('rotary_list')!r} names {len(listed)} layers and {settings.key('n_layers')!r} is"
            f" {settings.number('n_layers')}"
        )
    period = settings.number("rotary_period")
    return bool(listed[index]) if listed else period == 0 or (index + 1) % period != 0


def _rotary(settings: Settings, listed: bool, windowed: bool) -> bool:
    match settings.word("rotary_layers"):
        case "windowed":
            return windowed
        case "windowed-or-no-window":
            return windowed or settings.number("window") == 0
    return listed


def _sparse(settings: Settings, index: int) -> bool:
    """Tell whether this layer holds experts."""
    if not settings.number("n_experts") or index in settings.list("dense_layers"):
        return False
    if settings.list("expert_layers"):
        return index in settings.list("expert_layers")
    last = settings.number("expert_until")
    if index < settings.number("expert_from") or 0 <= last < index:
        return False
    return (index + settings.number("expert_phase")) % settings.number("expert_period") == 0


def _attention(settings: Settings, rotary: bool) -> Attention:
    normed = settings.word("qk_norm_layers") == "all" or rotary
    return Attention(
        heads=settings.number("heads"),
        kv_heads=settings.number("kv_heads"),
        d_head=settings.number("d_head"),
        d_value=settings.number("d_value"),
        qkv_bias=settings.flag("qkv_bias"),
        out_bias=settings.flag("out_bias"),
        qk_norm=cast(QkNorm, settings.word("qk_norm")) if normed else "none",
        qk_norm_kind=cast(NormKind, settings.word("qk_norm_kind")),
        rotary_fraction=min(1.0, settings.amount("rotary_fraction")),
        softcap=settings.flag("attention_softcap"),
        sinks=settings.flag("sinks"),
        latent=_latent(settings),
        v_norm=settings.flag("v_norm"),
    )


def _latent(settings: Settings) -> Latent | None:
    if not settings.number("kv_rank"):
        return None
    return Latent(
        q_rank=settings.number("q_rank") or None,
        kv_rank=settings.number("kv_rank"),
        d_rope=settings.number("d_rope"),
        d_nope=settings.number("d_nope"),
    )


def _feed_forward(settings: Settings) -> FeedForward:
    return FeedForward(
        d_ff=settings.number("d_ff"),
        gated=settings.flag("gated"),
        activation=cast(Activation, settings.word("activation")),
        bias=settings.flag("ff_bias"),
    )


def _experts(settings: Settings) -> Experts:
    return Experts(
        n_experts=settings.number("n_experts"),
        top_k=settings.number("top_k"),
        d_ff=settings.number("d_expert"),
        activation=cast(Activation, settings.word("activation")),
        gated=settings.flag("gated"),
        bias=settings.flag("expert_bias"),
        d_shared=settings.number("d_shared"),
        shared_gate=settings.flag("shared_gate"),
        router_bias=settings.flag("router_bias"),
    )
