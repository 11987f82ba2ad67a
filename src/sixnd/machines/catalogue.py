"""Which machines are built in?

`catalogue.toml` holds one table for each. Reading all of it takes longer than a command may take to start, so the text
is cut at the tables' headers and only the tables that mention a name are parsed: that is why a table of the catalogue
has no table inside it other than an inline one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sixnd.machines.entry import read_machine
from sixnd.machines.record import Machine

_HEADER = re.compile(r"^\[([^\]\n]+)\]$", re.MULTILINE)
_SEPARATORS = re.compile(r"[\s_-]+")
_VENDOR_WORDS = re.compile(r"\b(?:nvidia|geforce|tesla|amd|google|aws|intel|apple)\b")


def squeezed(name: str) -> str:
    """A name without what people and drivers write in different ways: case, spaces, hyphens, the vendor's words.

    >>> squeezed("NVIDIA GeForce RTX 4090") == squeezed("rtx_4090")
    True
    """
    spaced = _SEPARATORS.sub(" ", name.lower())
    return _VENDOR_WORDS.sub("", spaced).replace(" ", "") or spaced.replace(" ", "")


def machine_names() -> tuple[str, ...]:
    """The names of the built-in machines, in the catalogue's order.

    >>> "h100-sxm-80gb" in machine_names()
    True
    """
    return tuple(name for name in _tables() if name != "defaults")


def built_in(name: str) -> Machine:
    """The built-in machine of exactly this name; KeyError where there is none."""
    return _machine(name)


def find_built_in(key: str) -> Machine | None:
    """The built-in machine one of whose names is `key` when squeezed."""
    mentions = (name for name, text in _squeezed_tables().items() if key in text)
    return find(key, (_machine(name) for name in mentions))


def find(key: str, machines: Iterable[Machine]) -> Machine | None:
    """The first machine one of whose names is `key` when squeezed."""
    for machine in machines:
        if any(squeezed(name) == key for name in names_of(machine)):
            return machine
    return None


def names_of(machine: Machine) -> tuple[str, ...]:
    """All the names that mean a machine."""
    return (machine.name, *machine.aliases, *machine.short_for)


@cache
def defaults() -> Mapping[str, Any]:
    """What is taken where a machine has no number of its own, with sources."""
    return _parse("defaults")


@cache
def _machine(name: str) -> Machine:
    return read_machine(name, _parse(name), defaults(), "the built-in catalogue")


def _parse(name: str) -> Mapping[str, Any]:
    import tomllib

    table: Mapping[str, Any] = tomllib.loads(_tables()[name])
    return table


@cache
def _tables() -> Mapping[str, str]:
    """The text of each table under its name."""
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    _, *rest = _HEADER.split(text)
    return dict(zip(rest[::2], rest[1::2], strict=True))


@cache
def _squeezed_tables() -> Mapping[str, str]:
    return {name: squeezed(f"{name} {text}") for name, text in _tables().items() if name != "defaults"}
