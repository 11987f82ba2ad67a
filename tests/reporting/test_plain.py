"""Is text from outside shown without acting, and does a number keep its unit?"""

import pytest

from sixnd.reporting.plain import hold_units, plain


@pytest.mark.parametrize(
    "text, shown",
    [
        ("d_model · 2×3 ✓ 模型", "d_model · 2×3 ✓ 模型"),
        ("a\tb\r\nc\u2028d", "a b  c d"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil", "\\u202eevil"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_nothing_acts(text, shown):
    assert plain(text) == shown
    plain(text).encode("utf-8")


@pytest.mark.parametrize(
    "text, held",
    [
        ("79.6 GiB", "79.6~GiB"),
        ("25.0 %, 4 us", "25.0~%, 4~us"),
        ("989.5 TFLOP/s dense", "989.5~TFLOP/s dense"),
        ("on 8 devices, 2 sequences, 3 Bs", "on 8 devices, 2 sequences, 3 Bs"),
    ],
)
def test_a_number_keeps_its_unit(text, held):
    assert hold_units(text).replace("\xa0", "~") == held
