"""Is the fast rounding of arrays the exact one, everywhere? Against the oracle, ml_dtypes and gfloat."""

import ml_dtypes
import numpy as np
import pytest
from rounding_oracle import around, edges, nearest, same

from sixnd.formats import encoding_of, quantize
from sixnd.formats.codec import round_exactly
from sixnd.formats.encoding import Float, Integer
from sixnd.formats.rounding import CHUNK

WITNESSES = {  # ml_dtypes' own name of each format
    "bfloat16": "bfloat16",
    "e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",
    "e4m3-ieee": "float8_e4m3",
    "e4m3-fnuz": "float8_e4m3fnuz",
    "e4m3b11-fnuz": "float8_e4m3b11fnuz",
    "e5m2-fnuz": "float8_e5m2fnuz",
    "e3m4": "float8_e3m4",
    "e3m2": "float6_e3m2fn",
    "e2m3": "float6_e2m3fn",
    "e2m1": "float4_e2m1fn",
    "e8m0": "float8_e8m0fnu",
}
FLOATS = ("tf32", "float16", *(name for name in WITNESSES if name != "e8m0"))
INTEGERS = ("int16", "int8", "uint8", "int4", "int2", "ternary", "binary", "int8-mx")
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4028235e38], np.float32)


def policies(name: str) -> list[str]:
    e = encoding_of(name)
    return ["saturate"] + ["infinity"] * e.has_infinity + ["nan"] * e.has_nan


CASES = [(name, overflow) for name in FLOATS for overflow in policies(name)]


@pytest.fixture(scope="module")
def patterns():
    """2^21 random words of 32 bits as float32: every exponent, NaNs of every kind."""
    words = np.random.default_rng(0).integers(0, 2**32, 2**21, dtype=np.uint64)
    return words.astype(np.uint32).view(np.float32)


@pytest.fixture(scope="module")
def halves():
    """Every float16."""
    return np.arange(2**16, dtype=np.uint16).view(np.float16)


