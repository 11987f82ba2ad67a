"""A second, slower way to every rounding: float64 that is exact for float32 inputs, and plain Python for blocks.

The scalar oracle is itself held against `codec.round_exactly`, which works in fractions.
"""

from __future__ import annotations

from itertools import pairwise
from math import floor, frexp

import numpy as np

from sixnd.formats.codec import decode, round_exactly
from sixnd.formats.encoding import Float

ONE = np.float32(1)
FLOAT32_MAX = np.finfo(np.float32).max


def nearest(x, encoding: Float, overflow: str):
    """Round float32 (or float16) values to nearest even, in float64, as float32."""
    with np.errstate(all="ignore"):
        x = np.asarray(x, np.float64)
        _, exponent = np.frexp(x)
        exponent = np.maximum(exponent - 1, encoding.least_exponent) - encoding.mantissa_bits
        y = np.ldexp(np.rint(np.ldexp(x, -exponent)), exponent)
        y = np.where(np.isfinite(x), y, x)
        beyond = {"saturate": encoding.largest, "infinity": np.inf, "nan": np.nan}[overflow]
        y = np.where(np.abs(y) > encoding.largest, np.copysign(beyond, x), y)
        y = np.copysign(y, x) if encoding.has_negative_zero else y + 0.0
        return y.astype(np.float32)


def same(a, b):
    """Whether float32 values are the same, bit for bit; one NaN is as good as another."""
    return (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))


def around(values):
    """Float32 values with the two float32 neighbours of each, of both signs."""
    with np.errstate(over="ignore"):
        values = np.asarray(values, np.float64).astype(np.float32)
    near = np.concatenate([values, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))])
    return np.concatenate([near, -near])


def edges(encoding: Float):
    """Every value of a small format, every tie between two, the tie to overflow, and their neighbours."""
    values = sorted({decode(encoding, code) for code in range(encoding.largest_code + 1)})
    ties = [(low + high) / 2 for low, high in pairwise(values)]
    return around([*values, *ties, encoding.overflow_threshold, 2 * encoding.overflow_threshold - encoding.largest])


def mx_block(block, element, rule: str) -> list[float]:
    """One MX block by the specification's words, in Python numbers."""
    largest = float(max(abs(float(x)) for x in block))
    if largest == 0:
        return [0.0 * float(x) for x in block]
    top = frexp(element.largest)[1] - 1
    mantissa, exponent = frexp(largest)
    if rule == "rceil":  # largest = m V 2^e for the least e with m <= 1
        mantissa, exponent = frexp(largest / element.largest)
        shared = exponent - (mantissa == 0.5)
    elif rule == "ceil":
        shared = exponent - (mantissa == 0.5) - top
    elif rule == "even":
        bits = element.mantissa_bits if isinstance(element, Float) else 6
        rounded = floor(mantissa * 2.0 ** (bits + 1) + 0.5)
        shared = exponent - 1 + (rounded == 2 ** (bits + 1)) - top
    else:
        shared = exponent - 1 - top
    scale = 2.0 ** min(max(shared, -127), 127)
    out = []
    for x in block:
        scaled = min(max(float(x) / scale, -element.largest), element.largest)
        out.append(min(max(round_exactly(scaled, element) * scale, -float(FLOAT32_MAX)), float(FLOAT32_MAX)))
    return out


def nvfp4_block(block, block_largest, tensor_largest, e2m1, e4m3, variant: str) -> list[float]:
    """One NVFP4 block, each operation rounded to float32, in the order of the reference named."""
    with np.errstate(all="ignore"):
        largest, tensor = np.float32(block_largest), np.float32(tensor_largest)
        if variant == "nvfp4":
            encode_all = min(np.float32(2688) / tensor, FLOAT32_MAX)
            scale = np.float32(round_exactly(float(largest / np.float32(6) * encode_all), e4m3))
            decode_scale = scale * (ONE / encode_all)
            encode = min(ONE / decode_scale, FLOAT32_MAX)
        else:
            decode_all = tensor / np.float32(2688)
            wanted = max(float(largest / np.float32(6) / decode_all), 2.0**-6)
            scale = np.float32(round_exactly(wanted, e4m3))
            encode, decode_scale = ONE / decode_all / scale, decode_all * scale
        return [float(np.float32(round_exactly(float(np.float32(x) * encode), e2m1)) * decode_scale) for x in block]
