"""What does a tensor become in a format? The one door to rounding, in pieces that fit a cache.

A tensor is rows along one axis (the last, unless told otherwise). It is walked in pieces of whole blocks; a row that
does not fill its last block is padded with zeros, which change no scale. A format with one scale for a row or a tensor
needs its largest magnitude first, so the tensor is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from sixnd.errors import UsageError, near_miss
from sixnd.formats.blocks import Blocks, largest_magnitudes
from sixnd.formats.codec import Overflow
from sixnd.formats.encoding import Encoding, Integer, first_overflow
from sixnd.formats.record import Format, encoding_of, get_format
from sixnd.formats.rounding import CHUNK, Array, Rounder, Rounding

Missing = Literal["raise", "zero"]
TILE = 16


@dataclass(frozen=True)
class Choice:
    """How to round: what values past the largest become, to which neighbour, and what a NaN without a code becomes."""

    overflow: Overflow = "saturate"
    rounding: Rounding = "nearest"
    seed: int | None = None
    nan: Missing = "raise"


def quantize(
    array: npt.ArrayLike,
    name: str,
    *,
    overflow: Overflow = "saturate",
    rounding: Rounding = "nearest",
    seed: int | None = None,
    nan: Missing = "raise",
    axis: int = -1,
) -> Array:
    """The values that a tensor has once it is stored in a format: float32, of the same shape (float64 for float64).

    Args:
        array: numbers of any shape. Float64 is rounded at once, not by way of float32, except under block scales.
        name: a format, such as "e4m3", "mxfp4", "mxfp8-rceil", "nvfp4", "int8-channel".
        overflow: values past the largest become it ("saturate"), or "infinity" or "nan" where the format has them.
        rounding: to "nearest" (ties to even), or "stochastic": to either neighbour, the nearer one more often.
        seed: of stochastic rounding; with the same seed the same values come out. None draws fresh randomness.
        nan: a NaN that has no code (the format has none, or a scale is shared) is an error ("raise") or becomes "zero".
        axis: along which blocks and rows run.

    Raises:
        UsageError: an unknown format or choice, no values, no numbers, or a NaN without a code.

    >>> quantize([1e-8, 0.3, 1e9], "e4m3").tolist()
    [0.0, 0.3125, 448.0]
    >>> quantize([1000, 500, 100, 1], "mxfp4").tolist()
    [768.0, 512.0, 128.0, 0.0]
    """
    format = get_format(name)
    values = as_numbers(array)
    rows = np.moveaxis(np.atleast_1d(values), checked(axis, values), -1)
    quantizer = Quantizer(format, Choice(overflow, rounding, seed, nan))
    out = np.empty(rows.shape, np.float64 if format.name == "float64" else np.float32)
    source = rows
    if not rows.flags.c_contiguous:
        if float_of(rows.dtype) == np.float32:
            np.copyto(out, rows)  # and rounded where it lies
            source = out
        else:
            source = np.ascontiguousarray(rows)
    quantizer.run(_matrix(source), _matrix(out), source.shape[-2] if source.ndim > 1 else 1)
    return np.moveaxis(out, -1, axis).reshape(values.shape)


def _matrix(array: Array) -> Array:
    return array.reshape(-1, array.shape[-1])


def checked(axis: int, values: Array) -> int:
    """The axis, if the array has it."""
    n_dims = max(values.ndim, 1)
    if not -n_dims <= axis < n_dims:
        raise UsageError(f"axis {axis} is not one of the {values.ndim} of shape {values.shape}")
    return axis


def as_numbers(array: npt.ArrayLike) -> Array:
    """An array of real numbers, as it is.

    Raises:
        UsageError: no values, or values that are not real numbers.
    """
    try:
        values = np.asarray(array)
    except ValueError as error:  # rows of unequal length
        raise UsageError(f"these values are no array: {error}") from None
    if values.dtype.kind not in "fiu" and not _is_small_float(values.dtype):
        raise UsageError(f"an array of {values.dtype} holds no real numbers: a float or integer array is wanted")
    if values.dtype.itemsize > 8:
        raise UsageError(f"{values.dtype} is wider than float64: convert it first")
    if values.size == 0:
        raise UsageError(f"an array of shape {values.shape} has no values")
    return values


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a float that another package adds to numpy, such as ml_dtypes' bfloat16."""
    return dtype.kind == "V" and dtype.names is None and dtype.itemsize <= 2 and np.can_cast(dtype, np.float32)


