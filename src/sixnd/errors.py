"""What can go wrong that a user can mend?

    SixndError
    ├── UsageError            exit 2   the words of a command: a choice, a size, a unit
    │   └── UnitError                  an amount that cannot be read: "70Q", "-3GB"
    └── InputError            exit 3   something that was read is not understood
        ├── ConfigError                a model's config.json or weights file
        ├── PatternError               a line of the notation
        ├── UnknownMachineError        an accelerator that no catalogue names
        └── MissingDependencyError     an optional package that is not installed

A message says what was got, what is allowed and what to do. "Does not fit" is not an error but an answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SixndError(Exception):
    """The root of every error that a user can meet; its text is one clear sentence."""

    exit_code = 3


class UsageError(SixndError):
    """The words of a command do not make sense."""

    exit_code = 2


class UnitError(UsageError):
    """An amount that cannot be read as the quantity that was asked for."""


class InputError(SixndError):
    """Something that was read (a file, a name, a pattern) is not understood."""


class ConfigError(InputError):
    """A model's description cannot be turned into an architecture."""


class PatternError(InputError):
    """A line of the notation does not parse, or its sizes do not fit it."""


class UnknownMachineError(InputError):
    """No catalogue, built in or the user's own, names this accelerator."""


class MissingDependencyError(InputError):
    """An optional package is needed and is not installed."""


def near_miss(name: str, known: Iterable[str], allowed: int = 3) -> str:
    """Say which known names are close to `name`, as a clause to end a message with; empty where none is.

    >>> near_miss("h1000", ["h100", "a100-80gb"])
    "; did you mean 'h100'?"
    """
    close = difflib.get_close_matches(name.lower(), list(known), n=allowed, cutoff=0.6)
    if not close:
        return ""
    return "; did you mean " + " or ".join(repr(match) for match in close) + "?"
