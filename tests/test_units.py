"""Are amounts read and printed exactly, and refused in words?"""

import contextlib
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd import units
from sixnd.errors import UnitError
from sixnd.units import Devices

READ = [
    (units.parse_count, "70B", 70 * 10**9),
    (units.parse_count, "70b", 70 * 10**9),
    (units.parse_count, "70G", 70 * 10**9),
    (units.parse_count, "15T", 15 * 10**12),
    (units.parse_count, "4M", 4 * 10**6),
    (units.parse_count, "32k", 32_000),
    (units.parse_count, "32K", 32_000),
    (units.parse_count, "2P", 2 * 10**15),
    (units.parse_count, "7e10", 7 * 10**10),
    (units.parse_count, "1_000", 1000),
    (units.parse_count, "0.1B", 100_000_000),
    (units.parse_count, "1.5B", 1_500_000_000),
    (units.parse_count, " 70 B ", 70 * 10**9),
    (units.parse_count, "0", 0),
    (units.parse_count, 7e10, 7 * 10**10),
    (units.parse_count, 1e23, 10**23),
    (units.parse_count, 12, 12),
    (units.parse_bytes, "80GB", 80 * 10**9),
    (units.parse_bytes, "80GiB", 80 * 2**30),
    (units.parse_bytes, "80 GiB", 80 * 2**30),
    (units.parse_bytes, "1kB", 1000),
    (units.parse_bytes, "1KB", 1000),
    (units.parse_bytes, "1KiB", 1024),
    (units.parse_bytes, "1MB", 10**6),
    (units.parse_bytes, "1MiB", 2**20),
    (units.parse_bytes, "1TB", 10**12),
    (units.parse_bytes, "1TiB", 2**40),
    (units.parse_bytes, "1PB", 10**15),
    (units.parse_bytes, "512", 512),
    (units.parse_bytes, "512B", 512),
    (units.parse_bytes, "79.65GiB", round(Fraction("79.65") * 2**30)),
    (units.parse_flop_per_second, "989.5TFLOP/s", 989.5e12),
    (units.parse_flop_per_second, "989.5 TFLOP/s", 989.5e12),
    (units.parse_flop_per_second, "1.98PFLOP/s", 1.98e15),
    (units.parse_flop_per_second, "989.5e12", 989.5e12),
    (units.parse_flop_per_second, "1EFLOP/s", 1e18),
    (units.parse_flop_per_second, 1e12, 1e12),
    (units.parse_bytes_per_second, "3.35TB/s", 3.35e12),
    (units.parse_bytes_per_second, "900GB/s", 9e11),
    (units.parse_bytes_per_second, "1GiB/s", 2.0**30),
    (units.parse_bytes_per_second, "1e9", 1e9),
    (units.parse_seconds, "90s", 90.0),
    (units.parse_seconds, "15min", 900.0),
    (units.parse_seconds, "2h", 7200.0),
    (units.parse_seconds, "7d", 604800.0),
    (units.parse_seconds, "7 days", 604800.0),
    (units.parse_seconds, "1w", 604800.0),
    (units.parse_seconds, "60", 60.0),
    (units.parse_seconds, "1.25us", 1.25e-6),
    (units.parse_fraction, "0.5", 0.5),
    (units.parse_fraction, "50%", 0.5),
    (units.parse_fraction, "50 %", 0.5),
    (units.parse_fraction, 1, 1.0),
    (units.parse_devices, "1024xh100", Devices(1024, "h100")),
    (units.parse_devices, "8 x H100", Devices(8, "h100")),
    (units.parse_devices, "8×h100", Devices(8, "h100")),
    (units.parse_devices, "h100", Devices(1, "h100")),
    (units.parse_devices, "mi300x", Devices(1, "mi300x")),
    (units.parse_devices, "tpu-v7x", Devices(1, "tpu-v7x")),
    (units.parse_devices, "rtx4090", Devices(1, "rtx4090")),
    (units.parse_devices, "8xmi300x", Devices(8, "mi300x")),
    (units.parse_devices, "512xtpu-v5p", Devices(512, "tpu-v5p")),
    (units.parse_devices, "4xrtx4090", Devices(4, "rtx4090")),
]

PARSERS = [
    units.parse_count,
    units.parse_bytes,
    units.parse_flop_per_second,
    units.parse_bytes_per_second,
    units.parse_seconds,
    units.parse_fraction,
    units.parse_devices,
]

ABSURD = {
    "empty": "",
    "blank": "  \n",
    "unicode digits": "٣٤",
    "superscript": "²",
    "infinity": "-inf",
    "not finite": float("nan"),
    "float infinity": float("inf"),
    "huge exponent": "1e9999",
    "longer exponent": "1e999999999999",
    "many digits": "9" * 400,
    "a book": "9" * 10**6,
    "huge": 10**400,
    "too huge to print": -(10**5000),
    "nothing": None,
    "truth": True,
    "list": ["70B"],
    "negative": "-1",
    "comma": "1,000",
    "null byte": "1\x00",
    "two numbers": "1 2",
    "two signs": "--1",
    "unknown suffix": "70Q",
    "double underscore": "1__0",
}

