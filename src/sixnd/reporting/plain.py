"""How is text that came from outside shown without letting it act?

A model's name may hold an escape sequence, a line break, a reversed reading order or half of a surrogate pair. Every
renderer shows text through `plain` first, and then escapes what its own format gives a meaning to.
"""

from __future__ import annotations

import re

HARD_BLANK = "\u00a0"
# Control characters, marks and overrides of reading order, line separators, halves of surrogate pairs.
_ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGTPE]?i?B|[kMGTPE]?FLOP|ns|us|ms|s|min|h|days)(?:\W|$))")


def plain(text: str) -> str:
    r"""The text on one line, with every character that would act instead of show written out.

    >>> plain("two\nlines"), plain("\x1b[31mred")
    ('two lines', '\\x1b[31mred')
    """
    return _ACTS.sub(_written_out, text)


def hold_units(text: str) -> str:
    r"""The text with a hard blank between each number and its unit, so that no line ends between them.

    >>> hold_units("79.6 GiB on 2 devices")
    '79.6\xa0GiB on 2 devices'
    """
    return _BEFORE_A_UNIT.sub(HARD_BLANK, text)


def _written_out(match: re.Match[str]) -> str:
    """White space as a space, anything else as its escape."""
    character = match[0]
    return " " if character in "\t\n\r\v\f\u2028\u2029" else ascii(character)[1:-1]
