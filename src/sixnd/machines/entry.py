"""Is a table of the catalogue a sound machine?

One table is one machine, in the built-in catalogue and in a user's own file alike. Rates and amounts are plain numbers
in base units (`3.35e12`) or texts with a unit (`"3.35TB/s"`, `"81559MiB"`). What is not sound is said in one sentence
that names the file, the machine and the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sixnd.errors import InputError, UnitError, near_miss
from sixnd.machines.record import PEAK_KEYS, Efficiency, Link, Machine, Sourced
from sixnd.units import parse_bytes, parse_bytes_per_second, parse_count, parse_flop_per_second, parse_seconds

Table = Mapping[str, Any]
Read = Callable[[Any], Any]

REQUIRED = ("peak_flop_per_second", "memory_bytes", "memory_bytes_per_second")
CONFIDENCES = ("high", "medium", "low")


def read_machine(name: str, table: Table, defaults: Table, where: str) -> Machine:
    """The machine that a table describes; `defaults` fills in what was not measured on it, `where` names the file.

    Raises:
        InputError: a key is missing, unknown, or has a value that it cannot have.

    >>> defaults = {"matmul_fraction": {"bf16": 0.8}, "matmul_source": "assumed", "bandwidth_fraction": 0.8,
    ...             "bandwidth_source": "assumed", "launch_seconds": 4e-6, "launch_source": "assumed"}
    >>> table = {"peak_flop_per_second": {"bf16": "2300TFLOP/s"}, "memory_bytes": "288GB",
    ...          "memory_bytes_per_second": "8TB/s"}
    >>> machine = read_machine("mine", table, defaults, "machines.toml")
    >>> machine.memory_bytes, machine.peak_flop_per_second["bf16"]
    (288000000000, 2300000000000000.0)
    """
    entry = _Entry(name, where)
    if not isinstance(table, Mapping):
        entry.refuse("", f"is {table!r}: expected a table of keys and values")
    fields = {key: entry.read(key, value) for key, value in table.items()}
    for key in REQUIRED:
        if key not in fields:
            entry.refuse(key, f"is missing: expected all of {', '.join(REQUIRED)}")
    measured = {key: fields.pop(key) for key in _EFFICIENCY & fields.keys()}
    fields["efficiency"] = _efficiency(entry, fields["peak_flop_per_second"], measured, defaults)
    fields["intra_node"] = _link(entry, "intra_node", fields, defaults)
    fields["inter_node"] = _link(entry, "inter_node", fields, defaults)
    fields.setdefault("nameplate_bytes", fields["memory_bytes"])
    return Machine(name=name, **fields)


class _Entry:
    """One table while it is read: knows how to say what is wrong with it."""

    def __init__(self, name: str, where: str) -> None:
        self.name, self.where = name, where

    def read(self, key: str, value: Any) -> Any:
        """The value of one key, checked and in base units."""
        if key not in _READ:
            self.refuse(key, f"is not a known key{near_miss(key, _READ) or ': expected ' + ', '.join(_READ)}")
        try:
            return _READ[key](value)
        except UnitError as error:
            self.refuse(key, f"is not understood: {error}")
        except (TypeError, ValueError, OverflowError) as error:
            self.refuse(key, f"is {value!r}: expected {error}")

    def refuse(self, key: str, problem: str) -> NoReturn:
        """End with the sentence for one fault."""
        raise InputError(f"{self.where}: machine {self.name!r}: {key} {problem}".replace("  ", " "))


def _amount(parse: Callable[[Any], float], allowed: str) -> Read:
    """A reader of a positive amount: a plain number in base units, or a text for `parse`."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError(allowed)
        amount = parse(value) if isinstance(value, str) else value
        if not 0 < amount < math.inf:
            raise ValueError(allowed)
        return amount

    return read


def _real(read: Read) -> Read:
    """A reader of a number as a float."""
    return lambda value: float(read(value))


def _whole(read: Read) -> Read:
    """A reader of a whole number."""

    def read_whole(value: Any) -> int:
        amount = read(value)
        if amount != int(amount):
            raise ValueError("a whole number")
        return int(amount)

    return read_whole


def _text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("a list of texts")
    return tuple(value)


def _confidence(value: Any) -> str:
    """One of the three words."""
    if value not in CONFIDENCES:
        raise ValueError(f"one of {', '.join(CONFIDENCES)}")
    return str(value)


