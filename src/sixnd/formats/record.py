"""How many bits does a number format store, and which formats are there?

A format stores `bits` for a value, and, where a block of values shares a scale, `scale_bits` for each block. Bytes are
counted as stored: a block that is only partly filled is stored whole, and the last byte is filled up. What a tensor
keeps once (the float32 scale of an nvfp4 tensor) is not in these counts; the catalogue notes it.

The formats themselves are data: `catalogue.toml`, each with its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from sixnd.errors import UsageError, near_miss


@dataclass(frozen=True)
class Format:
    """A number format as it is stored: `bits` a value, and `scale_bits` for each block of `block_size` values."""

    name: str
    bits: int
    block_size: int = 1
    scale_bits: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that no format can have."""
        if self.bits < 1 or self.block_size < 1 or self.scale_bits < 0:
            raise UsageError(
                f"format {self.name!r} has bits {self.bits}, block_size {self.block_size}, scale_bits "
                f"{self.scale_bits}: expected at least 1, 1 and 0, for example 4, 32 and 8"
            )


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


@lru_cache(maxsize=256)
def get_format(name: str) -> Format:
    """The format of this name or alias ("bf16", "float8_e4m3fn"), in any case.

    Raises:
        UsageError: the catalogue has no such name.

    >>> get_format("bf16")
    Format(name='bfloat16', bits=16, block_size=1, scale_bits=0)
    """
    formats = _catalogue()
    if name.lower() not in formats:
        raise UsageError(
            f"number format {name[:40]!r} is not known: expected one of {', '.join(format_names())}"
            + near_miss(name[:40], formats)
        )
    return formats[name.lower()]


def format_names() -> tuple[str, ...]:
    """The names of the formats in the catalogue's order, without their aliases.

    >>> format_names()[:3]
    ('float64', 'float32', 'tf32')
    """
    return tuple(dict.fromkeys(format.name for format in _catalogue().values()))


@lru_cache(maxsize=1)
def _catalogue() -> Mapping[str, Format]:
    """Every name and alias with its format, read when first asked for (so the readers too are imported here)."""
    import tomllib

    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    formats: dict[str, Format] = {}
    for name, entry in tomllib.loads(text).items():
        sizes = {key: entry[key] for key in ("bits", "block_size", "scale_bits") if key in entry}
        format = Format(name, **sizes)
        formats.update(dict.fromkeys((name, *entry.get("aliases", ())), format))
    return formats
