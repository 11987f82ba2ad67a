"""How do values that share a scale get it, and what is the scaled value?

MX (OCP Microscaling 1.0, section 6.3): the scale is a power of two, 2^E with E from -127 to 127, and follows from the
block's largest magnitude A and the element's largest value V = v · 2^k, 1 <= v < 2. Four rules are in use:

    floor   E = floor(log2 A) - k              the specification's; A saturates where its mantissa is beyond v
    ceil    E = ceil(log2 A) - k               nothing saturates, up to half of the range is unused
    rceil   E = ceil(log2(A / V))              the least scale under which A does not pass V (NVIDIA's cuBLAS)
    even    E = floor(log2 A') - k             A' is A rounded to the element's mantissa bits first

Exponents are read off the number and not computed: log2 in float32 is wrong one step below a power of two. Scales
below 2^-126 are float32 subnormals and exact.

NVFP4 (arXiv:2509.25149): a block's scale is an E4M3 number and the tensor has one float32 scale, so that the largest
block scale is E4M3's largest value. Each operation rounds to float32; the order is that of the reference named:

    nvfp4           g = (448 · 6) / A_tensor;  s = e4m3(A / 6 · g);  x -> x · (1 / (s · (1 / g)))     Transformer Engine
    nvfp4-torchao   t = A_tensor / (448 · 6);  s = e4m3(A / 6 / t), at least 2^-6;  x -> x · (1 / t / s)         torchao

absmax: a float32 scale A / V for a row or a tensor, and x / scale is rounded. Where the format's only values are 1, -1
and 0, that would flush nearly all; there the scale is the mean magnitude, as in XNOR-Net (arXiv:1603.05279) and BitNet
b1.58 (arXiv:2402.17764): absmean.

All of it is float32; float64 values are rounded to float32 on their way in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sixnd.formats.encoding import Encoding, Float
from sixnd.formats.record import Format, Rule, encoding_of
from sixnd.formats.rounding import CHUNK, Array, Rounder, power_of_two

FLOAT32_MAX = np.finfo(np.float32).max
MAGNITUDE = np.uint32(0x7FFFFFFF)
"""A float32 word without its sign."""
MANTISSA64 = (1 << 52) - 1
HIGH_SCALE = 2.0**100
"""From here on an element times its scale may pass float32's largest value."""
LEAST_SCALE, MOST_SCALE = -127, 127
TORCHAO_LEAST_SCALE = np.float32(2.0**-6)  # E4M3's smallest normal: no subnormal scales


@dataclass(frozen=True)
class Scales:
    """For each block, what a value is multiplied by before it is rounded, and after. Float32, one for each block."""

    encode: Array
    decode: Array


def largest_magnitudes(x: Array) -> Array:
    """The largest magnitude of each row of a float32 matrix whose width is a power of two.

    Magnitudes are compared as integers, which order alike; NaN comes out as NaN.
    """
    words = x.reshape(-1).view(np.uint32) & MAGNITUDE
    while words.size > x.shape[0]:
        words = np.maximum(words[0::2], words[1::2])
    return words.view(np.float32)


def mx_exponents(largest: Array, element: Encoding, rule: Rule) -> Array:
    """E for each block, from its largest magnitude (float32, finite); a block of zeros has the least.

    >>> mx_exponents(np.array([1000, 8, 7.9], np.float32), Float(2, 1, 1, "finite"), "floor").tolist()
    [7, 1, 0]
    """
    top = int(np.floor(np.log2(element.largest)))
    exact = largest.astype(np.float64)  # in which the subnormals of float32 are normal
    if rule == "rceil":
        exact, top = exact / element.largest, 0
    words = exact.view(np.int64)
    mantissa = words & MANTISSA64
    found = (words >> 52) - (1023 + top)
    if rule in ("ceil", "rceil"):
        found += mantissa > 0
    elif rule == "even":
        half = 1 << (51 - _mantissa_bits(element))
        found += mantissa + half > MANTISSA64
    clipped: Array = np.clip(found, LEAST_SCALE, MOST_SCALE)
    return clipped


def mx_scales(largest: Array, element: Encoding, rule: Rule) -> Scales:
    """The scales of MX blocks: 2^-E and 2^E, both exact in float32."""
    exponents = mx_exponents(np.minimum(largest, FLOAT32_MAX), element, rule)
    return Scales(power_of_two(-exponents).astype(np.float32), power_of_two(exponents).astype(np.float32))