REFUSED = [
    (units.parse_count, "1.5", "not a whole number"),
    (units.parse_count, "70Q", "such as '70B'"),
    (units.parse_count, "-3", "below 0"),
    (units.parse_bytes, "80G", "write GB (powers of 1000) or GiB (powers of 1024)"),
    (units.parse_bytes, "80gb", "write GB"),
    (units.parse_bytes, "80Gb", "write GB"),
    (units.parse_bytes, "80k", "write kB (powers of 1000) or KiB"),
    (units.parse_bytes, "1.5", "not a whole number of bytes"),
    (units.parse_bytes, "1.5B", "not a whole number of bytes"),
    (units.parse_bytes, "-3GB", "negative"),
    (units.parse_flop_per_second, "989TFLOPS", "write TFLOP/s"),
    (units.parse_flop_per_second, "989TFLOPs", "write TFLOP/s"),
    (units.parse_flop_per_second, "989T", "write TFLOP/s"),
    (units.parse_flop_per_second, "0", "not above zero"),
    (units.parse_flop_per_second, "1e-9999", "not above zero"),
    (units.parse_bytes_per_second, "3.35TB", "write TB/s"),
    (units.parse_bytes_per_second, "400Gbps", "divide by 8"),
    (units.parse_seconds, "5m", "'min'"),
    (units.parse_seconds, "0s", "not above zero"),
    (units.parse_fraction, "50", "did you mean '50%'"),
    (units.parse_fraction, "0", "outside (0, 1]"),
    (units.parse_fraction, "150%", "outside (0, 1]"),
    (units.parse_devices, "0xh100", "outside 1 to"),
    (units.parse_devices, "-1xh100", "'8xh100'"),
    (units.parse_devices, "1.5xh100", "'8xh100'"),
    (units.parse_devices, "8x", "'8xh100'"),
    (units.parse_devices, "8 h100", "'8xh100'"),
]

PRINTED = [
    (units.format_count, 0, "0"),
    (units.format_count, -0.0, "0"),
    (units.format_count, 999, "999"),
    (units.format_count, 999.5, "1.00k"),
    (units.format_count, 8192, "8.19k"),
    (units.format_count, 999_999, "1.00M"),
    (units.format_count, 70_600_000_000, "70.6B"),
    (units.format_count, -70.6e9, "-70.6B"),
    (units.format_count, 999.4e15, "999P"),
    (units.format_count, 999.6e15, "1.00e18"),
    (units.format_count, 6.3e24, "6.30e24"),
    (units.format_count, Fraction(1, 3), "0.333"),
    (units.format_count, 10**5000, "1.00e5000"),
    (units.format_count, float("inf"), "inf"),
    (units.format_count, float("nan"), "nan"),
    (units.format_flops, 0, "0 FLOP"),
    (units.format_flops, 448 * 10**9, "448 GFLOP"),
    (units.format_flops, 1.69e15, "1.69 PFLOP"),
    (units.format_flops, 6.3e24, "6.30e24 FLOP"),
    (units.format_flops, float("-inf"), "-inf FLOP"),
    (units.format_flop_per_second, 989.5e12, "989.5 TFLOP/s"),
    (units.format_flop_per_second, 1979e12, "1.979 PFLOP/s"),
    (units.format_flop_per_second, 999.96e12, "1 PFLOP/s"),
    (units.format_bytes, 0, "0 B"),
    (units.format_bytes, 512, "512 B"),
    (units.format_bytes, 1023, "1023 B"),
    (units.format_bytes, 2**20 - 1, "1.00 MiB"),
    (units.format_bytes, 1000 * 2**20, "1000 MiB"),
    (units.format_bytes, 128 * 2**20, "128 MiB"),
    (units.format_bytes, 9 * 2**28, "2.25 GiB"),
    (units.format_bytes, 2**70, "1.18e21 B"),
    (units.format_bytes, -(2**30), "-1.00 GiB"),
    (units.format_bytes_per_second, 3.35e12, "3.35 TB/s"),
    (units.format_bytes_per_second, 999.9e9, "1.00 TB/s"),
    (units.format_seconds, 0, "0 s"),
    (units.format_seconds, 1.25e-6, "1.25 us"),
    (units.format_seconds, 0.0034, "3.4 ms"),
    (units.format_seconds, 0.9999, "1 s"),
    (units.format_seconds, 12.3, "12.3 s"),
    (units.format_seconds, 59.97, "1 min"),
    (units.format_seconds, 252, "4.2 min"),
    (units.format_seconds, 27_000, "7.5 h"),
    (units.format_seconds, 86_399, "1 day"),
    (units.format_seconds, 143.93 * 86400, "143.9 days"),
    (units.format_seconds, float("inf"), "inf s"),
    (units.format_percent, 0.5, "50.0 %"),
    (units.format_percent, -0.0001, "0.0 %"),
    (units.format_percent, float("nan"), "nan %"),
    (units.format_intensity, 295.4, "295 FLOP/B"),
    (units.format_intensity, 0.25, "0.25 FLOP/B"),
]


