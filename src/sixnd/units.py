"""How is an amount read from text, and how is it printed?

Everything that turns text into FLOPs, bytes, seconds or a number of devices, and back, is here and nowhere else.

    count            "70B"            decimal suffixes; B (or G) is 10^9, because people write 70B parameters
    bytes            "80GB" "80GiB"   kB, MB, GB... are powers of 1000 (SI); KiB, MiB, GiB... of 1024 (IEC 80000-13)
    FLOP/s           "989.5TFLOP/s"   a rate; "TFLOPS" is refused, since it is read both as a rate and as an amount
    bytes per s      "3.35TB/s"
    seconds          "7d"             a plain number is seconds
    fraction         "50%"
    devices          "1024xh100"

Reading is exact: text goes through fractions, so "0.1B" is 100_000_000 and not a float near it, and a float is read
as the shortest decimal that prints it. Printing rounds half to even on the exact value, and moves to the next unit
only when the rounded number reaches it. What cannot be read is a `UnitError`; text is looked at only up to
`LONGEST_TEXT` characters, and amounts only up to `LARGEST`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Integral

from sixnd.errors import UnitError

Amount = str | int | float
Number = int | float | Fraction
Sizes = Mapping[str, int | Fraction]

LONGEST_TEXT = 100
LARGEST = 10**75
MOST_DEVICES = 10**9

_NUMBER = re.compile(r"([+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(\D.*)?", re.ASCII | re.DOTALL)
_DEVICES = re.compile(r"(?:(\d+)\s*[xX×]\s*)?([A-Za-z][A-Za-z0-9 ._+-]*)", re.ASCII)

_SI: Sizes = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_COUNT: Sizes = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "P": 10**15}
_FLOP: Sizes = {prefix + "FLOP": size for prefix, size in _SI.items() if prefix != "E"}
_FLOP_PER_SECOND: Sizes = {prefix + "FLOP/s": size for prefix, size in _SI.items()}
_BYTES_SI: Sizes = {prefix + "B": size for prefix, size in _SI.items()}
_BYTES_IEC: Sizes = {"B": 1} | {prefix + "iB": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_BYTES: Sizes = {**_BYTES_SI, **_BYTES_IEC}
_BYTES_PER_SECOND: Sizes = {unit + "/s": size for unit, size in _BYTES_SI.items()}
_NS = Fraction(1, 10**9)
_SECONDS: Sizes = {"ns": _NS, "us": 10**3 * _NS, "ms": 10**6 * _NS, "s": 1, "min": 60, "h": 3600, "days": 86400}
_SECONDS_ALSO = {"us": "µs μs", "s": "sec second seconds", "min": "minute minutes", "h": "hr hour hours"}
_DAYS_ALSO = {"d": 1, "day": 1, "w": 7, "week": 7, "weeks": 7}


@dataclass(frozen=True)
class Devices:
    """So many of one machine, as in "1024xh100"; the machine's name is in lower case."""

    count: int
    machine: str


# --------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Quantity:
    """What can be read as one kind of amount: unit texts with their sizes, and how to say what is allowed."""

    what: str
    allowed: str
    sizes: Sizes
    hints: tuple[tuple[str, str], ...] = ()


