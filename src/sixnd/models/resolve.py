"""What does one configuration settle, once its family has filled in what it leaves out?

`resolve` reads a mapping (a parsed config.json) under a `Family` and returns `Settings`: every setting's value, and
the key that gave it, for messages. What the config says stands first, then the family's `[null]`, `[values]` and
`[[when]]`; formulas are worked out last, so a family may say `d_head = "d_model // heads"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sixnd.errors import ConfigError
from sixnd.models.families import Family
from sixnd.models.formulas import evaluate
from sixnd.models.settings import SETTINGS, Setting, Value, check, shown

ABSENT = object()
REQUIRED = "required"
_NUMBERS = ("size", "count", "amount")


@dataclass(frozen=True)
class Settings:
    """Every setting of one model, with the config key that gave each one that the config gave."""

    values: Mapping[str, Value]
    sources: Mapping[str, str]
    family: Family

    def number(self, name: str) -> int:
        """Return a whole number: a size or a count."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def amount(self, name: str) -> float:
        """Return an amount, which may be a fraction."""
        value = self.values[name]
        assert isinstance(value, int | float), name
        return float(value)

    def flag(self, name: str) -> bool:
        """Return a flag; an amount counts as set when it is above zero."""
        return bool(self.values[name])

    def word(self, name: str) -> str:
        """Return a word."""
        return str(self.values[name])

    def list(self, name: str) -> tuple[int | str, ...]:
        """Return a list of indices or of layer types."""
        value = self.values[name]
        assert isinstance(value, tuple), name
        return value

    def key(self, name: str) -> str:
        """Return the config key behind a setting: the one that was read, or else the first that could have been."""
        known = self.family.keys.get(name) or (name,)
        return self.sources.get(name, known[0])


def look_up(config: Mapping[str, object], key: str) -> object:
    """Return what `config` holds at a dotted key, or `ABSENT`.

    >>> look_up({"attn_config": {"alibi": True}}, "attn_config.alibi")
    True
    """
    here: object = config
    for part in key.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return ABSENT
        here = here[part]
    return here


def resolve(family: Family, config: Mapping[str, object]) -> Settings:
    """Settle every setting of `config`, read as `family`.

    Raises `ConfigError` where a value is out of bounds, two keys disagree, or a key has a value that is not understood.
    """
    state: dict[str, object] = {**family.values, **_switches(family, config)}
    sources: dict[str, str] = {}
    for name, keys in family.keys.items():
        key, raw = _given(config, keys)
        if raw is ABSENT:
            continue
        if raw is None and name in family.null:
            state[name] = family.null[name]
        elif raw is not None or SETTINGS[name].kind not in ("size", "word"):
            state[name], sources[name] = check(SETTINGS[name], raw, key), key
    for rule in family.when:
        if all(state.get(name) == value for name, value in rule.conditions.items()):
            state.update(rule.settings)
    settings = Settings(_worked_out(family, state, sources), sources, family)
    _check_musts(family, config, settings)
    return settings


def strangers(family: Family, config: Mapping[str, object]) -> list[str]:
    """List the keys of `config` that the family does not know, in order.

    Raises `ConfigError` for one that is known to change shapes and is set.
    """
    claimed = {key for keys in family.keys.values() for key in keys} | set(family.switches) | set(family.must)
    claimed |= {key.split(".")[0] for key in claimed}
    unknown = []
    for key, value in config.items():
        if key in claimed or key in family.inert or any(fnmatchcase(key, inert) for inert in family.inert):
            continue
        if value not in (None, False, 0, "", [], {}) and any(fnmatchcase(key, shape) for shape in family.shaping):
            raise ConfigError(
                f"{key!r} changes shapes and family {family.name!r} does not understand it; got {shown(value)}"
            )
        unknown.append(key)
    return unknown


def _given(config: Mapping[str, object], keys: tuple[str, ...]) -> tuple[str, object]:
    """Find the first of `keys` that says something; null counts only where no other key says more."""
    found = [(key, raw) for key in keys if (raw := look_up(config, key)) is not ABSENT]
    said = [(key, raw) for key, raw in found if raw is not None]
    for key, raw in said[1:]:
        if isinstance(raw, int) and raw != said[0][1]:
            raise ConfigError(
                f"{said[0][0]!r} is {shown(said[0][1])} but {key!r}, which means the same, is {shown(raw)}"
            )
    return (said or found or [("", ABSENT)])[0]


def _switches(family: Family, config: Mapping[str, object]) -> dict[str, object]:
    """Read the keys that only this family has; each is of the type of its default."""
    state: dict[str, object] = {}
    for key, default in family.switches.items():
        raw = look_up(config, key)
        if raw is ABSENT:
            state[key] = default
        elif isinstance(default, bool):
            state[key] = check(Setting("flag"), raw, key)
        elif isinstance(default, int):
            state[key] = check(Setting("count"), raw, key)
        else:
            state[key] = "" if raw is None else raw
    return state


def _worked_out(family: Family, state: Mapping[str, object], sources: Mapping[str, str]) -> dict[str, Value]:
    """Evaluate the formulas that are left in `state`, and bring the family's own words into our spelling."""
    done: dict[str, Value] = {}

    def key_of(name: str) -> str:
        return sources.get(name) or (family.keys.get(name) or (name,))[0]

    def value_of(name: str) -> object:
        if name not in SETTINGS:
            return state[name]
        if name not in done:
            raw = state.get(name)
            if raw is None or raw == REQUIRED:
                raise ConfigError(f"{key_of(name)!r} is needed and is not there")
            if isinstance(raw, str) and SETTINGS[name].kind in _NUMBERS:
                raw = evaluate(raw, value_of, key_of)
            checked = name in sources or raw in SETTINGS[name].words.values()
            done[name] = raw if checked else check(SETTINGS[name], raw, key_of(name))  # type: ignore[assignment]
        return done[name]

    for name in SETTINGS:
        value_of(name)
    return done


def _check_musts(family: Family, config: Mapping[str, object], settings: Settings) -> None:
    """Hold the keys of which the family understands one value, or a few, to those."""
    claimed = {key for keys in family.keys.values() for key in keys}
    for key, wanted in family.must.items():
        raw = look_up(config, key)
        if raw is ABSENT or raw is None or key in claimed or key in family.inert:
            continue
        allowed = wanted if isinstance(wanted, list) else [settings.values.get(str(wanted), wanted)]
        if raw not in allowed:
            said = " or ".join(shown(value) for value in allowed)
            raise ConfigError(f"{key!r} is only understood as {said} in family {family.name!r}; got {shown(raw)}")
