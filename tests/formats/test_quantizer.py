"""Does the door take every array that it should, refuse the rest in a sentence, and keep its promises on memory?"""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rounding_oracle import same

from sixnd.errors import SixndError, UsageError
from sixnd.formats import format_names, get_format, quantize
from sixnd.formats.rounding import CHUNK

NAMES = tuple(name for name in format_names() if get_format(name).encoding)
SCALED = (
    "mxfp4",
    "mxfp8-rceil",
    "nvfp4",
    "nvfp4-2d",
    "nvfp4-torchao",
    "e4m3-tensor",
    "int8-channel",
    "ternary-channel",
)


@pytest.mark.parametrize("name", ["e4m3", "bfloat16", "int8", *SCALED])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 50), (2, 1, CHUNK + 9), (CHUNK // 8 + 3, 17)])
def test_shape_is_kept_and_the_input_is_not_touched(name, shape):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape), np.float32)
    before = x.copy()
    found = quantize(x, name)
    assert found.shape == shape
    assert found.dtype == np.float32
    assert (x == before).all()
    assert np.shares_memory(found, x) is False


@pytest.mark.parametrize("name", ["e4m3", "e4m3-fnuz", "bfloat16", "mxfp4", "nvfp4", "int8-channel"])
def test_rows_are_rounded_as_they_would_be_alone(name):
    """In pieces, padded and not: a row of any width gives what it gives by itself."""
    random = np.random.default_rng(1)
    for width in (31, 32, 33, 4096, CHUNK + 40):
        x = random.standard_normal((5, width)).astype(np.float32)
        x[:, 0] = 6.0  # the scale of the tensor is the same for every row
        assert all(same(whole, quantize(row, name)).all() for whole, row in zip(quantize(x, name), x, strict=True))


@pytest.mark.parametrize("name", ["e4m3", "mxfp4", "nvfp4", "nvfp4-2d", "int8-channel"])
def test_strides_and_axes(name):
    x = np.random.default_rng(2).standard_normal((64, 96)).astype(np.float32)
    expected = quantize(x, name)
    assert same(quantize(np.asfortranarray(x), name), expected).all()
    assert same(quantize(np.repeat(x, 2, axis=1)[:, ::2], name), expected).all()
    assert same(np.ascontiguousarray(quantize(x.T, name, axis=0).T), expected).all()
    assert same(np.ascontiguousarray(quantize(x.T, name, axis=-2).T), expected).all()


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64, ml_dtypes.bfloat16]
)
def test_every_real_dtype(dtype):
    x = np.array([0, 1, 2, 3, 100, 127]).astype(dtype)
    assert quantize(x, "e4m3").tolist() == [0, 1, 2, 3, 96, 128]


def test_big_endian():
    assert quantize(np.array([0.3, -5.1], ">f4"), "e4m3").tolist() == [0.3125, -5.0]
    assert quantize(np.array([0.3, -5.1], ">f8"), "e4m3").tolist() == [0.3125, -5.0]
    assert quantize(np.array([0.3, -5.1], ">f2"), "mxfp4").tolist() == [0.5, -6.0]


REFUSED = [
    ([1.0], "e4m33", {}, "'e4m33' is not known.*did you mean 'e4m3'"),
    ([1.0], "int64", {}, "nothing is rounded to it"),
    ([], "e4m3", {}, "no values"),
    (np.empty((3, 0)), "mxfp4", {}, r"shape \(3, 0\) has no values"),
    (np.array([1, "a"], object), "e4m3", {}, "no real numbers"),
    (["a"], "e4m3", {}, "no real numbers"),
    ([1j], "e4m3", {}, "no real numbers"),
    ([True], "e4m3", {}, "no real numbers"),
    ([[1.0], [1.0, 2.0]], "e4m3", {}, "no array"),
    (np.array([1.0], np.longdouble), "e4m3", {}, "wider than float64"),
    (np.zeros(1, [("a", "f4")]), "e4m3", {}, "no real numbers"),
    ([np.nan], "e2m1", {}, "no code for NaN; nan='zero'"),
    ([np.nan], "int8", {}, "no code for NaN"),
    ([np.nan], "binary", {}, "no code for NaN"),
    ([1.0, np.nan], "mxfp8", {}, "take its whole block"),
    ([1.0, np.nan], "nvfp4", {}, "take its whole block"),
    ([1.0, np.nan], "int8-tensor", {}, "take its whole block"),
    ([1.0, np.nan], "int8-channel", {}, "take its whole block"),
    ([1.0], "e4m3", {"overflow": "infinity"}, "has no infinity: overflow must be 'saturate' or 'nan'"),
    ([1.0], "e2m1", {"overflow": "nan"}, "has no NaN"),
    ([1.0], "int8", {"overflow": "infinity"}, "has no infinity: overflow must be 'saturate'$"),
    ([1.0], "mxfp8", {"overflow": "nan"}, "saturates"),
    ([1.0], "e4m3", {"overflow": "saturated"}, "did you mean 'saturate'"),
    ([1.0], "e4m3", {"rounding": "up"}, "rounding 'up' is not known"),
    ([1.0], "e4m3", {"nan": "keep"}, "nan 'keep' is not known"),
    ([1.0], "e4m3", {"axis": 1}, "axis 1"),
    ([1.0], "e4m3", {"rounding": "stochastic", "seed": -1}, "seed"),
]


@pytest.mark.parametrize(("values", "name", "options", "message"), REFUSED)
def test_refused_in_one_sentence(values, name, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        quantize(values, name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["e2m1", "e3m2", "int8", "binary", "mxfp4", "nvfp4", "nvfp4-2d", "int8-tensor", "e4m3-channel"]
)
def test_nan_becomes_zero_where_it_is_asked_for(name):
    x = np.random.default_rng(4).standard_normal((20, 40)).astype(np.float32)
    with_nan, with_zero = x.copy(), x.copy()
    with_nan[3, 5], with_zero[3, 5] = np.nan, 0.0
    assert same(quantize(with_nan, name, nan="zero"), quantize(with_zero, name)).all()
    assert np.isnan(with_nan[3, 5])


def test_nan_stays_where_it_has_a_code():
    for name in ("e4m3", "e5m2", "float16", "bfloat16", "tf32", "e4m3-fnuz", "float32"):
        assert np.isnan(quantize([1.0, np.nan], name)).tolist() == [False, True]


@given(
    arrays.arrays(np.float32, arrays.array_shapes(max_dims=3, max_side=40), elements=st.floats(width=32)),
    st.sampled_from(NAMES + SCALED),
    st.sampled_from(["nearest", "stochastic"]),
)
def test_any_array_gives_values_of_the_format_or_a_sentence(x, name, rounding):
    try:
        found = quantize(x, name, rounding=rounding, seed=0, nan="zero")
    except SixndError:
        pytest.fail("nothing here should be refused")
    assert found.shape == x.shape
    finite = np.isfinite(x)
    if name != "e8m0":  # whose values are positive
        assert np.isfinite(found[finite]).all()
        assert (np.abs(found[x == 0]) <= (np.inf if "binary" in name else 0)).all()
    if rounding == "nearest" and not get_format(name).scaling and name != "float64":
        assert same(quantize(found, name), found).all()


@pytest.mark.parametrize("name", ["e4m3", "e2m1", "bfloat16", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_memory_is_the_output_and_a_few_mib(name, dtype):
    x = np.ones((1000, 8000), dtype)
    quantize(x[:1], name)
    tracemalloc.start()
    quantize(x, name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 4 * x.size + 8 * 2**20