_COUNT_QUANTITY = _Quantity(
    "count",
    "a number with an optional k, M, B (or G), T or P (powers of 1000), such as '70B', '1.5T' or '7e10'",
    {"G": 10**9, "g": 10**9} | dict(_COUNT) | {suffix.swapcase(): size for suffix, size in _COUNT.items()},
)
_BYTES_QUANTITY = _Quantity(
    "bytes",
    "a number of bytes with an optional kB, MB, GB, TB, PB, EB (powers of 1000) or KiB, MiB, GiB, TiB, PiB, EiB "
    "(powers of 1024), such as '80GB', '80GiB' or '512'",
    {"": 1, "KB": 10**3, **_BYTES},
    (("([kmgtpe])i?b?", "write {si}B (powers of 1000) or {iec}iB (powers of 1024)"),),
)
_FLOP_PER_SECOND_QUANTITY = _Quantity(
    "FLOP/s",
    "a number of FLOP per second with an optional kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s or EFLOP/s, such as "
    "'989.5TFLOP/s' or '989.5e12'",
    {"": 1, **_FLOP_PER_SECOND},
    (("([kmgtpe]?)(flops?)?(/s|/sec|ps)?", "write {si}FLOP/s"),),
)
_BYTES_PER_SECOND_QUANTITY = _Quantity(
    "bytes per second",
    "a number of bytes per second with an optional kB/s, MB/s, GB/s, TB/s, PB/s (or KiB/s, MiB/s, ...), such as "
    "'3.35TB/s' or '900GB/s'",
    {"": 1, "KB/s": 10**3} | {unit + "/s": size for unit, size in _BYTES.items()},
    (
        ("([kmgtpe]?)(?-i:b|bit|bits)(/s|ps)", "bits are not read: divide by 8 and write {si}B/s"),
        ("([kmgtpe]?)i?b?(/s|ps)?", "write {si}B/s"),
    ),
)
_SECONDS_QUANTITY = _Quantity(
    "duration",
    "a number of seconds, or one with ns, us, ms, s, min, h, d or w, such as '90s', '15min', '2h' or '7d'",
    {"": 1, **_SECONDS}
    | {name: _SECONDS[unit] for unit, names in _SECONDS_ALSO.items() for name in names.split()}
    | {name: days * _SECONDS["days"] for name, days in _DAYS_ALSO.items()},
    (("m", "minutes are written 'min' and milliseconds 'ms'"),),
)
_FRACTION_QUANTITY = _Quantity(
    "fraction",
    "a number above 0 and at most 1, or a percentage, such as '0.5' or '50%'",
    {"": 1, "%": Fraction(1, 100)},
)


def parse_count(text: Amount, *, minimum: int = 0, what: str = "count") -> int:
    """The exact whole number that a text such as "70B" or "7e10" names; suffixes are powers of 1000.

    Args:
        text: digits, optionally with a fraction, an exponent and one of k, M, B (or G), T, P; or a number.
        minimum: the least value that is allowed.
        what: the noun for the message ("number of tokens").

    Raises:
        UnitError: the text is no number, not whole, below `minimum` or above `LARGEST`.

    >>> parse_count("70B"), parse_count("0.1B"), parse_count("1_000")
    (70000000000, 100000000, 1000)
    """
    value = _read(text, _COUNT_QUANTITY, what)
    if value.denominator != 1:
        raise _refusal(text, _COUNT_QUANTITY, what, "is not a whole number")
    if value < minimum:
        raise _refusal(text, _COUNT_QUANTITY, what, f"is below {minimum}")
    return int(value)


def parse_bytes(text: Amount) -> int:
    """The number of bytes that a text names: "80GB" is 80·10^9, "80GiB" is 80·2^30, "512" and "512B" are 512.

    With a prefix, a part of a byte is rounded to the nearest one ("79.65GiB"); without, it is an error.

    Raises:
        UnitError: no amount of bytes; a bare "80G", which could be either; a negative amount.

    >>> parse_bytes("80GB"), parse_bytes("80GiB"), parse_bytes("2.25 GiB")
    (80000000000, 85899345920, 2415919104)
    """
    value = _read(text, _BYTES_QUANTITY)
    if value < 0:
        raise _refusal(text, _BYTES_QUANTITY, problem="is negative")
    prefixed = isinstance(text, str) and re.search(r"[A-Za-z]B\s*\Z", text) is not None
    if value.denominator != 1 and not prefixed:
        raise _refusal(text, _BYTES_QUANTITY, problem="is not a whole number of bytes")
    return round(value)


def parse_flop_per_second(text: Amount) -> float:
    """The rate in FLOP/s that a text such as "989.5TFLOP/s" names; a plain number is FLOP/s.

    Raises:
        UnitError: no rate above zero; "TFLOPS", which some read as an amount.

    >>> parse_flop_per_second("1.98PFLOP/s")
    1980000000000000.0
    """
    return _positive(text, _FLOP_PER_SECOND_QUANTITY)


def parse_bytes_per_second(text: Amount) -> float:
    """The rate in bytes per second that a text such as "3.35TB/s" names; a plain number is bytes per second.

    Raises:
        UnitError: no rate above zero.

    >>> parse_bytes_per_second("900GB/s")
    900000000000.0
    """
    return _positive(text, _BYTES_PER_SECOND_QUANTITY)


