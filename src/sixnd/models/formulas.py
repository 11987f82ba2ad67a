"""What is a size that a family derives from others?

A family's file may write a number as a formula: names of settings and whole numbers joined by `*`, `//`, `/` and `+`,
worked out from left to right: "4 * d_model", "d_model // heads".
"""

from __future__ import annotations

from collections.abc import Callable

from sixnd.errors import ConfigError

Lookup = Callable[[str], object]


def evaluate(text: str, value_of: Lookup, key_of: Callable[[str], str]) -> int | float:
    """Work out `text`; `value_of` gives a setting's value and `key_of` the config's key for it, for messages.

    `//` must come out even: raises `ConfigError` where it does not.

    >>> evaluate("4 * d_model", {"d_model": 768}.__getitem__, str)
    3072
    >>> evaluate("d_model // heads", {"d_model": 4096, "heads": 31}.__getitem__, str)
    Traceback (most recent call last):
    sixnd.errors.ConfigError: 'heads' = 31 does not divide 'd_model' = 4096
    """
    first, *rest = text.split(" ")
    total = _number(first, value_of)
    for operator, part in zip(rest[::2], rest[1::2], strict=True):
        number = _number(part, value_of)
        match operator:
            case "*":
                total *= number
            case "+":
                total += number
            case "/":
                total /= number
            case "//":
                if total % number:
                    raise ConfigError(f"{key_of(part)!r} = {number} does not divide {key_of(first)!r} = {total}")
                total //= number
            case _:
                raise ValueError(f"formula {text!r}: no operator {operator!r}")
    return total


def _number(part: str, value_of: Lookup) -> int | float:
    value = int(part) if part.isdecimal() else value_of(part)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{part!r} is {value!r}, no number")
    return value
