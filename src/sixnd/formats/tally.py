"""What does a format do to a real tensor? Counted exactly, over every value, part by part.

With x the values and y what they become, over the finite x:

    relative RMS error   sqrt(sum (y - x)^2 / sum x^2)
    SQNR                 -20 log10 of that, in decibels: each bit of mantissa is worth 6
    underflow share      values that were not zero and became zero, of all values
    saturated share      values that were past the largest of their scale, of all values
    bits per value       all that is stored, over the number of values: scales and padding included

The worst block is the one with the largest relative RMS error of its own; where a format has no blocks, of 32 values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf, log10, sqrt

import numpy as np
import numpy.typing as npt

from sixnd.errors import UsageError
from sixnd.formats.encoding import Float
from sixnd.formats.quantizer import Choice, Quantizer, Readable, as_numbers, checked
from sixnd.formats.record import MX_RULES, Format, bits_per_value, format_names, get_format, tensor_bits
from sixnd.formats.rounding import CHUNK, Array

RUN = 32
"""The values that stand for a block where a format has none."""
UNSUITED = ("e8m0", "int8-mx")
"""A format of scales, and one of elements: nothing is stored in them alone."""


@dataclass(frozen=True)
class WorstBlock:
    """The block that lost most: its row and first column, how many values, and its relative RMS error."""

    row: int
    column: int
    n_values: int
    relative_rms_error: float


@dataclass(frozen=True)
class Damage:
    """What storing a tensor in a format does to it; shares are of all its values."""

    format: str
    n_values: int
    bits_per_value: float
    underflow_share: float
    saturated_share: float
    zero_share: float
    relative_rms_error: float
    sqnr_db: float
    largest_error: float
    worst_block: WorstBlock | None


def damage(array: npt.ArrayLike, name: str, *, axis: int = -1, nan: str = "raise") -> Damage:
    """What storing an array in a format does to it, rounded to nearest and saturating.

    Args:
        array: numbers of any shape; not empty.
        name: a format, such as "e4m3", "mxfp4", "nvfp4", "int8-channel".
        axis: along which blocks and rows run.
        nan: a NaN that has no code is an error ("raise") or becomes "zero".

    Raises:
        UsageError: as `quantize`, and for formats that tensors are not stored in.

    >>> found = damage([1000.0, 500.0, 3.0, 0.0], "mxfp4")
    >>> found.underflow_share, found.saturated_share, found.bits_per_value
    (0.25, 0.25, 34.0)
    """
    values = as_numbers(array)
    values = np.moveaxis(np.atleast_1d(values), checked(axis, values), -1)
    return damage_in_parts(np.ascontiguousarray(values).reshape(-1, values.shape[-1]), values.shape, name, nan=nan)


def damage_in_parts(
    source: Readable,
    shape: tuple[int, ...],
    name: str,
    *,
    nan: str = "raise",
    seen: Callable[[int], None] | None = None,
) -> Damage:
    """The damage to a tensor of this shape that is read in parts, as rows; `seen` is told how many values were read."""
    tally = Tally(name, nan=nan)
    tally.add(source, shape, seen)
    return tally.damage()


class Tally:
    """Sums up the damage to one or more tensors in one format."""

    def __init__(self, name: str, *, nan: str = "raise") -> None:
        format = get_format(name)
        if format.name in UNSUITED:
            raise UsageError(f"{format.name} is a format for scales or elements: no tensor is stored in it alone")
        self.format = format
        self.quantizer = Quantizer(format, Choice(nan=nan), tally=True)  # type: ignore[arg-type]
        self.scratch = np.empty(CHUNK, np.float64 if format.name == "float64" else np.float32)
        self.n_values = self.n_underflow = self.n_zero = self.n_bits = 0
        self.squares = self.squared_error = self.largest_error = 0.0
        self.worst: WorstBlock | None = None

    def add(self, source: Readable, shape: tuple[int, ...], seen: Callable[[int], None] | None = None) -> None:
        """Round a whole tensor, given as its rows, and add what it does to it."""
        quantizer = self.quantizer
        matrix_rows = shape[-2] if len(shape) > 1 else 1
        quantizer.measure(source, matrix_rows)
        for rows, columns in quantizer.parts(source, matrix_rows):
            x = quantizer.read(source, rows, columns)
            y = self.scratch[: x.size].reshape(x.shape)
            quantizer.round(x, y, rows)
            self._compare(x, y, rows.start, columns.start)
            if seen is not None:
                seen(x.size)
        self.n_values += source.shape[0] * source.shape[1]
        self.n_bits += tensor_bits(self.format, shape)

    def _compare(self, x: Array, y: Array, row: int, column: int) -> None:
        lost = y == 0
        zero = x == 0
        self.n_zero += int(np.count_nonzero(zero))
        self.n_underflow += int(np.count_nonzero(lost & ~zero))
        exact = x.astype(np.float64)
        with np.errstate(invalid="ignore"):
            error = y - exact
        finite = np.isfinite(exact)
        if not finite.all():
            exact, error = np.where(finite, exact, 0.0), np.where(finite, error, 0.0)
        self.largest_error = max(self.largest_error, float(np.abs(error).max()))
        self.squares += float(np.vdot(exact, exact))
        self.squared_error += float(np.vdot(error, error))
        self._find_worst(exact, error, row, column)

    def _find_worst(self, exact: Array, error: Array, row: int, column: int) -> None:
        size = self.format.block_size if self.format.block_size > 1 else RUN
        starts = np.arange(0, exact.shape[1], size)
        squares = np.add.reduceat(exact * exact, starts, axis=1)
        lost = np.add.reduceat(error * error, starts, axis=1)
        share = np.divide(lost, squares, out=np.zeros_like(lost), where=squares > 0)
        at = int(share.argmax())
        relative = sqrt(float(share.reshape(-1)[at]))
        if relative > (self.worst.relative_rms_error if self.worst else 0.0):
            block_row, block = divmod(at, starts.size)
            n_values = min(size, exact.shape[1] - block * size)
            self.worst = WorstBlock(row + block_row, column + block * size, n_values, relative)

    def damage(self) -> Damage:
        """What was added up.

        Raises:
            UsageError: nothing was.
        """
        if not self.n_values:
            raise UsageError("there are no values to round")
        relative = sqrt(self.squared_error / self.squares) if self.squares else 0.0
        return Damage(
            self.format.name,
            self.n_values,
            self.n_bits / self.n_values,
            self.n_underflow / self.n_values,
            self.quantizer.n_saturated / self.n_values,
            self.n_zero / self.n_values,
            relative,
            -20 * log10(relative) if relative else inf,
            self.largest_error,
            self.worst,
        )


def candidates(most_bits: float) -> Iterator[Format]:
    """The formats and scalings in which a long tensor takes at most so many bits a value.

    Integer formats come with a scale only: bare, they hold no fractions.

    >>> [format.name for format in candidates(2)]
    ['int2-tensor', 'int2-channel', 'ternary-tensor', 'ternary-channel', 'binary-tensor', 'binary-channel']
    """
    for name in format_names():
        format = get_format(name)
        if format.encoding is None or name in UNSUITED or bits_per_value(format) > most_bits:
            continue
        if format.scaling is not None:
            yield format
            if format.scaling.rule in MX_RULES:
                yield from (get_format(f"{name}-{rule}") for rule in MX_RULES[1:])
            continue
        if isinstance(format.encoding, Float):
            yield format
        if format.bits <= 8 and format.encoding.lowest < 0:
            yield from (get_format(f"{name}-{over}") for over in ("tensor", "channel"))


def best_formats(
    array: npt.ArrayLike, most_bits: float, *, axis: int = -1, names: Iterable[str] | None = None
) -> tuple[Damage, ...]:
    """The damage of every format that stores this array in at most so many bits a value, the least first.

    Args:
        array: numbers of any shape; not empty.
        most_bits: bits a value, all scales and padding of this very array included.
        axis: along which blocks and rows run.
        names: the formats to choose from; all that are known unless given.

    Raises:
        UsageError: none is that small.

    >>> [found.format for found in best_formats(np.sin(np.arange(8192.0)).reshape(2, 4096), 4.5)][:2]
    ['int4-channel', 'int4-tensor']
    """
    values = as_numbers(array)
    known = tuple(names) if names is not None else tuple(format.name for format in candidates(most_bits))
    found = [damage(values, name, axis=axis) for name in known if _fits(name, values.shape, most_bits)]
    if not found:
        raise UsageError(f"no format stores values of shape {values.shape} in {most_bits:g} bits each")
    return tuple(sorted(found, key=lambda damage: (damage.relative_rms_error, damage.bits_per_value)))


def _fits(name: str, shape: tuple[int, ...], most_bits: float) -> bool:
    n_values = int(np.prod(shape))
    return tensor_bits(get_format(name), shape) <= most_bits * n_values
