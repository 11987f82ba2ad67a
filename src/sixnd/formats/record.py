"""What does a number format store, what do its codes mean, and which formats are there?

A format stores `bits` for a value, and, where values share a scale, `scale_bits` for each block. Bytes are counted as
stored: a block that is only partly filled is stored whole, and the last byte is filled up. What a tensor keeps once
(the float32 scale of an nvfp4 tensor) is in `tensor_bits` and in no count that does not know of tensors.

The formats themselves are data: `catalogue.toml`, each with its source. Three endings of a name make more of them:

    mxfp4-floor, -ceil, -rceil, -even    another rule for the scales of an MX format
    int8-tensor                          one float32 scale for the tensor
    int8-channel                         one for each row (output channel)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Literal, cast

from sixnd.errors import UsageError, near_miss
from sixnd.formats.encoding import Encoding, Float, Integer

Over = Literal["block", "tile", "channel", "tensor"]
Rule = Literal["floor", "ceil", "rceil", "even", "nvfp4", "nvfp4-torchao", "absmax", "absmean"]
MX_RULES = ("floor", "ceil", "rceil", "even")
FLOAT32_BITS = 32


@dataclass(frozen=True)
class Scaling:
    """What shares a scale, the rule by which it follows from the largest magnitude, and the scale's own format."""

    over: Over
    rule: Rule
    scale: str


