"""What does one code mean, and to which value does one number round? Slow, exact, and the oracle of the fast code.

Nothing here knows about arrays or powers of two in registers: a number is a `Fraction`, the grid around it is counted
off, and the nearer end is taken, the even one on a tie.
"""

from __future__ import annotations

from fractions import Fraction
from math import copysign, floor, frexp, inf, isinf, isnan, nan
from typing import Literal

from sixnd.errors import UsageError
from sixnd.formats.encoding import Encoding, Float, Integer, first_overflow, magnitude

Overflow = Literal["saturate", "infinity", "nan"]


def decode(encoding: Encoding, code: int) -> float:
    """The value that a code means: a finite float, an infinity, or NaN. Codes are read as unsigned.

    >>> e2m1 = Float(2, 1, 1, "finite")
    >>> [decode(e2m1, code) for code in range(16)]
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    """
    if not 0 <= code < encoding.n_codes:
        raise UsageError(f"code {code} is not one of the {encoding.n_codes:,} codes")
    if isinstance(encoding, Integer):
        above = round((encoding.high - (0.0 if encoding.has_zero else encoding.low)) / encoding.step)
        return (
            code * encoding.step + (0.0 if encoding.has_zero else encoding.low)
            if code <= above
            else ((code - encoding.n_codes) * encoding.step)
        )
    negative, rest = divmod(code, 1 << (encoding.exponent_bits + encoding.mantissa_bits))
    if encoding.specials == "fnuz" and code == encoding.n_codes >> 1:
        return nan
    if rest > encoding.largest_code:
        return copysign(inf, -negative) if encoding.has_infinity and rest == encoding.largest_code + 1 else nan
    return -magnitude(encoding, rest) if negative else magnitude(encoding, rest)


def round_exactly(x: float, encoding: Encoding, overflow: Overflow = "saturate") -> float:
    """The value of the format nearest to `x`; of two equally near, the one whose code is even.

    Past the largest value `overflow` decides. NaN stays NaN, whether the format has one or not.

    >>> e4m3 = Float(4, 3, 7, "fn")
    >>> [round_exactly(x, e4m3) for x in (0.3, -1e-8, 1e9)]
    [0.3125, -0.0, 448.0]
    """
    if isnan(x):
        return nan
    if isinstance(encoding, Float) and encoding.specials == "scale":
        return _round_scale(x, encoding, overflow)
    if isinstance(encoding, Integer):
        return _round_integer(x, encoding)
    if abs(x) >= first_overflow(encoding):
        return _beyond(x, encoding, overflow)
    size = abs(Fraction(x))
    exponent = max(frexp(x)[1] - 1, encoding.least_exponent)
    step = Fraction(2) ** (exponent - encoding.mantissa_bits)
    nearest = float(min(_to_even(size / step) * step, Fraction(encoding.largest)))
    return copysign(nearest, x) if nearest or encoding.has_negative_zero else 0.0


def _beyond(x: float, encoding: Float, overflow: Overflow) -> float:
    if overflow == "saturate":
        return copysign(encoding.largest, x)
    return copysign(inf, x) if overflow == "infinity" else nan


def _round_integer(x: float, encoding: Integer) -> float:
    if isinf(x):
        return encoding.high if x > 0 else encoding.low
    if not encoding.has_zero:  # binary: the sign
        return encoding.low if x < 0 else encoding.high
    step = Fraction(encoding.step)
    return float(min(max(_to_even(Fraction(x) / step) * step, Fraction(encoding.low)), Fraction(encoding.high)))


def _round_scale(x: float, encoding: Float, overflow: Overflow) -> float:
    """Powers of two: of two equally near, the larger (as ml_dtypes and torch do); zero and below have no code."""
    if x <= 0:
        return nan
    if x >= first_overflow(encoding):
        return encoding.largest if overflow == "saturate" else nan
    mantissa, exponent = frexp(x)
    power = Fraction(2) ** (exponent if mantissa >= 0.75 else exponent - 1)
    return float(min(max(power, Fraction(encoding.smallest)), Fraction(encoding.largest)))


def _to_even(x: Fraction) -> int:
    whole = floor(x)
    rest = x - whole
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    return whole + up