def assert_exact(x, name: str, overflow: str) -> None:
    e = encoding_of(name)
    if not e.has_nan:
        x = x[~np.isnan(x)]
    found, expected = quantize(x, name, overflow=overflow), nearest(x, e, overflow)
    wrong = ~same(found, expected)
    assert not wrong.any(), (x[wrong][:5], found[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize(("name", "overflow"), CASES)
def test_every_float16(halves, name, overflow):
    assert_exact(halves, name, overflow)


@pytest.mark.parametrize(("name", "overflow"), CASES)
def test_random_patterns(patterns, name, overflow):
    assert_exact(patterns, name, overflow)


@pytest.mark.parametrize(("name", "overflow"), CASES)
def test_every_value_and_tie_and_their_neighbours(name, overflow):
    assert_exact(
        edges(encoding_of(name)) if name != "tf32" else around(np.exp2(np.arange(-149.0, 128))), name, overflow
    )
    assert_exact(SPECIAL, name, overflow)


@pytest.mark.parametrize(("name", "overflow"), CASES)
def test_the_array_oracle_is_the_slow_one(patterns, name, overflow):
    e = encoding_of(name)
    with np.errstate(over="ignore"):
        x = np.concatenate([patterns[:300], (e.largest * np.linspace(-1.2, 1.2, 99)).astype(np.float32), SPECIAL])
    expected = np.array([round_exactly(float(v), e, overflow) for v in x]).astype(np.float32)
    assert same(nearest(x, e, overflow), expected).all()


@pytest.mark.parametrize("name", WITNESSES)
def test_ml_dtypes_agrees(patterns, halves, name):
    """But for NaN in formats without: ml_dtypes makes it -0 and says nothing."""
    e = encoding_of(name)
    overflow = policies(name)[1] if e.has_nan else "saturate"
    with np.errstate(invalid="ignore"):
        double = patterns[: 2**17].astype(np.float64) * (1 + 2.0**-40)
    for x in (patterns[: 2**19], halves, double):
        values = x if e.has_nan else x[~np.isnan(x)]
        with np.errstate(all="ignore"):
            expected = values.astype(getattr(ml_dtypes, WITNESSES[name])).astype(np.float32)
        assert same(quantize(values, name, overflow=overflow), expected).all()


@pytest.mark.parametrize("name", ["e5m2", "e4m3", "e3m2", "e2m3", "e2m1"])
@pytest.mark.parametrize("saturate", [False, True])
def test_gfloat_agrees(patterns, name, saturate):
    gfloat = pytest.importorskip("gfloat")
    from gfloat import formats as known

    info = {
        "e5m2": known.format_info_ocp_e5m2,
        "e4m3": known.format_info_ocp_e4m3,
        "e3m2": known.format_info_ocp_e3m2,
        "e2m3": known.format_info_ocp_e2m3,
        "e2m1": known.format_info_ocp_e2m1,
    }[name]
    e = encoding_of(name)
    if not saturate and not e.has_nan:
        pytest.skip("the format always saturates")
    x = np.concatenate([patterns[: 2**16], edges(e)])
    x = x if e.has_nan else x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        expected = gfloat.round_ndarray(info, x.astype(np.float64), sat=saturate).astype(np.float32)
    overflow = "saturate" if saturate else policies(name)[1]
    assert same(quantize(x, name, overflow=overflow), expected).all()


def test_numpy_agrees_on_float16(patterns, halves):
    with np.errstate(all="ignore"):
        expected = patterns.astype(np.float16).astype(np.float32)
    assert same(quantize(patterns, "float16", overflow="infinity"), expected).all()
    assert same(quantize(halves, "float16", overflow="infinity"), halves.astype(np.float32)).all()


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(patterns, name):
    e = encoding_of(name)
    assert isinstance(e, Integer)
    grid = np.arange(-600, 600) * e.step / 2
    x = np.concatenate([around(grid), patterns[:2000]])
    x = x[~np.isnan(x)]
    expected = np.array([round_exactly(float(v), e) for v in x]).astype(np.float32)
    assert same(quantize(x, name), expected).all()


def test_scales(patterns):
    e = encoding_of("e8m0")
    x = np.concatenate([patterns[:20000], around(np.exp2(np.arange(-149.0, 128)) * 1.5), SPECIAL])
    for overflow in ("saturate", "nan"):
        expected = np.array([round_exactly(float(v), e, overflow) for v in x]).astype(np.float32)
        assert same(quantize(x, "e8m0", overflow=overflow), expected).all()


@pytest.mark.parametrize("name", ["float32", "tf32", "bfloat16", "float16", "e4m3", "e2m1"])
def test_float64_is_rounded_once(name):
    """Just above a tie, by less than float32 can see: by way of float32 it would come out too low."""
    e = encoding_of(name)
    tie = 1 + e.epsilon / 2
    x = np.array([tie, tie * (1 + 2.0**-50), tie * (1 - 2.0**-50), -tie * (1 + 2.0**-50)])
    expected = [1.0, 1 + e.epsilon, 1.0, -1 - e.epsilon]
    assert quantize(x, name).tolist() == expected
    assert [round_exactly(float(v), e) for v in x] == expected


def test_what_the_format_holds_is_kept(patterns):
    finite = patterns[np.isfinite(patterns)]
    assert (quantize(finite, "float32") == finite).all()
    wide = np.array([1e300, 1 + 2.0**-52])
    assert quantize(wide, "float64").tolist() == wide.tolist()
    assert quantize(wide, "float64").dtype == np.float64
    assert quantize(wide, "float32", overflow="infinity").tolist() == [np.inf, 1.0]


# ---------------------------------------------------------------------------------------- stochastic rounding


@pytest.mark.parametrize("name", ["float16", "bfloat16", "e4m3", "e5m2", "e2m1", "e4m3-fnuz", "int8", "int4"])
@pytest.mark.parametrize("x", [0.3, -0.3, 1.2, -5.1, 3e-5])
def test_stochastic_rounding_is_unbiased_between_two_neighbours(name, x):
    e = encoding_of(name)
    n = 200_000
    found = quantize(np.full(n, x, np.float32), name, rounding="stochastic", seed=7)
    step = e.step if isinstance(e, Integer) else _step(x, e)
    low = np.floor(np.float32(x) / step) * step
    assert set(np.abs(np.unique(found))) <= {abs(low), abs(low + step)}
    share = (np.float64(np.float32(x)) - low) / step
    error = abs(found.mean(dtype=np.float64) - float(np.float32(x)))
    assert error <= 5 * step * np.sqrt(share * (1 - share) / n) + 1e-12


def _step(x: float, e: Float) -> float:
    exponent = max(int(np.floor(np.log2(abs(x)))), e.least_exponent)
    return 2.0 ** (exponent - e.mantissa_bits)


def test_the_seed_is_the_randomness():
    x = np.random.default_rng(1).standard_normal(3 * CHUNK + 5).astype(np.float32)
    first, again = (quantize(x, "e4m3", rounding="stochastic", seed=3) for _ in range(2))
    other = quantize(x, "e4m3", rounding="stochastic", seed=4)
    assert (first == again).all()
    assert (first != other).any()


def test_stochastic_rounding_keeps_what_is_exact_and_what_is_special():
    values = np.array([0.0, -0.0, 1.0, -448.0, np.inf, np.nan, 1e9], np.float32)
    found = quantize(values, "e4m3", rounding="stochastic", seed=0)
    assert same(found, np.array([0.0, -0.0, 1.0, -448.0, 448.0, np.nan, 448.0], np.float32)).all()
    beyond = quantize(values, "e5m2", rounding="stochastic", seed=0, overflow="infinity")
    assert same(beyond[3:], np.array([-448.0, np.inf, np.nan, np.inf], np.float32)).all()