def parse_seconds(text: Amount) -> float:
    """The seconds that a text such as "90s", "15min", "2h", "7d" or "1w" names; a plain number is seconds.

    Raises:
        UnitError: no duration above zero; "5m", which could be minutes or milliseconds.

    >>> parse_seconds("15min"), parse_seconds("7 days")
    (900.0, 604800.0)
    """
    return _positive(text, _SECONDS_QUANTITY)


def parse_fraction(text: Amount, what: str = "fraction") -> float:
    """The fraction in (0, 1] that a text such as "0.5" or "50%" names; `what` is the noun for the message.

    Raises:
        UnitError: no number, or one outside (0, 1].

    >>> parse_fraction("50%"), parse_fraction(1)
    (0.5, 1.0)
    """
    value = _read(text, _FRACTION_QUANTITY, what)
    if not 0 < value <= 1 or float(value) == 0:
        percent = f"; did you mean '{value}%'?" if 1 < value <= 100 and value.denominator == 1 else ""
        raise _refusal(text, _FRACTION_QUANTITY, what, "is outside (0, 1]", percent)
    return float(value)


def parse_devices(text: str) -> Devices:
    """The number and the name of the machines in a text such as "1024xh100", "8 x H100" or "h100" (one of it).

    Only leading digits with an x (or ×) are a number: "mi300x" and "tpu-v7x" are names.

    Raises:
        UnitError: no name that starts with a letter, or a number of machines below 1 or above `MOST_DEVICES`.

    >>> parse_devices("8xmi300x")
    Devices(count=8, machine='mi300x')
    """
    allowed = "expected a machine's name, optionally after a whole number and an x, such as '8xh100' or 'h100'"
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise UnitError(f"devices {_shown(text)} are not understood: {allowed}")
    match = _DEVICES.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"devices {_shown(text)} are not understood: {allowed}")
    count = int(match[1] or 1)
    if not 1 <= count <= MOST_DEVICES:
        raise UnitError(f"devices {_shown(text)}: the number of machines is outside 1 to {MOST_DEVICES}; {allowed}")
    return Devices(count, match[2].lower())


def _read(text: Amount, quantity: _Quantity, what: str = "") -> Fraction:
    """The exact value of a text (or number), in the quantity's base unit; at most `LARGEST` in size."""
    if isinstance(text, bool) or not isinstance(text, str | Integral | float):
        raise _refusal(text, quantity, what, "is not understood")
    value = _read_text(text, quantity, what) if isinstance(text, str) else _exactly(text)
    if value is None:
        raise _refusal(text, quantity, what, "is not a finite number")
    if abs(value) > LARGEST:
        raise _refusal(text, quantity, what, "is too large to be meant")
    return value