def _fraction(value: Any) -> float:
    """A number above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("a number above 0 and at most 1")
    return float(value)


def _rates(value: Any) -> dict[str, float]:
    """A rate for each of some formats."""
    allowed = f'a table of rates such as {{bf16 = "989.5TFLOP/s"}}, with keys among {", ".join(PEAK_KEYS)}'
    if not isinstance(value, Mapping) or not value or not value.keys() <= set(PEAK_KEYS):
        raise TypeError(allowed)
    return {key: _rate(rate) for key, rate in value.items()}


def _link_table(value: Any) -> dict[str, Any]:
    """A link, whose latency may yet be missing."""
    allowed = '{name = "NVLink4", bytes_per_second = 450e9}, with latency_seconds and peer_bytes_per_second if known'
    if not isinstance(value, Mapping) or not {"name", "bytes_per_second"} <= value.keys() <= _LINK.keys():
        raise TypeError(allowed)
    return {key: _LINK[key](each) for key, each in value.items()}


def _link(entry: _Entry, key: str, fields: Mapping[str, Any], defaults: Table) -> Link | None:
    """The link of a table that was read, with the default latency where it gives none."""
    table = fields.get(key)
    if table is None:
        return None
    latency = f"{key.partition('_')[0]}_latency_seconds"
    if "latency_seconds" not in table and latency not in defaults:
        entry.refuse(key, "has no latency_seconds")
    return Link(**{"latency_seconds": defaults.get(latency), **table})


def _efficiency(entry: _Entry, peaks: Mapping[str, float], measured: Table, defaults: Table) -> Efficiency:
    """What was measured on this machine; else its own bf16 fraction; else the default for the format, or for bf16."""
    best = measured.get("matmul_flop_per_second", {})
    for key, rate in best.items():
        if rate > peaks.get(key, 0):
            entry.refuse("matmul_flop_per_second", f"has {key} above its peak, or without one")
    source = measured.get("matmul_source", "the machine's own entry")
    default = defaults["matmul_fraction"]
    matmul = {}
    for key, rate in peaks.items():
        if key in best:
            matmul[key] = Sourced(best[key] / rate, source)
        elif "bf16" in best:
            matmul[key] = Sourced(best["bf16"] / peaks["bf16"], f"that of bf16 on the same machine: {source}")
        else:
            matmul[key] = Sourced(default.get(key, default["bf16"]), defaults["matmul_source"])
    return Efficiency(
        matmul,
        _measured_or_default("bandwidth_fraction", "bandwidth_source", measured, defaults),
        _measured_or_default("launch_seconds", "launch_source", measured, defaults),
    )


def _measured_or_default(key: str, source: str, measured: Table, defaults: Table) -> Sourced:
    """A number of this machine with its source, or the default with its own."""
    if key in measured:
        return Sourced(measured[key], measured.get(source, "the machine's own entry"))
    return Sourced(defaults[key], defaults[source])


_rate = _real(_amount(parse_flop_per_second, 'a rate above zero, such as 989.5e12 or "989.5TFLOP/s"'))
_bytes_rate = _real(_amount(parse_bytes_per_second, 'a rate above zero, such as 3.35e12 or "3.35TB/s"'))
_bytes = _whole(_amount(parse_bytes, 'an amount above zero, such as 80e9, "80GB" or "81559MiB"'))
_seconds = _real(_amount(parse_seconds, 'a time above zero, such as 4e-6 or "4us"'))
_count = _whole(_amount(parse_count, "a whole number above zero"))
_watts = _real(_amount(float, "a number of watts above zero"))
_LINK: Mapping[str, Read] = {
    "name": _text,
    "bytes_per_second": _bytes_rate,
    "latency_seconds": _seconds,
    "peer_bytes_per_second": _bytes_rate,
}
_READ: Mapping[str, Read] = {
    "vendor": _text,
    "form_factor": _text,
    "year": _count,
    "aliases": _texts,
    "short_for": _texts,
    "peak_flop_per_second": _rates,
    "vector_flop_per_second": _rate,
    "memory_bytes": _bytes,
    "nameplate_bytes": _bytes,
    "memory_note": _text,
    "memory_bytes_per_second": _bytes_rate,
    "last_level_cache_bytes": _bytes,
    "intra_node": _link_table,
    "inter_node": _link_table,
    "devices_per_node": _count,
    "host_link_bytes_per_second": _bytes_rate,
    "tdp_watts": _watts,
    "matmul_flop_per_second": _rates,
    "matmul_source": _text,
    "bandwidth_fraction": _fraction,
    "bandwidth_source": _text,
    "launch_seconds": _seconds,
    "launch_source": _text,
    "source": _text,
    "date": _text,
    "confidence": _confidence,
    "notes": _text,
}
_EFFICIENCY = {key for key in _READ if key.startswith(("matmul_", "bandwidth_", "launch_"))}
