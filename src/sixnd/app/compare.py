"""A second plan, typed as options: the words after `--vs`."""

from __future__ import annotations

import shlex
from typing import Any

from sixnd.errors import UsageError, near_miss
from sixnd.units import parse_count

WORDS = (
    "on",
    "phase",
    "precision",
    "optimizer",
    "recompute",
    "attention",
    "kernels",
    "shard",
    "mesh",
    "mfu_convention",
)
NUMBERS = ("batch", "seq", "accumulation", "global_batch", "tokens")
SWITCHES = ("foreach",)


def second_plan(text: str) -> dict[str, Any]:
    """Read options such as "--recompute full --batch 4"; raises `UsageError` for one that a plan does not have.

    >>> second_plan("--recompute full --batch 4")
    {'recompute': 'full', 'batch': 4}
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--vs {text!r} cannot be read: {error}") from None
    plan: dict[str, Any] = {}
    while words:
        option = words.pop(0)
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in (*WORDS, *NUMBERS, *SWITCHES):
            raise UsageError(f"--vs: {option!r} is no option of a plan{near_miss(name, (*WORDS, *NUMBERS, *SWITCHES))}")
        if name in SWITCHES:
            plan[name] = True
            continue
        if not words:
            raise UsageError(f"--vs: {option} needs a value")
        value = words.pop(0)
        plan[name] = value if name in WORDS else parse_count(value, what=f"--vs {option}")
    if not plan:
        raise UsageError('--vs needs the options that differ, as in --vs "--recompute full --batch 4"')
    return plan