@dataclass(frozen=True)
class Format:
    """A number format: `bits` a value, `scale_bits` for each block of `block_size` values, and what the codes mean.

    `encoding` is that of one stored value, of the element where values are scaled; None where it is only stored.
    """

    name: str
    bits: int
    block_size: int = 1
    scale_bits: int = 0
    encoding: Encoding | None = field(default=None, repr=False, compare=False)
    scaling: Scaling | None = field(default=None, repr=False, compare=False)
    tensor_scale_bits: int = field(default=0, repr=False, compare=False)
    element: str = field(default="", repr=False, compare=False)
    source: str = field(default="", repr=False, compare=False)
    note: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse sizes that no format can have."""
        if self.bits < 1 or self.block_size < 1 or self.scale_bits < 0:
            raise UsageError(
                f"format {self.name!r} has bits {self.bits}, block_size {self.block_size}, scale_bits "
                f"{self.scale_bits}: expected at least 1, 1 and 0, for example 4, 32 and 8"
            )


def encoding_of(name: str) -> Encoding:
    """What the codes of a format mean.

    Raises:
        UsageError: the format is stored and counted only, or is not known.

    >>> encoding_of("int4").largest
    7
    """
    format = get_format(name)
    if format.encoding is None:
        raise UsageError(f"format {format.name!r} is only stored and counted here: nothing is rounded to it")
    return format.encoding


def bits_per_value(format: Format) -> Fraction:
    """The bits that a value of a long tensor takes, its part of the block's scale included: bits + scale_bits / block.

    >>> bits_per_value(get_format("mxfp4"))
    Fraction(17, 4)
    """
    return format.bits + Fraction(format.scale_bits, format.block_size)


def storage_bytes(format: Format, n_values: int) -> int:
    """The bytes that `n_values` values take, in whole blocks and whole bytes; `n_values` is 0 or more.

    The values are one run: a tensor whose rows are padded to whole blocks is one call for a row, times the rows.

    >>> [storage_bytes(get_format(name), 40) for name in ("bf16", "int4", "mxfp4")]
    [80, 20, 34]
    """
    if format.block_size == 1 and not format.scale_bits and not format.bits & 7:
        return n_values * (format.bits >> 3)
    n_blocks = -(-n_values // format.block_size)
    return -(-n_blocks * (format.block_size * format.bits + format.scale_bits) // 8)


def tensor_bits(format: Format, shape: tuple[int, ...]) -> int:
    """The bits of a tensor: rows (the last dim) padded to whole blocks, every scale, and what the tensor keeps once.

    >>> tensor_bits(get_format("mxfp4"), (2, 40)) / 80
    6.8
    >>> tensor_bits(get_format("int8-channel"), (4, 16)) / 64
    10.0
    """
    columns = shape[-1] if shape else 1
    rows = prod(shape[:-1])
    blocks = -(-columns // format.block_size)
    row_bits = blocks * (format.block_size * format.bits + format.scale_bits)
    if format.scaling is not None and format.scaling.over == "channel":
        row_bits += FLOAT32_BITS
    return rows * row_bits + format.tensor_scale_bits


@lru_cache(maxsize=256)
def get_format(name: str) -> Format:
    """The format of this name or alias ("bf16", "float8_e4m3fn"), in any case, with a scaling's ending or without.

    Raises:
        UsageError: the catalogue has no such name.

    >>> get_format("bf16")
    Format(name='bfloat16', bits=16, block_size=1, scale_bits=0)
    >>> get_format("mxfp4-even").scaling
    Scaling(over='block', rule='even', scale='e8m0')
    """
    formats = _catalogue()
    known = formats.get(name.lower()) or _with_ending(name.lower(), formats)
    if known is None:
        raise UsageError(
            f"number format {name[:40]!r} is not known: expected one of {', '.join(format_names())}"
            + near_miss(name[:40], formats)
        )
    return known


def _with_ending(name: str, formats: Mapping[str, Format]) -> Format | None:
    """A format of the catalogue under another scaling, as the ending of its name says."""
    stem, _, ending = name.rpartition("-")
    format = formats.get(stem)
    if format is None:
        return None
    name = f"{format.name}-{ending}"
    if format.scaling is not None:
        if ending in MX_RULES and format.scaling.rule in MX_RULES:
            return replace(format, name=name, scaling=replace(format.scaling, rule=cast(Rule, ending)))
        return None
    if format.encoding is None or format.name == "e8m0":
        return None
    rule: Rule = "absmax" if format.encoding.largest > 1 else "absmean"
    if ending == "tensor":
        return replace(format, name=name, scaling=Scaling("tensor", rule, "float32"), tensor_scale_bits=FLOAT32_BITS)
    return replace(format, name=name, scaling=Scaling("channel", rule, "float32")) if ending == "channel" else None


def format_names() -> tuple[str, ...]:
    """The names of the formats in the catalogue's order, without their aliases.

    >>> format_names()[:3]
    ('float64', 'float32', 'tf32')
    """
    return tuple(dict.fromkeys(format.name for format in _catalogue().values()))


def aliases(format: Format) -> tuple[str, ...]:
    """The other names of a format.

    >>> aliases(get_format("bfloat16"))
    ('bf16',)
    """
    return tuple(name for name, known in _catalogue().items() if known.name == format.name and name != format.name)


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, Format]:
    """Every name and alias with its format, read when first asked for (so the reader too is imported here)."""
    import tomllib

    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    formats: dict[str, Format] = {}
    for name, entry in tomllib.loads(text).items():
        format = _scaled(name, entry, formats) if "element" in entry else _scalar(name, entry)
        formats.update(dict.fromkeys((name, *entry.get("aliases", ())), format))
    return formats


def _scalar(name: str, entry: Mapping[str, object]) -> Format:
    encoding: Encoding | None = None
    match entry:
        case {"float": {"exponent": exponent, "mantissa": mantissa, "bias": bias, "specials": specials}}:
            encoding = Float(exponent, mantissa, bias, specials)
        case {"integer": {"low": low, "high": high, "step": step}}:
            encoding = Integer(low, high, step)
        case {"integer": {"low": low, "high": high}}:
            encoding = Integer(low, high)
    return Format(name, entry["bits"], encoding=encoding, **_told(entry))  # type: ignore[arg-type]


def _scaled(name: str, entry: Mapping[str, object], formats: Mapping[str, Format]) -> Format:
    element, scale = formats[str(entry["element"])], formats[str(entry["scale"])]
    over: Over = "tile" if entry.get("tile") else "block"
    return Format(
        name,
        element.bits,
        entry["block_size"],  # type: ignore[arg-type]
        scale.bits,
        element.encoding,
        Scaling(over, entry["rule"], scale.name),  # type: ignore[arg-type]
        formats[str(entry["tensor_scale"])].bits if "tensor_scale" in entry else 0,
        element.name,
        **_told(entry),
    )


def _told(entry: Mapping[str, object]) -> dict[str, str]:
    return {key: str(entry.get(key, "")) for key in ("source", "note")}