def nvfp4_scales(largest: Array, tensor_largest: float, element: Encoding, rounder: Rounder) -> Scales:
    """The scales of NVFP4 blocks as Transformer Engine's reference computes them; `rounder` rounds to E4M3."""
    tensor = np.minimum(np.float32(tensor_largest), FLOAT32_MAX)
    reach = np.float32(rounder.encoding.largest * element.largest)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        global_encode = np.minimum(reach / tensor, FLOAT32_MAX)
        scale = np.minimum(largest, FLOAT32_MAX) / np.float32(element.largest)
        scale *= global_encode
        rounder(scale, scale)
        decode = scale * (np.float32(1) / global_encode)
        return Scales(np.minimum(np.float32(1) / decode, FLOAT32_MAX), decode)


def torchao_scales(largest: Array, tensor_largest: float, element: Encoding, rounder: Rounder) -> Scales:
    """The scales of NVFP4 blocks as torchao computes them."""
    reach = np.float32(rounder.encoding.largest * element.largest)
    tensor = np.minimum(np.float32(tensor_largest), FLOAT32_MAX) / reach
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scale = np.minimum(largest, FLOAT32_MAX) / np.float32(element.largest) / tensor
        np.clip(np.nan_to_num(scale), TORCHAO_LEAST_SCALE, np.float32(rounder.encoding.largest), out=scale)
        rounder(scale, scale)
        encode = np.float32(1) / tensor / scale if tensor else np.zeros_like(scale)
        return Scales(encode, tensor * scale)


def divisors(largest: Array, element: Encoding) -> Scales:
    """Scales that take these magnitudes to the format's largest value; values are divided by them."""
    scale = np.minimum(largest, FLOAT32_MAX) / np.float32(element.largest)
    return Scales(scale, scale)


def _mantissa_bits(element: Encoding) -> int:
    """Bits after the leading one; MXINT8's element has six after the point."""
    return element.mantissa_bits if isinstance(element, Float) else int(np.log2(1 / element.step))


class Blocks:
    """Rounds groups of values that share a scale. Holds scratch, and the tensor's largest magnitude once it is known.

    Args:
        format: a format with a scaling.
        random: the source of stochastic rounding; None rounds to nearest. Scales are always rounded to nearest.
    """

    def __init__(self, format: Format, random: np.random.Generator | None = None) -> None:
        assert format.scaling is not None
        assert format.encoding is not None
        self.rule: Rule = format.scaling.rule
        self.element = format.encoding
        self.rounder = Rounder(self.element, random=random, symmetric=True)
        self.scale_rounder = Rounder(encoding_of(format.scaling.scale))
        self.scaled = np.empty(CHUNK, np.float32)
        self.tensor_largest = 0.0

    def scales(self, largest: Array) -> Scales:
        """The scales of groups with these largest magnitudes."""
        if self.rule == "nvfp4":
            return nvfp4_scales(largest, self.tensor_largest, self.element, self.scale_rounder)
        if self.rule == "nvfp4-torchao":
            return torchao_scales(largest, self.tensor_largest, self.element, self.scale_rounder)
        if self.rule in ("absmax", "absmean"):
            return divisors(largest, self.element)
        return mx_scales(largest, self.element, self.rule)

    def round(self, x: Array, scales: Scales, out: Array) -> Array:
        """Write the rounded values of `x` (groups, values of each) to `out`; return scratch with the scaled values."""
        x, out, size = x.reshape(-1), out.reshape(-1), x.shape[1]
        scaled = self.scaled[: x.size]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if self.rule in ("absmax", "absmean"):
                np.divide(x, np.repeat(scales.encode, size), out=scaled)
                np.nan_to_num(scaled, copy=False)  # a group of zeros is 0 / 0
            else:
                np.multiply(x, np.repeat(scales.encode, size), out=scaled)
            self.rounder(scaled, out)
            np.multiply(out, np.repeat(scales.decode, size), out=out)
        if scales.decode.max() > HIGH_SCALE:
            np.clip(out, -FLOAT32_MAX, FLOAT32_MAX, out=out)
        return scaled
