"""What architecture does a config.json describe?

    config.json -> Family (families/*.toml) -> Settings (resolve.py) -> layers (layers.py) -> Architecture

A key that changes shapes and is not understood is an error, and so is a value out of bounds; any other key that the
family does not know is a note. Only a decoder is read: of a model with a vision or audio part, its "text_config".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from sixnd.errors import ConfigError
from sixnd.models.architecture import Architecture, NormKind, NormPlacement, Positions
from sixnd.models.bundled import bundled_path
from sixnd.models.families import Family, known_families, load_family
from sixnd.models.json_file import read_json
from sixnd.models.layers import build_layers
from sixnd.models.resolve import Settings, resolve, strangers
from sixnd.models.settings import shown

TEXT_PARTS = ("text_config", "llm_config", "language_config")
PLAIN_SIZES = ("d_model", "n_layers", "heads", "d_ff", "vocab")


def load_architecture(path_or_name: str) -> Architecture:
    """Read the architecture of a bundled model's name, a config.json, or a folder that holds one.

    Raises `ConfigError` where there is no such thing, or where it cannot be understood.

    >>> load_architecture("openai-community/gpt2").d_model
    768
    """
    path = bundled_path(path_or_name)
    if path is None:
        path = Path(path_or_name)
        path = path / "config.json" if path.is_dir() else path
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return read_config(read_json(path), name)


def read_config(config: Mapping[str, object], name: str) -> Architecture:
    """Turn a parsed config.json into an architecture called `name`.

    Raises `ConfigError`, its text beginning with `name`, where the config is not understood.

    >>> tiny = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    >>> read_config(tiny, "tiny").layers[0].attention.d_head
    16
    """
    try:
        family, config, notes = _family_of(config)
        settings = resolve(family, config)
        _check_sizes(settings)
        notes += _notes(config, settings)
        return _build(name, settings, tuple(notes))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _family_of(config: Mapping[str, object]) -> tuple[Family, Mapping[str, object], list[str]]:
    """Find the part of `config` that describes the decoder, and its family."""
    model_type = config.get("model_type")
    part = next((key for key in TEXT_PARTS if isinstance(config.get(key), Mapping)), None)
    if part is None and model_type is None:
        raise ConfigError("there is no 'model_type'; known ones are " + ", ".join(known_families()))
    if not isinstance(model_type, str | None):
        raise ConfigError(f"'model_type' must be text; got {shown(model_type)}")
    if part is None:
        assert model_type is not None
        return load_family(model_type), config, []
    text = cast(Mapping[str, object], config[part])
    inner = text.get("model_type")
    if inner is None and model_type is not None:
        inner = load_family(model_type).text or model_type
    if not isinstance(inner, str):
        raise ConfigError(f"'{part}.model_type' must be text; got {shown(inner)}")
    family = load_family(inner)
    if "tie_word_embeddings" in config:
        text = {**text, "tie_word_embeddings": config["tie_word_embeddings"] or text.get("tie_word_embeddings", False)}
    others = [key for key in config if key.endswith("_config") and key != part and isinstance(config[key], Mapping)]
    note = f"only the '{part}' is counted" + (f"; {', '.join(map(repr, others))} is not" if others else "")
    return family, {**{k: config[k] for k in ("quantization_config",) if k in config}, **text}, [note]


def _check_sizes(settings: Settings) -> None:
    """Hold the sizes that must fit one another to it."""
    heads, kv_heads = settings.number("heads"), settings.number("kv_heads")
    if heads % kv_heads:
        whose = "" if "kv_heads" in settings.sources else f" (the default of family {settings.family.name!r})"
        raise ConfigError(
            f"{settings.key('kv_heads')!r} = {kv_heads}{whose} does not divide {settings.key('heads')!r} = {heads}"
        )
    top_k, n_experts = settings.number("top_k"), settings.number("n_experts")
    if n_experts and not 1 <= top_k <= n_experts:
        raise ConfigError(
            f"{settings.key('top_k')!r} must be from 1 to {settings.key('n_experts')!r} = {n_experts}; got {top_k}"
        )


def _notes(config: Mapping[str, object], settings: Settings) -> list[str]:
    family = settings.family
    notes = []
    unknown = strangers(family, config)
    parts = [key for key in unknown if key.endswith("_config") and isinstance(config[key], Mapping)]
    unknown = [key for key in unknown if key not in parts]
    if parts:
        notes.append(f"what {', '.join(map(repr, parts))} describes is not counted")
    if unknown:
        keys = ", ".join(map(repr, unknown[:8])) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        words = ("key", "is", "was") if len(unknown) == 1 else ("keys", "are", "were")
        notes.append(f"config {words[0]} {keys} {words[1]} not known to family {family.name!r} and {words[2]} ignored")
    silent = [name for name in PLAIN_SIZES if name not in settings.sources and isinstance(family.values.get(name), int)]
    if silent:
        filled = ", ".join(f"{settings.key(name)} = {settings.number(name)}" for name in silent)
        notes.append(f"not in the config, so the default of family {family.name!r} is taken: {filled}")
    quantised = config.get("quantization_config")
    if isinstance(quantised, Mapping):
        method = shown(quantised.get("quant_method", "unnamed"))
        notes.append(f"the stored weights are quantised (method {method}); parameters are counted as if they were not")
    if settings.number("mtp_layers"):
        notes.append(f"{settings.number('mtp_layers')} multi-token-prediction layer(s) are outside the count")
    dtype = config.get("dtype", config.get("torch_dtype"))
    if isinstance(dtype, str):
        notes.append(f"the config stores weights as {dtype[:40]}")
    return notes


def _build(name: str, settings: Settings, notes: tuple[str, ...]) -> Architecture:
    return Architecture(
        name=name,
        family=settings.family.name,
        d_model=settings.number("d_model"),
        vocab=settings.number("vocab"),
        layers=build_layers(settings),
        max_positions=settings.number("max_positions"),
        norm=cast(NormKind, settings.word("norm")),
        norm_placement=cast(NormPlacement, settings.word("norm_placement")),
        positions=cast(Positions, settings.word("positions")),
        position_rows=settings.number("position_rows"),
        d_embedding=settings.number("d_embedding"),
        tied=settings.flag("tied"),
        head_bias=settings.flag("head_bias"),
        embedding_norm=settings.flag("embedding_norm"),
        final_norm=settings.flag("final_norm"),
        logit_softcap=settings.flag("logit_softcap"),
        residual_dropout=settings.flag("residual_dropout"),
        attention_dropout=settings.flag("attention_dropout"),
        embedding_dropout=settings.flag("embedding_dropout"),
        notes=notes,
    )
