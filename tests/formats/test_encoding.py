"""Do the facts that are derived from a few fields agree with the published tables?"""

from math import isclose, isnan

import pytest

from sixnd.formats import encoding_of, format_names, get_format
from sixnd.formats.codec import decode
from sixnd.formats.encoding import Float, Integer, first_overflow

# bits, exponent of the smallest normal and of the smallest, largest, log2 epsilon, decades without and with subnormals,
# finite codes, infinities, NaNs: IEEE 754-2019, OCP OFP8 1.0, OCP MX 1.0, arXiv:2209.05433, arXiv:2206.02915
FLOATS = {
    "float32": (32, -126, -149, 3.4028234663852886e38, -23, 76.46, 83.38, 4278190080, 2, 16777214),
    "tf32": (19, -126, -136, 3.4011621342146535e38, -10, 76.46, 79.47, 522240, 2, 2046),
    "float16": (16, -14, -24, 65504, -10, 9.03, 12.04, 63488, 2, 2046),
    "bfloat16": (16, -126, -133, 3.3895313892515355e38, -7, 76.46, 78.57, 65280, 2, 254),
    "e5m2": (8, -14, -16, 57344, -2, 8.97, 9.57, 248, 2, 6),
    "e4m3": (8, -6, -9, 448, -3, 4.46, 5.36, 254, 0, 2),
    "e4m3-ieee": (8, -6, -9, 240, -3, 4.19, 5.09, 240, 2, 14),
    "e3m4": (8, -2, -6, 15.5, -4, 1.79, 3.00, 224, 2, 30),
    "e4m3-fnuz": (8, -7, -10, 240, -3, 4.49, 5.39, 255, 0, 1),
    "e4m3b11-fnuz": (8, -10, -13, 30, -3, 4.49, 5.39, 255, 0, 1),
    "e5m2-fnuz": (8, -15, -17, 57344, -2, 9.27, 9.88, 255, 0, 1),
    "e3m2": (6, -2, -4, 28, -2, 2.05, 2.65, 64, 0, 0),
    "e2m3": (6, 0, -3, 7.5, -3, 0.88, 1.78, 64, 0, 0),
    "e2m1": (4, 0, -1, 6, -1, 0.78, 1.08, 16, 0, 0),
}
# threshold, and whether the tie itself overflows: the largest code is odd but in e4m3
OVERFLOWS = {
    "float16": (65520, True),
    "e5m2": (61440, True),
    "e4m3": (464, False),
    "e4m3-ieee": (248, True),
    "e4m3-fnuz": (248, True),
    "e3m4": (15.75, True),
    "e3m2": (30, True),
    "e2m3": (7.75, True),
    "e2m1": (7, True),
}
INTEGERS = {
    "int16": (-32768, 32767, 65536),
    "int8": (-128, 127, 256),
    "uint8": (0, 255, 256),
    "int4": (-8, 7, 16),
    "int2": (-2, 1, 4),
    "ternary": (-1, 1, 3),
    "binary": (-1, 1, 2),
    "int8-mx": (-2, 127 / 64, 256),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name):
    bits, normal, smallest, largest, epsilon, decades, with_subnormals, n_finite, n_infinity, n_nan = FLOATS[name]
    e = encoding_of(name)
    assert (e.bits, e.smallest_normal, e.smallest) == (bits, 2.0**normal, 2.0**smallest)
    assert (e.largest, e.lowest, e.epsilon) == (largest, -largest, 2.0**epsilon)
    assert (e.n_finite, e.n_infinity, e.n_nan) == (n_finite, n_infinity, n_nan)
    assert isclose(e.decades, decades, abs_tol=0.006)
    assert isclose(e.decades_with_subnormals, with_subnormals, abs_tol=0.006)


@pytest.mark.parametrize("name", OVERFLOWS)
def test_overflow(name):
    threshold, tie = OVERFLOWS[name]
    e = encoding_of(name)
    assert (e.overflow_threshold, e.tie_overflows) == (threshold, tie)
    assert (first_overflow(e) == threshold) is tie


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    e = encoding_of(name)
    assert isinstance(e, Integer)
    assert (e.low, e.high, e.n_codes) == INTEGERS[name]
    values = sorted(decode(e, code) for code in range(e.n_codes))
    assert values == [e.low + e.step * i for i in range(e.n_codes)]


def test_fp4_on_one_line():
    values = [decode(encoding_of("e2m1"), code) for code in range(16)]
    assert values == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    assert len(set(values)) == 15


def test_scales_are_powers_of_two():
    e = encoding_of("e8m0")
    assert [decode(e, code) for code in (0, 127, 254)] == [2.0**-127, 1, 2.0**127]
    assert isnan(decode(e, 255))
    assert (e.largest, e.smallest, e.n_finite, e.has_zero, e.signed) == (2.0**127, 2.0**-127, 255, False, False)


@pytest.mark.parametrize("name", [name for name in format_names() if get_format(name).encoding])
def test_codes_and_counts_agree(name):
    e = encoding_of(name)
    if e.n_codes > 1 << 16:
        assert e.n_finite + e.n_infinity + e.n_nan == e.n_codes
        return
    values = [decode(e, code) for code in range(e.n_codes)]
    finite = [v for v in values if abs(v) < float("inf")]
    assert sum(isnan(v) for v in values) == e.n_nan
    assert len(finite) == e.n_finite
    assert sum(abs(v) == float("inf") for v in values) == e.n_infinity
    assert (max(finite), min(finite)) == (e.largest, e.lowest)
    assert min(v for v in finite if v > 0) == e.smallest
    if isinstance(e, Float) and e.has_zero:
        assert 1.0 in finite
        assert min(v for v in finite if v > 1) - 1 == e.epsilon