def float_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float in which values of a dtype are worked on: float32 where it holds them all, else float64."""
    most = 4 if dtype.kind == "f" else 2
    return np.dtype(np.float32 if dtype.itemsize <= most else np.float64)


class Readable(Protocol):
    """A matrix that is read in parts: an array, or a tensor in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __getitem__(self, part: tuple[slice, slice]) -> Array:
        """Some rows and columns, of any real dtype."""


class Quantizer:
    """Rounds matrices to one format, part by part. Holds scratch, the random stream and the scale of the tensor.

    With `tally` it counts in `n_saturated` the values that were past the largest of their scale.
    """

    def __init__(self, format: Format, choice: Choice, *, tally: bool = False) -> None:
        _check(format, choice)
        random = np.random.Generator(np.random.SFC64(choice.seed)) if choice.rounding == "stochastic" else None
        self.format = format
        self.choice = choice
        self.encoding = encoding_of(format.name)
        over = format.scaling.over if format.scaling else None
        self.blocks = Blocks(format, random) if over else None
        self.rounder = Rounder(self.encoding, False, choice.overflow, random)
        self.wide_rounder = Rounder(self.encoding, True, choice.overflow, random)
        self.wide_out = np.empty(CHUNK, np.float64)
        self.padded = np.empty(CHUNK, np.float32)
        self.tile = TILE if over == "tile" else 1
        self.by_row, self.by_tensor = over == "channel", over == "tensor"
        self.lacks_nan = bool(over) or not self.encoding.has_nan
        self.tally = tally
        self.saturates = saturates_from(self.encoding, symmetric=bool(over)) if tally else (-inf, inf)
        self.n_saturated = 0
        self.magnitude = np.empty(0, np.float32)

    def run(self, source: Readable, target: Array, matrix_rows: int) -> None:
        """Round a whole tensor, given as its rows, of which `matrix_rows` at a time make a matrix."""
        self.measure(source, matrix_rows)
        for rows, columns in self.parts(source, matrix_rows):
            self.round(self.read(source, rows, columns), target[rows, columns], rows)

    def parts(self, source: Readable, matrix_rows: int) -> Iterator[tuple[slice, slice]]:
        """The parts that `round` takes: whole blocks and tiles, at most `CHUNK` values, none across two matrices."""
        n_rows, n_columns = source.shape
        block = self.format.block_size
        width = min(-(-n_columns // block) * block, CHUNK // self.tile)
        height = max(1, CHUNK // width // self.tile) * self.tile
        together = matrix_rows if self.tile > 1 else n_rows
        for top in range(0, n_rows, together):
            for row in range(top, top + together, height):
                rows = slice(row, min(row + height, top + together))
                for column in range(0, n_columns, width):
                    yield rows, slice(column, min(column + width, n_columns))

    def read(self, source: Readable, rows: slice, columns: slice) -> Array:
        """A part of the source as float32 or float64, without the NaNs that shall be zero."""
        part = source[rows, columns]
        x = part.astype(float_of(part.dtype), copy=False)
        if self.lacks_nan and self.choice.nan == "zero" and np.isnan(x).any():
            return np.where(np.isnan(x), x.dtype.type(0), x)
        return x

    def measure(self, source: Readable, matrix_rows: int) -> None:
        """Find the magnitude that the scale of the tensor or of every row follows from, where there is such a scale."""
        if self.blocks is None or not (self.by_row or self.by_tensor or self.format.tensor_scale_bits):
            return
        mean = self.blocks.rule == "absmean"
        found = np.zeros(source.shape[0] if self.by_row else 1)
        for rows, columns in self.parts(source, matrix_rows):
            x = self.read(source, rows, columns)
            part, axis = (rows, 1) if self.by_row else (slice(None), None)
            if mean:
                found[part] += np.abs(x).sum(axis=axis, dtype=np.float64)
            else:  # no copy; -0 is no magnitude
                np.maximum(found[part], np.abs(np.maximum(x.max(axis=axis), -x.min(axis=axis))), out=found[part])
        self._refuse_nan(found)
        if mean:
            found /= source.shape[1] if self.by_row else source.shape[0] * source.shape[1]
        with np.errstate(over="ignore"):
            self.magnitude = found.astype(np.float32)
        self.blocks.tensor_largest = float(found.max())

    def round(self, x: Array, out: Array, rows: slice) -> None:
        """Round one part; `rows` says which rows of the tensor it is."""
        if self.blocks is None:
            self._plain(x, out)
            return
        height, width = (
            -(-n // size) * size for n, size in zip(x.shape, (self.tile, self.format.block_size), strict=True)
        )
        direct = (
            x.shape == (height, width) and x.flags.c_contiguous and out.flags.c_contiguous and x.dtype == np.float32
        )
        if direct:
            self._scaled(x, out, rows)
            return
        padded = self.padded[: height * width].reshape(height, width)
        padded[...] = 0
        with np.errstate(over="ignore"):
            padded[: x.shape[0], : x.shape[1]] = x
        self._scaled(padded, padded, rows)
        out[...] = padded[: x.shape[0], : x.shape[1]]

    def _plain(self, x: Array, out: Array) -> None:
        flat = np.ascontiguousarray(x).reshape(-1)
        if self.tally:
            self._count_saturated(flat)
        wide = flat.dtype == np.float64
        direct = out.flags.c_contiguous and out.dtype == flat.dtype
        rounded = out.reshape(-1) if direct else (self.wide_out if wide else self.padded)[: flat.size]
        (self.wide_rounder if wide else self.rounder)(flat, rounded)
        if self.lacks_nan:
            self._refuse_nan(rounded)
        if not direct:
            out[...] = rounded.reshape(out.shape)

    def _scaled(self, x: Array, out: Array, rows: slice) -> None:
        assert self.blocks is not None
        if self.by_tensor:
            groups, largest = (1, x.size), self.magnitude
        elif self.by_row:
            groups, largest = x.shape, self.magnitude[rows]
        else:
            groups = (-1, self.format.block_size)
            largest = largest_magnitudes(x.reshape(groups))
            if self.tile > 1:
                tiles = largest.reshape(-1, self.tile, x.shape[1] // self.format.block_size).max(axis=1)
                largest = np.repeat(tiles, self.tile, axis=0).reshape(-1)
            self._refuse_nan(largest)
        scaled = self.blocks.round(x.reshape(groups), self.blocks.scales(largest), out.reshape(groups))
        if self.tally:
            self._count_saturated(scaled)

    def _count_saturated(self, scaled: Array) -> None:
        low, high = self.saturates
        self.n_saturated += int(np.count_nonzero((scaled >= high) | (scaled <= low)))

    def _refuse_nan(self, values: Array) -> None:
        if self.choice.nan == "raise" and np.isnan(values.sum(dtype=np.float64)):
            why = "a NaN would take its whole block with it" if self.blocks else "it has no code for NaN"
            raise UsageError(
                f"the values hold NaN, and {self.format.name} cannot: {why}; nan='zero' stores zero in its place"
            )


def saturates_from(encoding: Encoding, *, symmetric: bool) -> tuple[float, float]:
    """The values at and below, at and above which rounding to nearest leaves the format."""
    high = first_overflow(encoding)
    if isinstance(encoding, Integer) and not symmetric:
        return nextafter(encoding.low - encoding.step / 2, -inf), high
    return -high, high


def _check(format: Format, choice: Choice) -> None:
    """Refuse choices that the format does not have."""
    for word, known, what in (
        (choice.overflow, get_args(Overflow), "overflow"),
        (choice.rounding, get_args(Rounding), "rounding"),
        (choice.nan, get_args(Missing), "nan"),
    ):
        if word not in known:
            raise UsageError(
                f"{what} {word!r} is not known: expected one of {', '.join(known)}" + near_miss(word, known)
            )
    if choice.seed is not None and choice.seed < 0:
        raise UsageError(f"seed {choice.seed} is negative: a whole number from 0 is wanted")
    encoding = encoding_of(format.name)
    if choice.overflow == "saturate":
        return
    if format.scaling:
        raise UsageError(f"{format.name} saturates: its values are scaled into range; overflow must be 'saturate'")
    if choice.overflow == "infinity" and not encoding.has_infinity:
        others = "'saturate' or 'nan'" if encoding.has_nan else "'saturate'"
        raise UsageError(f"{format.name} has no infinity: overflow must be {others}")
    if choice.overflow == "nan" and not encoding.has_nan:
        raise UsageError(f"{format.name} has no NaN: overflow must be 'saturate'")