def _row(case: tuple) -> str:
    """A test id for a row of a table: the function and what it is given."""
    return f"{case[0].__name__}-{repr(case[1])[:24]}" if not isinstance(case[1], int) else case[0].__name__


@pytest.mark.parametrize("case", READ, ids=_row)
def test_reads(case):
    parse, text, expected = case
    assert parse(text) == expected
    assert type(parse(text)) is type(expected)


@pytest.mark.parametrize("case", REFUSED, ids=_row)
def test_refuses_in_words(case):
    parse, text, words = case
    with pytest.raises(UnitError) as caught:
        parse(text)
    message = str(caught.value)
    assert repr(text) in message
    assert "such as" in message
    assert words in message


@pytest.mark.parametrize("text", ABSURD.values(), ids=ABSURD.keys())
@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
def test_refuses_the_absurd_at_once(parse, text):
    started = time.perf_counter()
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert time.perf_counter() - started < 1.0
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
def test_any_text_is_read_or_refused(parse, text):
    with contextlib.suppress(UnitError):
        parse(text)


def test_count_says_what_it_counts_and_its_minimum():
    with pytest.raises(UnitError, match="number of tokens '0' is below 1"):
        units.parse_count("0", minimum=1, what="number of tokens")
    assert units.parse_count("1", minimum=1) == 1


def test_fraction_says_what_it_is():
    with pytest.raises(UnitError, match="MFU '2'"):
        units.parse_fraction("2", what="MFU")


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: f"{case[0].__name__}-{case[2]}")
def test_prints(case):
    write, value, expected = case
    assert write(value) == expected


amounts = st.integers(0, units.LARGEST) | st.integers(0, 10**6) | st.integers(0, 999).map(lambda n: n * 10**9)


@given(amounts)
def test_exact_count_reads_back(n):
    assert units.parse_count(units.exact_count(n)) == n


@given(amounts | st.integers(0, 2**12).map(lambda n: n * 2**28))
def test_exact_bytes_reads_back(n):
    assert units.parse_bytes(units.exact_bytes(n)) == n


@pytest.mark.parametrize(
    ("n", "count", "size"),
    [(0, "0", "0B"), (8192, "8192", "8KiB"), (70_600_000_000, "70.6B", "70.6GB"), (3 * 2**29, "1610612736", "1.5GiB")],
)
def test_exact_text_is_short(n, count, size):
    assert (units.exact_count(n), units.exact_bytes(n)) == (count, size)


@pytest.mark.parametrize("write", [units.exact_count, units.exact_bytes])
@pytest.mark.parametrize("n", [-1, units.LARGEST + 1, 10**5000], ids=["negative", "large", "huge"])
def test_exact_text_of_what_cannot_be_read(write, n):
    with pytest.raises(UnitError):
        write(n)


@given(st.integers(1, 10**30))
def test_printed_count_is_within_half_a_digit(n):
    shown = units.parse_count(units.format_count(n))
    assert abs(shown - n) <= Fraction(n, 200)


@given(st.integers(0, 10**20))
def test_printed_bytes_read_back(n):
    assert abs(units.parse_bytes(units.format_bytes(n)) - n) <= Fraction(n, 200)


READABLE = [
    (units.format_flop_per_second, units.parse_flop_per_second),
    (units.format_bytes_per_second, units.parse_bytes_per_second),
    (units.format_seconds, units.parse_seconds),
]


@given(st.floats(1e-12, 1e30))
@pytest.mark.parametrize(("write", "parse"), READABLE, ids=["flop_per_second", "bytes_per_second", "seconds"])
def test_printed_rates_and_durations_read_back(write, parse, x):
    assert parse(write(x)) == pytest.approx(x, rel=0.0051)


WRITERS = [write for name, write in vars(units).items() if name.startswith("format_")]


@given(st.integers() | st.floats() | st.fractions())
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_any_number_prints_and_never_as_minus_zero(write, x):
    text = write(x)
    assert len(text) < 40
    number = text.split(" ")[0].rstrip("kMBTP")
    assert not (number.startswith("-") and float(number) == 0)


@given(st.integers(0, 2**70))
def test_bytes_never_print_a_full_next_unit(n):
    number, unit = units.format_bytes(n).split(" ")
    assert float(number) < 1024 or unit == "B"


@pytest.fixture(scope="module")
def registry():
    """The units of pint, an outside witness."""
    return pytest.importorskip("pint", reason="pint, the outside witness for units, is not installed").UnitRegistry()


@pytest.mark.parametrize("unit", ["B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "PiB"])
def test_bytes_agree_with_pint(registry, unit):
    assert units.parse_bytes("3" + unit) == round(registry(f"3 {unit}").to("B").magnitude)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "min", "h", "days", "weeks"])
def test_seconds_agree_with_pint(registry, unit):
    assert units.parse_seconds("3" + unit) == pytest.approx(registry(f"3 {unit}").to("s").magnitude)
