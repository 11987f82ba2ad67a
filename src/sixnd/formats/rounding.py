"""How is an array rounded to the values of a format, fast and exactly?

Hardware rounds every sum to nearest, ties to even. So to round y, whose exponent is e, to m mantissa bits, add and
subtract a constant whose last bit weighs what the last kept bit of y does (float32 has 23 mantissa bits):

    c = 1.5 · 2^(23 - m) · 2^max(e, least exponent)        y -> (y + c) - c

The 1.5 keeps the sum in one binade for either sign, and the maximum gives subnormals their fixed spacing. 2^e is y with
its mantissa bits cleared: one `and`, no logarithm, no branch. The largest value is set by clipping first; where values
past it shall become infinity or NaN they are clipped one step later, and what lands there has overflowed.

The sum must not overflow: least for bfloat16 and tf32, whose exponents reach as far as float32's. There the kept bits
are the upper bits of the word, so the word is rounded as an integer. Float64 input is rounded in float64 by the same
rule (52 mantissa bits), never by way of float32, which would round twice.

Stochastic rounding divides by the step, and goes up with a probability that is the fraction left over, from 24 random
bits (53 for float64 input).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sixnd.formats.codec import Overflow
from sixnd.formats.encoding import Encoding, Float, Integer

Rounding = Literal["nearest", "stochastic"]
Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 1 << 16
"""Values that are worked on at a time: with its scratch, a chunk stays in the cache of a core."""


class Rounder:
    """Rounds chunks of up to `CHUNK` values to one encoding; holds scratch and the random stream.

    Args:
        encoding: the values to round to.
        wide: whether chunks are float64 (else float32).
        overflow: what becomes of values past the largest.
        random: the source of stochastic rounding; None rounds to nearest.
        symmetric: whether an integer format leaves values below -largest unused.
    """

    def __init__(
        self,
        encoding: Encoding,
        wide: bool = False,
        overflow: Overflow = "saturate",
        random: np.random.Generator | None = None,
        symmetric: bool = False,
    ) -> None:
        self.encoding = encoding
        self.dtype = np.dtype(np.float64 if wide else np.float32)
        self.overflow = overflow
        self.random = random
        info = np.finfo(np.float64 if wide else np.float32)
        self.mantissa = int(info.nmant)
        self.word = np.dtype(np.uint64 if wide else np.uint32)
        self.exponents = self.word.type(((1 << int(info.nexp)) - 1) << self.mantissa)
        self.sign = self.word.type(1 << (8 * self.dtype.itemsize - 1))
        self.spare = np.empty(CHUNK, self.dtype)
        self.step = np.empty(CHUNK, self.dtype)
        self.uniform = np.empty(CHUNK if random else 0, self.dtype)
        largest, lowest = encoding.largest, encoding.lowest
        if symmetric and isinstance(encoding, Integer):
            lowest = max(lowest, -largest)
        if overflow != "saturate" and isinstance(encoding, Float):
            largest = 2 * encoding.overflow_threshold - largest  # one step later: what lands there has overflowed
            lowest = -largest
        with np.errstate(over="ignore"):
            self.largest, self.lowest = self.dtype.type(largest), self.dtype.type(lowest)

    def __call__(self, x: Array, out: Array) -> None:
        """Write the rounded values of `x` to `out`; both are one-dimensional, of the dtype, and may be the same."""
        encoding = self.encoding
        with np.errstate(
            over="ignore", under="ignore", invalid="ignore"
        ):  # signalling NaNs, and what is past the range
            if isinstance(encoding, Integer):
                self._integer(x, out, encoding)
            elif encoding.specials == "scale":
                self._scale(x, out, encoding)
            else:
                self._float(x, out, encoding)

    def _float(self, x: Array, out: Array, encoding: Float) -> None:
        if encoding.mantissa_bits >= self.mantissa:
            self._same(x, out)
        elif self.random is not None:
            self._stochastic(x, out, encoding)
        elif self.dtype == np.float32 and encoding.exponent_bits == 8:
            self._word(x, out, encoding)
        else:
            self._nearest(x, out, encoding)
        if self.overflow != "saturate":
            beyond = np.abs(out) > self.dtype.type(encoding.largest)
            np.copyto(out, np.copysign(np.inf, out) if self.overflow == "infinity" else np.nan, where=beyond)

    def _same(self, x: Array, out: Array) -> None:
        """The format holds all that the chunk's dtype does; infinities alone can be past its largest value."""
        if self.overflow == "saturate":
            np.clip(x, self.lowest, self.largest, out=out)
        else:
            np.copyto(out, x)

    def _nearest(self, x: Array, out: Array, encoding: Float) -> None:
        y, c = self.spare[: x.size], self.step[: x.size]
        np.clip(x, self.lowest, self.largest, out=y)
        self._powers(y, c, encoding)
        c *= self.dtype.type(1.5 * 2.0 ** (self.mantissa - encoding.mantissa_bits))
        y += c
        y -= c
        self._signed(y, x, out, encoding)

    def _powers(self, y: Array, c: Array, encoding: Float) -> None:
        """Write 2^max(exponent of y, least exponent) to `c`."""
        words = c.view(self.word)
        least = np.array(encoding.smallest_normal, self.dtype).view(self.word)
        np.bitwise_and(y.view(self.word), self.exponents, out=words)
        np.maximum(words, least, out=words)  # words of positive floats order as the floats do, and compare faster

    def _signed(self, y: Array, x: Array, out: Array, encoding: Float) -> None:
        """Give a value that became zero the sign that it had, where the format keeps it."""
        if encoding.has_negative_zero:
            signs = self.step[: x.size].view(self.word)
            np.bitwise_and(x.view(self.word), self.sign, out=signs)
            np.bitwise_or(y.view(self.word), signs, out=out.view(self.word))
        else:
            np.add(y, 0.0, out=out)  # -0 + 0 is 0

    def _word(self, x: Array, out: Array, encoding: Float) -> None:
        """The upper bits of a float32 word, rounded as an integer: add half less one, one more if odd, and cut off."""
        dropped = self.mantissa - encoding.mantissa_bits
        y, odd = self.spare[: x.size], self.step[: x.size].view(self.word)
        np.clip(x, self.lowest, self.largest, out=y)
        word = y.view(self.word)
        np.right_shift(word, dropped, out=odd)
        odd &= 1
        odd += (1 << (dropped - 1)) - 1
        missing = np.isnan(y)  # adding to a NaN's payload could carry into its sign
        word += odd
        word &= ~((1 << dropped) - 1) & 0xFFFFFFFF
        np.copyto(y, np.nan, where=missing)
        np.copyto(out, y)

    def _stochastic(self, x: Array, out: Array, encoding: Float) -> None:
        y, step = self.spare[: x.size], self.step[: x.size]
        np.clip(x, self.lowest, self.largest, out=y)
        self._powers(y, step, encoding)
        step *= self.dtype.type(2.0**-encoding.mantissa_bits)
        y /= step
        self._up_or_down(y)
        y *= step
        self._signed(y, x, out, encoding)

    def _up_or_down(self, y: Array) -> None:
        """Take each value to the whole number below or above it, the nearer one more often."""
        assert self.random is not None
        uniform = self.uniform[: y.size]
        self.random.random(out=uniform, dtype=np.float64 if self.dtype == np.float64 else np.float32)
        below = np.floor(y)
        y -= below
        np.add(below, uniform < y, out=y)

    def _integer(self, x: Array, out: Array, encoding: Integer) -> None:
        if not encoding.has_zero:  # binary: the sign
            np.copyto(out, np.where(np.isnan(x), np.nan, np.where(x < 0, self.lowest, self.largest)))
            return
        y, step = self.spare[: x.size], self.dtype.type(encoding.step)
        np.clip(x, self.lowest, self.largest, out=y)
        if self.random is None:
            c = self.dtype.type(1.5 * 2.0**self.mantissa) * step
            y += c
            np.subtract(y, c, out=out)
        else:
            y /= step
            self._up_or_down(y)
            np.multiply(y, step, out=out)

    def _scale(self, x: Array, out: Array, encoding: Float) -> None:
        """Powers of two: the nearer, the larger of two equally near. Zero and below have no code: NaN."""
        mantissa, exponent = np.frexp(x)
        finite = np.isfinite(x)
        power = np.where(finite, exponent - (mantissa < 0.75), 0)
        power = np.clip(power, encoding.least_exponent, int(np.log2(encoding.largest)) + 1)
        y = power_of_two(power).astype(self.dtype)
        y = np.where(np.isposinf(x), np.inf, y)
        if self.overflow == "saturate":
            y = np.minimum(y, self.dtype.type(encoding.largest))
        else:
            y = np.where(y > encoding.largest, np.nan, y)
        np.copyto(out, np.where(x > 0, y, np.nan))


def power_of_two(exponents: Array) -> Array:
    """2^E in float64, whose exponent field holds every E of float32 as a normal number."""
    return ((exponents.astype(np.int64) + 1023) << 52).view(np.float64)
