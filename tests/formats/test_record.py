"""Are the stored bits of every format those of its specification, and are bytes counted exactly?"""

import tomllib
from fractions import Fraction
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd.errors import UsageError
from sixnd.formats import (
    Format,
    bits_per_value,
    encoding_of,
    format_names,
    get_format,
    storage_bytes,
    tensor_bits,
)

BITS = {
    "float64": 64,
    "float32": 32,
    "tf32": 32,
    "float16": 16,
    "bfloat16": 16,
    "e4m3": 8,
    "e4m3-ieee": 8,
    "e4m3-fnuz": 8,
    "e4m3b11-fnuz": 8,
    "e5m2": 8,
    "e5m2-fnuz": 8,
    "e3m4": 8,
    "e3m2": 6,
    "e2m3": 6,
    "e2m1": 4,
    "e8m0": 8,
    "int64": 64,
    "int32": 32,
    "int16": 16,
    "int8": 8,
    "uint8": 8,
    "bool": 8,
    "int4": 4,
    "int2": 2,
    "ternary": 2,
    "binary": 1,
    "int8-mx": 8,
    "mxfp8": Fraction(33, 4),
    "mxfp8-e5m2": Fraction(33, 4),
    "mxfp6-e2m3": Fraction(25, 4),
    "mxfp6-e3m2": Fraction(25, 4),
    "mxfp4": Fraction(17, 4),
    "mxint8": Fraction(33, 4),
    "nvfp4": Fraction(9, 2),
    "nvfp4-2d": Fraction(9, 2),
    "nvfp4-torchao": Fraction(9, 2),
}

ALIASES = {
    "fp64": "float64",
    "double": "float64",
    "fp32": "float32",
    "float": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "BF16": "bfloat16",
    "fp8": "e4m3",
    "fp4": "e2m1",
}

BYTES = [
    ("bfloat16", 0, 0),
    ("bfloat16", 3, 6),
    ("float64", 10**15, 8 * 10**15),
    ("binary", 1, 1),
    ("binary", 9, 2),
    ("e2m3", 1, 1),
    ("e2m3", 4, 3),
    ("int4", 3, 2),
    ("mxfp4", 0, 0),
    ("mxfp4", 1, 17),
    ("mxfp4", 32, 17),
    ("mxfp4", 33, 34),
    ("mxfp4", 40, 34),
    ("mxfp8", 64, 66),
    ("mxfp6-e3m2", 32, 25),
    ("nvfp4", 16, 9),
    ("nvfp4", 17, 18),
]

TENSOR_BITS = [
    ("bf16", (3,), 48),
    ("bf16", (), 16),
    ("mxfp4", (10, 40), 10 * 2 * (32 * 4 + 8)),
    ("mxfp4", (2, 5, 40), 10 * 2 * (32 * 4 + 8)),
    ("nvfp4", (10, 40), 10 * 3 * (16 * 4 + 8) + 32),
    ("nvfp4-2d", (10, 40), 10 * 3 * (16 * 4 + 8) + 32),
    ("int8-tensor", (10, 40), 400 * 8 + 32),
    ("int8-channel", (10, 40), 400 * 8 + 10 * 32),
]

formats = st.sampled_from([get_format(name) for name in BITS])


def test_the_catalogue_is_the_table():
    assert format_names() == tuple(BITS)


@pytest.mark.parametrize("name", BITS)
def test_bits_per_value(name):
    assert bits_per_value(get_format(name)) == BITS[name]
    assert type(bits_per_value(get_format(name))) is Fraction


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias):
    assert get_format(alias) is get_format(ALIASES[alias])


def test_every_entry_has_a_source_and_no_unknown_key():
    text = files("sixnd.formats").joinpath("catalogue.toml").read_text(encoding="utf-8")
    for name, entry in tomllib.loads(text).items():
        assert entry["source"], name
        scalar = {"bits", "float", "integer"}
        scaled = {"element", "block_size", "scale", "rule", "tile", "tensor_scale"}
        assert entry.keys() <= {"aliases", "source", "note"} | (scaled if "element" in entry else scalar), name


def test_no_alias_names_two_formats():
    text = files("sixnd.formats").joinpath("catalogue.toml").read_text(encoding="utf-8")
    names = [known for name, entry in tomllib.loads(text).items() for known in (name, *entry.get("aliases", ()))]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)


@pytest.mark.parametrize(("name", "n_values", "expected"), BYTES)
def test_storage_bytes(name, n_values, expected):
    assert storage_bytes(get_format(name), n_values) == expected


@given(formats, st.integers(0, 10**20))
def test_storage_is_the_least_whole_number_of_blocks_and_bytes(format, n_values):
    bits = bits_per_value(format) * format.block_size * -(-n_values // format.block_size)
    assert 0 <= storage_bytes(format, n_values) * 8 - bits < 8


@given(formats, st.integers(0, 10**9), st.integers(0, 10**9))
def test_whole_blocks_and_bytes_add(format, a, b):
    unit = 8 * format.block_size
    together = storage_bytes(format, (a + b) * unit)
    assert together == storage_bytes(format, a * unit) + storage_bytes(format, b * unit)


@pytest.mark.parametrize(("name", "hint"), [("float23", "float32"), ("bf-16", "bf16"), ("mxpf4", "mxfp4")])
def test_an_unknown_format_names_the_near_miss_and_the_known(name, hint):
    with pytest.raises(UsageError, match=f"{name!r} is not known: expected one of float64.*did you mean.*{hint}"):
        get_format(name)


def test_an_unknown_format_of_any_length_is_refused_shortly():
    with pytest.raises(UsageError) as caught:
        get_format("x" * 10**6)
    assert len(str(caught.value)) < 500


def test_a_scale_for_every_value_is_counted():
    assert storage_bytes(Format("odd", 8, 1, 8), 3) == 6


@pytest.mark.parametrize("sizes", [(0, 1, 0), (8, 0, 0), (8, 1, -1)], ids=["bits", "block", "scale"])
def test_sizes_that_no_format_has_are_refused(sizes):
    with pytest.raises(UsageError, match="'odd'"):
        Format("odd", *sizes)


@pytest.mark.parametrize(("name", "shape", "expected"), TENSOR_BITS)
def test_tensor_bits(name, shape, expected):
    assert tensor_bits(get_format(name), shape) == expected


@pytest.mark.parametrize("ending", ["floor", "ceil", "rceil", "even"])
@pytest.mark.parametrize("name", ["mxfp8", "mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp4", "mxint8"])
def test_an_ending_names_the_rule_of_the_scales(name, ending):
    plain, other = get_format(name), get_format(f"{name}-{ending}")
    assert other.scaling.rule == ending
    assert (other.bits, other.block_size, other.scale_bits) == (plain.bits, plain.block_size, plain.scale_bits)
    assert plain.scaling.rule == "floor"


@pytest.mark.parametrize(
    "name", ["nvfp4-floor", "e4m3-floor", "mxfp4-tensor", "int64-tensor", "e8m0-channel", "-tensor"]
)
def test_an_ending_that_means_nothing_is_refused(name):
    with pytest.raises(UsageError, match="is not known"):
        get_format(name)


def test_what_is_only_stored_is_not_rounded_to():
    with pytest.raises(UsageError, match=r"int64.* nothing is rounded to it"):
        encoding_of("int64")
