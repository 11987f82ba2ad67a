"""How did published runs go, compared with what we would have estimated for them?"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

ANY = "any"


class Experience(msgspec.Struct, frozen=True):
    """Measured time over our estimate: the median of `runs` published runs on a machine, and their 10th and 90th
    percentile. `machine` is "any" where none on this machine was published.
    """

    machine: str
    ratio: float
    low: float
    high: float
    runs: int
    source: str
    date: str


@cache
def experience(machine: str) -> Experience:
    """The published runs on a machine, or on all of them together.

    >>> experience("h100-sxm-80gb").ratio > 1
    True
    """
    table = tomllib.loads(Path(__file__).with_name("experience.toml").read_text(encoding="utf-8"))
    name = machine if machine in table else ANY
    return Experience(name, **table[name])
