"""What does a family of models write into its config.json, and what does it mean when it is silent?

Each family is one file of `families/`, named after its `model_type`:

    like = "llama"                    # everything that is not said here is as in that family
    text = "gemma3_text"              # the family of a nested "text_config" that does not name its own

    [keys]                            # setting = the config's key, or keys, that give it; dots reach into objects
    kv_heads = "num_key_value_heads"

    [values]                          # setting = its value where the config is silent; text may be a formula,
                                      # and "required" is no value: the config may not be silent
    kv_heads = 8
    d_head = "d_model // heads"

    [null]                            # setting = its value where the config says null, if not the one above
    kv_heads = "heads"

    [switches]                        # a key of this family alone = its value where the config is silent
    use_parallel_residual = true

    [[when]]                          # switches and settings that hold -> settings that follow, whatever else is said
    if = { use_parallel_residual = false }
    set = { norm_placement = "pre" }

    [must]                            # key = the only value (or list of values) that is understood
    num_key_value_heads = "heads"

    inert = ["rope_theta"]            # keys that change no shape and no cost; * stands for anything
    shaping = ["ssm_*"]               # keys that would change shapes and are not understood: an error when set

Lists are added to those of the family that this one is like; tables are overlaid on its tables.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sixnd.errors import ConfigError, near_miss
from sixnd.models.settings import SETTINGS

FOLDER = Path(__file__).parent / "families"
TomlValue = int | float | bool | str | list[int] | list[str]


@dataclass(frozen=True)
class Rule:
    """One `[[when]]` of a family: if all of `conditions` hold, `settings` are so."""

    conditions: Mapping[str, TomlValue]
    settings: Mapping[str, TomlValue]


@dataclass(frozen=True)
class Family:
    """How one family's config.json is read; the module's first page says what each part means."""

    name: str
    keys: Mapping[str, tuple[str, ...]]
    values: Mapping[str, TomlValue]
    null: Mapping[str, TomlValue]
    switches: Mapping[str, TomlValue]
    must: Mapping[str, TomlValue]
    when: tuple[Rule, ...]
    inert: tuple[str, ...]
    shaping: tuple[str, ...]
    text: str = ""


@lru_cache(maxsize=1)
def known_families() -> tuple[str, ...]:
    """List the model types that can be read, sorted.

    >>> "llama" in known_families()
    True
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if not path.stem.startswith("_")))


@lru_cache(maxsize=64)
def load_family(model_type: str) -> Family:
    """Read the family that a config.json's `model_type` names.

    Raises `ConfigError` for a model that is no decoder-only transformer, and for one that no file describes.

    >>> load_family("mistral").values["kv_heads"]
    8
    """
    if model_type not in known_families():
        raise ConfigError(_unknown(model_type))
    return _load(model_type)


@lru_cache(maxsize=64)
def _load(name: str) -> Family:
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    above = _load(table["like"]) if "like" in table else Family(name, {}, {}, {}, {}, {}, (), (), ())
    keys = {setting: (key,) if isinstance(key, str) else tuple(key) for setting, key in table.get("keys", {}).items()}
    rules = tuple(Rule(rule["if"], rule["set"]) for rule in table.get("when", ()))
    family = Family(
        name=name,
        keys={**above.keys, **keys},
        values={**above.values, **table.get("values", {})},
        null={**above.null, **table.get("null", {})},
        switches={**above.switches, **table.get("switches", {})},
        must={**above.must, **table.get("must", {})},
        when=above.when + rules,
        inert=above.inert + tuple(table.get("inert", ())),
        shaping=above.shaping + tuple(table.get("shaping", ())),
        text=table.get("text", above.text),
    )
    strangers = (set(family.keys) | set(family.values) | set(family.null)) - set(SETTINGS)
    if strangers:
        raise ValueError(f"families/{name}.toml: no such setting: {sorted(strangers)}")
    return family


def _unknown(model_type: str) -> str:
    others = tomllib.loads((FOLDER / "_others.toml").read_text(encoding="utf-8"))
    for what, names in others.items():
        if model_type in names:
            return f"model_type {model_type!r} is {what}; only decoder-only transformers are understood: " + ", ".join(
                known_families()
            )
    return (
        f"model_type {model_type[:60]!r} is not a family that is understood{near_miss(model_type, known_families())}"
        f" (known decoder-only families: {', '.join(known_families())})"
    )
