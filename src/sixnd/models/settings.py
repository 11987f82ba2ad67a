"""What may a configuration say, and within what bounds?

A *setting* is one fact about an architecture under our own name (`d_model`, `kv_heads`, `norm_placement`). A family's
file says which keys of a config.json give it; this file says what values it may take. Kinds:

    size      a whole number, one or more, up to `most`
    count     a whole number from `least` (zero: none of it) to `most`; null is zero
    flag      true or false; null is false
    amount    a number, zero or more (a dropout rate, a cap, a share); null is zero
    word      one of `words`, which maps each spelling that configs use to ours
    period    a count, or a pattern such as "LLLG" whose length is meant
    indices   a list of whole numbers
    types     a list of words, or gpt-neo's [[["global", "local"], 12]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sixnd.errors import ConfigError, near_miss

Value = int | float | bool | str | tuple[int, ...] | tuple[str, ...]
Kind = Literal["size", "count", "flag", "amount", "word", "period", "indices", "types"]

MOST_LAYERS = 10_000
MOST_WIDTH = 10**7
MOST_VOCAB = 10**9
MOST_EXPERTS = 10**5
MOST_POSITIONS = 10**9


@dataclass(frozen=True)
class Setting:
    """The kind of one setting and what bounds it."""

    kind: Kind
    most: int = MOST_WIDTH
    words: Mapping[str, str] = field(default_factory=dict)
    least: int = 0


def _words(*names: str, **spelled: str) -> Setting:
    return Setting("word", words={**{name: name for name in names}, **spelled})


ACTIVATIONS = {
    "relu": "relu",
    "relu2": "relu2",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_python_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
LAYER_TYPES = {
    "full_attention": "full",
    "global": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "local": "window",
}

_SIZE, _COUNT, _FLAG, _AMOUNT = Setting("size"), Setting("count"), Setting("flag"), Setting("amount")
_INDICES = Setting("indices", MOST_LAYERS)
_NORM_KINDS = _words("rms", "rms-without-weight", "layer", "layer-without-bias", "layer-without-weight")

_FLAGS = (
    "gated",
    "qkv_bias",
    "out_bias",
    "ff_bias",
    "expert_bias",
    "router_bias",
    "shared_gate",
    "head_bias",
    "tied",
    "embedding_norm",
    "final_norm",
    "sinks",
    "v_norm",
)
SETTINGS: Mapping[str, Setting] = {
    "d_model": _SIZE,
    "n_layers": Setting("size", MOST_LAYERS),
    "heads": Setting("size", MOST_WIDTH),
    "kv_heads": Setting("size", MOST_WIDTH),
    "d_head": _SIZE,
    "d_value": _SIZE,
    "d_ff": _SIZE,
    "vocab": Setting("size", MOST_VOCAB),
    "max_positions": Setting("size", MOST_POSITIONS),
    "position_rows": Setting("count", MOST_POSITIONS),
    "d_embedding": _SIZE,
    "q_rank": _COUNT,
    "kv_rank": _COUNT,
    "d_rope": _COUNT,
    "d_nope": _COUNT,
    "n_experts": Setting("count", MOST_EXPERTS),
    "top_k": Setting("count", MOST_EXPERTS),
    "d_expert": _SIZE,
    "n_shared": Setting("count", MOST_EXPERTS),
    "d_shared": _COUNT,
    "expert_from": Setting("count", MOST_LAYERS),
    "expert_until": Setting("count", MOST_LAYERS, least=-1),
    "expert_period": Setting("size", MOST_LAYERS),
    "expert_phase": Setting("count", MOST_LAYERS),
    "expert_layers": _INDICES,
    "dense_layers": _INDICES,
    "mtp_layers": Setting("count", MOST_LAYERS),
    "window": Setting("count", MOST_POSITIONS),
    "window_period": Setting("period", MOST_LAYERS),
    "window_from": Setting("count", MOST_LAYERS),
    "window_layers": _words("none", "all", "every", "all-but-every", "from", "rotary", "not-rotary"),
    "layer_types": Setting("types", words=LAYER_TYPES),
    "rotary_layers": _words("all", "listed", "windowed", "windowed-or-no-window"),
    "rotary_list": _INDICES,
    "rotary_period": Setting("count", MOST_LAYERS),
    "rotary_dim": _COUNT,
    "rotary_fraction": _AMOUNT,
    "qk_norm": _words("none", "head", "every-head", "all"),
    "qk_norm_kind": _NORM_KINDS,
    "qk_norm_layers": _words("all", "rotary"),
    "norm": _NORM_KINDS,
    "norm_placement": _words("pre", "post", "branch", "sandwich", "parallel", "parallel-two"),
    "positions": _words("rotary", "learned", "alibi", "none"),
    "activation": Setting("word", words=ACTIVATIONS),
    "attention_softcap": _AMOUNT,
    "logit_softcap": _AMOUNT,
    "residual_dropout": _AMOUNT,
    "attention_dropout": _AMOUNT,
    "embedding_dropout": _AMOUNT,
    **dict.fromkeys(_FLAGS, _FLAG),
}


def check(setting: Setting, raw: object, key: str) -> Value:
    """Return `raw`, the value of config key `key`, as the setting means it; raise `ConfigError` where it may not be.

    >>> check(SETTINGS["activation"], "gelu_new", "hidden_act")
    'gelu-tanh'
    >>> check(SETTINGS["d_model"], -4096, "hidden_size")
    Traceback (most recent call last):
    sixnd.errors.ConfigError: 'hidden_size' must be a whole number from 1 to 10000000; got -4096
    """
    match setting.kind:
        case "size":
            return _whole(raw, key, 1, setting.most)
        case "count":
            return 0 if raw is None else _whole(raw, key, setting.least, setting.most)
        case "flag":
            return _flag(raw, key)
        case "amount":
            return _amount(raw, key)
        case "word":
            return _word(raw, key, setting.words)
        case "period":
            return _period(raw, key, setting.most)
        case "indices":
            return tuple(_whole(item, key, 0, setting.most) for item in _list(raw, key))
        case "types":
            return tuple(_word(item, key, setting.words) for item in _spread(_list(raw, key), key))


def shown(raw: object) -> str:
    """Write a value for a message, cut short where it is long."""
    text = str(raw).lower() if isinstance(raw, bool) else "null" if raw is None else repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."


def _whole(raw: object, key: str, least: int, most: int) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not least <= raw <= most:
        raise ConfigError(f"{key!r} must be a whole number from {least} to {most}; got {shown(raw)}")
    return raw


def _flag(raw: object, key: str) -> bool:
    if raw is not None and not isinstance(raw, bool):
        raise ConfigError(f"{key!r} must be true or false; got {shown(raw)}")
    return bool(raw)


def _amount(raw: object, key: str) -> float:
    if raw is None:
        return 0.0
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw <= 1e9:
        raise ConfigError(f"{key!r} must be a number, zero or more; got {shown(raw)}")
    return float(raw)


def _word(raw: object, key: str, words: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or raw not in words:
        close = near_miss(raw, words) if isinstance(raw, str) else ""
        raise ConfigError(f"{key!r} must be one of {', '.join(sorted(words))}; got {shown(raw)}{close}")
    return words[raw]


def _period(raw: object, key: str, most: int) -> int:
    if isinstance(raw, str):
        if not raw or set(raw[:-1]) - {"L"} or raw[-1] != "G":
            raise ConfigError(f"{key!r} must be a whole number or a pattern such as 'LLLG'; got {shown(raw)}")
        return len(raw)
    return 0 if raw is None else _whole(raw, key, 0, most)


def _list(raw: object, key: str) -> Sequence[object]:
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple):
        raise ConfigError(f"{key!r} must be a list; got {shown(raw)}")
    if len(raw) > MOST_LAYERS:
        raise ConfigError(f"{key!r} must be a list of at most {MOST_LAYERS} items; it has {len(raw)}")
    return raw


def _spread(items: Sequence[object], key: str) -> list[object]:
    """Write out gpt-neo's repeats: [[["global", "local"], 2]] is global, local, global, local."""
    out: list[object] = []
    for item in items:
        if isinstance(item, list | tuple):
            if len(item) != 2:
                raise ConfigError(f"{key!r} must hold [types, repeats] pairs; got {shown(item)}")
            out.extend(list(_list(item[0], key)) * _whole(item[1], key, 0, MOST_LAYERS))
        else:
            out.append(item)
    if len(out) > MOST_LAYERS:
        raise ConfigError(f"{key!r} names {len(out)} layers; at most {MOST_LAYERS} are read")
    return out