def _read_text(text: str, quantity: _Quantity, what: str) -> Fraction:
    """The value of a number and its unit, as in "80 GiB"."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST_TEXT else None
    if match is None:
        raise _refusal(text, quantity, what, "is not understood")
    unit = match[2] or ""
    if unit not in quantity.sizes:
        raise _refusal(text, quantity, what, "is not understood", _hint(unit, quantity))
    return Fraction(match[1]) * quantity.sizes[unit]


def _positive(text: Amount, quantity: _Quantity) -> float:
    """The value as a float above zero."""
    value = float(_read(text, quantity))
    if value <= 0:
        raise _refusal(text, quantity, problem="is not above zero")
    return value


def _hint(unit: str, quantity: _Quantity) -> str:
    """What to write instead of a unit that is known to be a slip; patterns ignore case, their group 1 is the prefix."""
    for pattern, advice in quantity.hints:
        match = re.fullmatch(pattern, unit, re.IGNORECASE | re.ASCII)
        if match is not None:
            prefix = match[1].upper() if match.groups() else ""
            return "; " + advice.format(si="k" if prefix == "K" else prefix, iec=prefix)
    return ""


def _refusal(text: object, quantity: _Quantity, what: str = "", problem: str = "", hint: str = "") -> UnitError:
    """The error for an amount: what was got, what is wrong with it, what is allowed."""
    return UnitError(f"{what or quantity.what} {_shown(text)} {problem}: expected {quantity.allowed}{hint}")


def _shown(value: object) -> str:
    """A value for a message: quoted, on one line, never long."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"of some 10^{_exponent(Fraction(abs(value)))}"
    shown = repr(value[:LONGEST_TEXT] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else shown[:56] + "..." + shown[0]


def _exactly(value: Number) -> Fraction | None:
    """A number as a fraction, a float as the shortest decimal that prints it; None for an infinity or NaN."""
    if isinstance(value, Integral | Fraction):
        return Fraction(value)
    number = float(value)
    return Fraction(repr(number)) if math.isfinite(number) else None


# ------------------------------------------------------------------------------------------ writing, exactly


def exact_count(n: int) -> str:
    """The text that `parse_count` reads back as exactly `n`: with a suffix where two decimals do, else plain digits.

    Raises:
        UnitError: `n` is negative or above `LARGEST`.

    >>> exact_count(70_600_000_000), exact_count(8_030_261_248)
    ('70.6B', '8030261248')
    """
    return _exact(n, _COUNT, 1000) or str(parse_count(n))


def exact_bytes(n: int) -> str:
    """The text that `parse_bytes` reads back as exactly `n`: with the largest suffix that is exact, else plain digits.

    Raises:
        UnitError: `n` is negative or above `LARGEST`.

    >>> exact_bytes(80 * 10**9), exact_bytes(80 * 2**30), exact_bytes(513)
    ('80GB', '80GiB', '513B')
    """
    return _exact(n, _BYTES, 1024) or f"{parse_bytes(n)}B"


def _exact(n: int, sizes: Sizes, step: int) -> str:
    """`n` in the largest unit that leaves at most two decimals and a number below `step`; empty where none does."""
    for size, unit in sorted(((size, unit) for unit, size in sizes.items()), reverse=True):
        hundredths = Fraction(100 * n) / size
        if hundredths.denominator == 1 and 100 <= hundredths < 100 * step:
            return _trimmed(_decimal(int(hundredths), 2)) + unit
    return ""


# ------------------------------------------------------------------------------------ writing, for the reader


def format_count(n: Number) -> str:
    """A count for the reader: whole numbers below 1000 plain, then three digits and a suffix, beyond 999P an exponent.

    >>> format_count(70_600_000_000), format_count(999), format_count(6.3e24)
    ('70.6B', '999', '6.30e24')
    """
    return _with_unit(n, _COUNT, separator="")


def format_flops(n: Number) -> str:
    """An amount of FLOPs for the reader, in three digits; from 10^18 on, with an exponent.

    >>> format_flops(448 * 10**9), format_flops(6.3e24)
    ('448 GFLOP', '6.30e24 FLOP')
    """
    return _with_unit(n, _FLOP)


def format_flop_per_second(x: Number) -> str:
    """A rate in FLOP/s for the reader, in at most four digits.

    >>> format_flop_per_second(989.5e12), format_flop_per_second(312e12)
    ('989.5 TFLOP/s', '312 TFLOP/s')
    """
    return _with_unit(x, _FLOP_PER_SECOND, digits=4, trim=True)


def format_bytes(n: Number) -> str:
    """An amount of memory for the reader, in B, KiB, MiB, GiB... (powers of 1024).

    >>> format_bytes(512), format_bytes(9 * 2**28), format_bytes(2**20 - 1)
    ('512 B', '2.25 GiB', '1.00 MiB')
    """
    return _with_unit(n, _BYTES_IEC, limit=1024)


def format_bytes_per_second(x: Number) -> str:
    """A bandwidth for the reader, in B/s, kB/s, MB/s, GB/s, TB/s... (powers of 1000).

    >>> format_bytes_per_second(3.35e12)
    '3.35 TB/s'
    """
    return _with_unit(x, _BYTES_PER_SECOND)


def format_seconds(x: Number) -> str:
    """A duration for the reader, in ns, us, ms, s, min, h or days; the days have up to four digits.

    >>> [format_seconds(x) for x in (1.25e-6, 0.0034, 12.3, 252, 27_000, 143.93 * 86400)]
    ['1.25 us', '3.4 ms', '12.3 s', '4.2 min', '7.5 h', '143.9 days']
    """
    day = _SECONDS["days"]
    digits = 3 if -day < x < day else 4
    text = _with_unit(x, _SECONDS, digits=digits, trim=True, limit=10**7)
    return "1 day" if text == "1 days" else text


def format_percent(x: Number) -> str:
    """A fraction for the reader, as a percentage with one decimal.

    >>> format_percent(0.5)
    '50.0 %'
    """
    value = _exactly(x)
    if value is None:
        return f"{x} %"
    if abs(value) >= 10**6:
        return f"{_sign(value)}{_scientific(abs(value) * 100, 3)} %"
    tenths = round(value * 1000)
    return f"{_sign(tenths)}{_decimal(abs(tenths), 1)} %"


def format_intensity(x: Number) -> str:
    """An arithmetic intensity for the reader, in FLOP per byte moved.

    >>> format_intensity(295.4), format_intensity(0.25)
    ('295 FLOP/B', '0.25 FLOP/B')
    """
    return _with_unit(x, {"FLOP/B": 1}, trim=True, limit=10**9)


def _with_unit(
    x: Number, sizes: Sizes, *, digits: int = 3, trim: bool = False, limit: int = 1000, separator: str = " "
) -> str:
    """A number in the largest of the (ascending) units that leaves it at least 1, rounded to so many digits.

    Digits before the point are never rounded away. From `limit` of the last unit on, and below a thousandth of the
    first, an exponent takes over.
    """
    one = next(unit for unit, size in sizes.items() if size == 1)
    value = _exactly(x)
    if not value:
        return f"{0 if value == 0 else x}{separator}{one}"
    size, steps = abs(value), list(sizes.values())
    if size * 1000 < steps[0] or _rounded(size / steps[-1], digits)[0] >= limit:
        return f"{_sign(value)}{_scientific(size, digits)}{separator if one else ''}{one}"
    unit, number, decimals = _fitting(size, sizes, digits)
    text = _decimal(int(number * 10**decimals), decimals)
    text = _trimmed(text) if trim or (unit == one and value.denominator == 1) else text
    return f"{_sign(value)}{text}{separator if unit else ''}{unit}"


def _fitting(size: Fraction, sizes: Sizes, digits: int) -> tuple[str, Fraction, int]:
    """The first unit in which the rounded number does not yet reach the next unit; that number and its decimals."""
    for (unit, step), (_, following) in pairwise(sizes.items()):
        if size >= following:
            continue
        number, decimals = _rounded(size / step, digits)
        if number * step < following:
            return unit, number, decimals
    unit, step = list(sizes.items())[-1]
    return unit, *_rounded(size / step, digits)


def _rounded(value: Fraction, digits: int) -> tuple[Fraction, int]:
    """A positive value to so many digits, those before the point all kept; and how many decimals that leaves."""
    decimals = max(digits - 1 - _exponent(value), 0)
    number = round(value, decimals)
    if number and _exponent(number) > _exponent(value):
        decimals = max(decimals - 1, 0)
    return number, decimals


def _exponent(value: Fraction) -> int:
    """The power of ten of a positive value's first digit, without a logarithm of a huge or rounded number."""
    above, below = value.numerator, value.denominator
    power = math.floor((above.bit_length() - below.bit_length()) * math.log10(2)) - 1
    while above >= below * 10 ** (power + 1) if power >= -1 else above * 10 ** -(power + 1) >= below:
        power += 1
    return power


def _scientific(size: Fraction, digits: int) -> str:
    """A positive value as "6.30e24"."""
    power = _exponent(size)
    scaled = round(size * Fraction(10) ** (digits - 1 - power))
    if scaled == 10**digits:
        scaled, power = scaled // 10, power + 1
    return f"{_decimal(scaled, digits - 1)}e{power}"


def _decimal(scaled: int, decimals: int) -> str:
    """A whole number (>= 0) of 10^-decimals, written out."""
    whole, part = divmod(scaled, 10**decimals)
    return f"{whole}.{part:0{decimals}}" if decimals else str(whole)


def _trimmed(text: str) -> str:
    """The text of a number without closing zeros after its point."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _sign(value: Fraction | int) -> str:
    """A minus for what is below zero."""
    return "-" if value < 0 else ""
