"""Which numbers can the codes of a format mean?

There are two kinds. A *float* has a sign, exponent bits E and mantissa bits M; with bias b its codes mean

    E > 0   (1 + M / 2^m) · 2^(E - b)      normal
    E = 0   M / 2^m · 2^(1 - b)            subnormal, zero among them

except for the codes that its `specials` take away:

    ieee     the highest exponent is infinity (M = 0) or NaN
    fn       no infinity; only the highest code of each sign is NaN (OCP E4M3)
    finite   no infinity and no NaN (OCP FP6, FP4)
    fnuz     no infinity; the code of -0 is the only NaN, and there is no -0
    scale    no sign, no zero, no subnormals, no infinity; the highest code is NaN (OCP E8M0)

An *integer* format has the values low, low + step, ... high. Every value of every format here up to float64 is a
Python float exactly, so facts are floats, and none is typed: all are derived from these few fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, ldexp, log10, nextafter
from typing import Literal

Specials = Literal["ieee", "fn", "finite", "fnuz", "scale"]


@dataclass(frozen=True)
class Float:
    """A floating-point encoding: `exponent_bits`, `mantissa_bits`, `bias`, and which codes are special.

    >>> e4m3 = Float(4, 3, 7, "fn")
    >>> e4m3.largest, e4m3.smallest_normal, e4m3.smallest, e4m3.epsilon
    (448.0, 0.015625, 0.001953125, 0.125)
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials

    @property
    def signed(self) -> bool:
        """Whether there are negative values."""
        return self.specials != "scale"

    @property
    def bits(self) -> int:
        """Bits of information: sign, exponent, mantissa."""
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def has_infinity(self) -> bool:
        """Whether a code means infinity."""
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        """Whether a code means NaN."""
        return self.specials != "finite"

    @property
    def has_zero(self) -> bool:
        """Whether a code means zero."""
        return self.specials != "scale"

    @property
    def has_negative_zero(self) -> bool:
        """Whether zero keeps its sign."""
        return self.specials in ("ieee", "fn", "finite")

    @property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal value; subnormals have its spacing."""
        return -self.bias if self.specials == "scale" else 1 - self.bias

    @cached_property
    def largest_code(self) -> int:
        """The code of the largest finite value."""
        top = (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        taken = {"ieee": 1 << self.mantissa_bits, "fn": 1, "scale": 1, "finite": 0, "fnuz": 0}
        return top - taken[self.specials]

    @cached_property
    def largest(self) -> float:
        """The largest finite value."""
        return magnitude(self, self.largest_code)

    @property
    def lowest(self) -> float:
        """The lowest finite value."""
        return -self.largest if self.signed else self.smallest

    @property
    def smallest_normal(self) -> float:
        """The smallest value of full precision, 2^least_exponent."""
        return ldexp(1.0, self.least_exponent)

    @property
    def smallest(self) -> float:
        """The smallest value above zero."""
        return magnitude(self, 1 if self.has_zero else 0)

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next value."""
        return ldexp(1.0, -self.mantissa_bits)

    @property
    def overflow_threshold(self) -> float:
        """The tie between the largest value and the one that would follow it, were there one more code."""
        return float((Fraction(self.largest) + _after(self)) / 2) if self.bits < 64 else inf

    @property
    def tie_overflows(self) -> bool:
        """Whether the tie at the threshold leaves the format: the largest value's code is odd, so even is beyond."""
        return bool(self.largest_code & 1) or self.specials == "scale"

    @property
    def n_codes(self) -> int:
        """All codes."""
        return 1 << self.bits

    @property
    def n_infinity(self) -> int:
        """Codes that mean an infinity."""
        return 2 * self.has_infinity

    @property
    def n_nan(self) -> int:
        """Codes that mean NaN."""
        count = {"ieee": 2 * ((1 << self.mantissa_bits) - 1), "fn": 2, "finite": 0, "fnuz": 1, "scale": 1}
        return count[self.specials]

    @property
    def n_finite(self) -> int:
        """Codes that mean a finite value; +0 and -0 are two."""
        return self.n_codes - self.n_infinity - self.n_nan

    @property
    def decades(self) -> float:
        """Powers of ten from the smallest normal to the largest value."""
        return log10(self.largest) - log10(self.smallest_normal)

    @property
    def decades_with_subnormals(self) -> float:
        """Powers of ten from the smallest to the largest value."""
        return log10(self.largest) - log10(self.smallest)


@dataclass(frozen=True)
class Integer:
    """The values low, low + step, ... high.

    >>> Integer(-8, 7).n_codes, Integer(-1, 1, 2).n_codes
    (16, 2)
    """

    low: float
    high: float
    step: float = 1.0

    has_infinity = False
    has_nan = False
    has_negative_zero = False
    n_infinity = 0
    n_nan = 0

    @property
    def has_zero(self) -> bool:
        """Whether zero is one of the values."""
        return self.low <= 0 and (-self.low / self.step) % 1 == 0

    @property
    def largest(self) -> float:
        """The largest value."""
        return self.high

    @property
    def lowest(self) -> float:
        """The lowest value."""
        return self.low

    @property
    def smallest(self) -> float:
        """The smallest value above zero."""
        return self.step if self.has_zero else self.high

    @property
    def overflow_threshold(self) -> float:
        """The tie between the largest value and the one that would follow it."""
        return self.high + self.step / 2

    @property
    def tie_overflows(self) -> bool:
        """Whether the tie at the threshold leaves the format."""
        return bool(round(self.high / self.step) % 2)

    @property
    def n_codes(self) -> int:
        """All codes."""
        return round((self.high - self.low) / self.step) + 1

    @property
    def n_finite(self) -> int:
        """Codes that mean a finite value: all."""
        return self.n_codes

    @property
    def decades_with_subnormals(self) -> float:
        """Powers of ten from the smallest to the largest value."""
        return log10(self.largest) - log10(self.smallest)


Encoding = Float | Integer


def magnitude(encoding: Float, code: int) -> float:
    """The value of a code without its sign bit, read as a number: the highest exponent too.

    >>> magnitude(Float(2, 1, 1, "finite"), 7)
    6.0
    """
    exponent, mantissa = divmod(code, 1 << encoding.mantissa_bits)
    if encoding.specials == "scale":
        return ldexp(1.0, exponent - encoding.bias)
    if exponent == 0:
        return ldexp(mantissa, encoding.least_exponent - encoding.mantissa_bits)
    return ldexp((1 << encoding.mantissa_bits) + mantissa, exponent - encoding.bias - encoding.mantissa_bits)


def _after(encoding: Float) -> Fraction:
    """The value that would follow the largest."""
    step = Fraction(2) ** (
        encoding.largest_code // (1 << encoding.mantissa_bits) - encoding.bias - encoding.mantissa_bits
    )
    return Fraction(encoding.largest) + step


def first_overflow(encoding: Encoding) -> float:
    """The smallest float64 that rounds to nearest past the largest value.

    >>> first_overflow(Float(5, 10, 15, "ieee")), first_overflow(Float(4, 3, 7, "fn")) > 464
    (65520.0, True)
    """
    threshold = encoding.overflow_threshold
    return threshold if encoding.tie_overflows else nextafter(threshold, inf)
