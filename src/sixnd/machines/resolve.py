"""Which machine does a name mean?

Names are compared without case, spaces, hyphens and the vendor's words, so that what a driver prints ("NVIDIA H100
80GB HBM3") and what people type ("h100") both work. A user's own machines go before the built-in ones. A short name
that could mean several machines is either the most common one, and then the answer says so in its `alias_note`, or an
error that lists them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sixnd.errors import UnknownMachineError, near_miss
from sixnd.machines.catalogue import built_in, find, find_built_in, machine_names, squeezed
from sixnd.machines.own import own_machines, own_path
from sixnd.machines.record import Machine

_LONGEST_SHOWN = 40
_UNMEASURED = {
    "this": "is not calibrated yet, so its rates are not known: name a machine of the catalogue instead",
    "cpu": "has no entry, because the rates of a CPU must be measured and cannot be looked up: record yours "
    "in {path}, or name an accelerator",
}


def resolve(name: str) -> Machine:
    """The machine that a name means: canonical, short, or as a driver prints it.

    Raises:
        UnknownMachineError: no machine has this name, or several have and none is the usual one.
        InputError: the user's own file of machines is not sound.

    >>> resolve("h100").name, resolve("NVIDIA A100-SXM4-80GB").name
    ('h100-sxm-80gb', 'a100-sxm-80gb')
    >>> resolve("h100").alias_note.startswith("'h100' was taken to be h100-sxm-80gb")
    True
    """
    key = squeezed(name)
    found = find(key, own_machines().values()) or _built_in(key)
    if found is None:
        raise UnknownMachineError(_complaint(name, key))
    return found


def all_machines() -> tuple[Machine, ...]:
    """Every machine: the user's own in front, then the built-in ones in the catalogue's order.

    >>> len(all_machines()) >= 50
    True
    """
    own = own_machines()
    return (*own.values(), *(built_in(name) for name in machine_names() if name not in own))


@lru_cache(maxsize=256)
def _built_in(key: str) -> Machine | None:
    """The built-in machine for a squeezed name, with a note where the name was short for several."""
    machine = find_built_in(key)
    if machine is None:
        return None
    short = [name for name in machine.short_for if squeezed(name) == key]
    others = [name for name in _with_words_of(short[0]) if name != machine.name] if short else []
    if not others:
        return machine
    return replace(machine, alias_note=f"'{short[0]}' was taken to be {machine.name}; there are also {_listed(others)}")


def _with_words_of(short: str) -> list[str]:
    """The built-in names that have every word of a short name."""
    return [name for name in machine_names() if set(short.split("-")) <= set(name.split("-"))]


def _complaint(name: str, key: str) -> str:
    """Why a name means no machine, and what would."""
    shown = repr(name[:_LONGEST_SHOWN])
    if key in _UNMEASURED:
        return f"machine {shown} {_UNMEASURED[key].format(path=own_path())}"
    known = [*own_machines(), *machine_names()]
    several = [each for each in known if key and squeezed(each).startswith(key)]
    if len(several) > 1:
        return f"machine {shown} could be any of {_listed(several)}: choose one"
    spelled = [each for machine in all_machines() for each in (machine.name, *machine.short_for)]
    close = near_miss(name[:_LONGEST_SHOWN].strip().replace(" ", "-"), spelled)
    return f"machine {shown} is not known: expected one of {_listed(known)}{close}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)
