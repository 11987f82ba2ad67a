"""Is the oracle right? Against a search over every value of a format, and against published roundings."""

from math import copysign, inf, isnan, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sixnd.errors import UsageError
from sixnd.formats import encoding_of
from sixnd.formats.codec import decode, round_exactly
from sixnd.formats.encoding import Integer

SMALL = (
    "e5m2",
    "e4m3",
    "e4m3-ieee",
    "e4m3-fnuz",
    "e5m2-fnuz",
    "e3m4",
    "e3m2",
    "e2m3",
    "e2m1",
    "int8",
    "int4",
    "int8-mx",
)
TABLES = {
    name: sorted(
        {abs(decode(encoding_of(name), code)): code for code in range(encoding_of(name).largest_code + 1)}.items()
    )
    for name in SMALL
    if not isinstance(encoding_of(name), Integer)
}


def by_search(x: float, name: str) -> float:
    """The nearest magnitude of all, the one of even code on a tie; past the tie to overflow the largest."""
    nearest = min(TABLES[name], key=lambda entry: (abs(entry[0] - abs(x)), entry[1] % 2))
    return nearest[0]


@given(st.sampled_from(sorted(TABLES)), st.floats(-600, 600) | st.floats(-0.01, 0.01))
@example("e4m3", 464.0)
@example("e2m1", 5.0)
@example("e2m1", 0.25)
def test_nearest_is_what_a_search_finds(name, x):
    assert abs(round_exactly(x, encoding_of(name))) == by_search(x, name)


@given(st.sampled_from(SMALL), st.floats(allow_nan=False))
def test_rounding_twice_is_rounding_once(name, x):
    once = round_exactly(x, encoding_of(name))
    assert round_exactly(once, encoding_of(name)) == once


@given(st.sampled_from(SMALL), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_order_is_kept(name, a, b):
    low, high = sorted((a, b))
    assert round_exactly(low, encoding_of(name)) <= round_exactly(high, encoding_of(name))


PUBLISHED = [  # the format, what goes in, what comes out saturated, and what where infinities or NaN may come out
    ("float16", 1e-8, 0.0, 0.0),
    ("float16", 2.0**-25, 0.0, 0.0),
    ("float16", 2.0**-25 * 1.0001, 2.0**-24, 2.0**-24),
    ("float16", 1e5, 65504.0, inf),
    ("float16", 2049.0, 2048.0, 2048.0),
    ("bfloat16", 1e-8, 1.0011717677116394e-08, 1.0011717677116394e-08),
    ("bfloat16", 1 + 1 / 256, 1.0, 1.0),
    ("bfloat16", 257.0, 256.0, 256.0),
    ("e4m3", 464.0, 448.0, 448.0),
    ("e4m3", 465.0, 448.0, nan),
    ("e4m3", inf, 448.0, nan),
    ("e5m2", 61440.0, 57344.0, inf),
    ("e5m2", -inf, -57344.0, -inf),
    ("e4m3-fnuz", 248.0, 240.0, nan),
    ("e8m0", 3.0, 4.0, 4.0),
    ("e8m0", 0.75, 1.0, 1.0),
    ("e8m0", 1e-40, 2.0**-127, 2.0**-127),
    ("e8m0", 3e38, 2.0**127, nan),
    ("e8m0", 0.0, nan, nan),
    ("e8m0", -1.0, nan, nan),
    ("int8", 2.5, 2.0, None),
    ("int8", 200.0, 127.0, None),
    ("int8", -inf, -128.0, None),
    ("binary", -0.1, -1.0, None),
    ("binary", 0.0, 1.0, None),
]


@pytest.mark.parametrize(("name", "x", "saturated", "beyond"), PUBLISHED)
def test_published(name, x, saturated, beyond):
    e = encoding_of(name)
    assert_same(round_exactly(x, e), saturated)
    if beyond is not None:
        assert_same(round_exactly(x, e, "infinity" if e.has_infinity else "nan"), beyond)


def assert_same(a: float, b: float) -> None:
    assert (isnan(a) and isnan(b)) or (a == b and copysign(1, a) == copysign(1, b))


def test_signed_zero():
    assert_same(round_exactly(-1e-30, encoding_of("e4m3")), -0.0)
    assert_same(round_exactly(-1e-30, encoding_of("e4m3-fnuz")), 0.0)
    assert_same(round_exactly(-0.0, encoding_of("int8")), 0.0)


def test_a_code_that_is_none_is_refused():
    with pytest.raises(UsageError, match="code 16 is not one of the 16 codes"):
        decode(encoding_of("e2m1"), 16)
