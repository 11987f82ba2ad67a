"""What tensors does a safetensors file hold, and what do they weigh?

Only headers are read: eight bytes (little-endian) give the header's length, the header is JSON, and each entry says a
tensor's dtype, shape and place. The format is described at https://github.com/huggingface/safetensors (README,
"Format"), whose rules are checked here: offsets tile the data without a hole, and each fits its shape and dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from sixnd.errors import ConfigError
from sixnd.models.json_file import parse_json, read_json
from sixnd.models.settings import shown

LONGEST_HEADER = 100_000_000  # the limit of the safetensors library
MOST_SHARDS = 10_000
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
# safetensors' dtype -> our format's name and its bits
DTYPES = {
    "BOOL": ("bool", 8),
    "F4": ("e2m1", 4),
    "F6_E2M3": ("e2m3", 6),
    "F6_E3M2": ("e3m2", 6),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "F8_E5M2": ("e5m2", 8),
    "F8_E4M3": ("e4m3", 8),
    "F8_E8M0": ("e8m0", 8),
    "F8_E4M3FNUZ": ("e4m3fnuz", 8),
    "F8_E5M2FNUZ": ("e5m2fnuz", 8),
    "I16": ("int16", 16),
    "U16": ("uint16", 16),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "I32": ("int32", 32),
    "U32": ("uint32", 32),
    "F32": ("float32", 32),
    "I64": ("int64", 64),
    "U64": ("uint64", 64),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
}


@dataclass(frozen=True)
class WeightTensor:
    """One stored tensor."""

    name: str
    shape: tuple[int, ...]
    format_name: str
    n_bytes: int

    @property
    def n_values(self) -> int:
        """The number of stored values."""
        return prod(self.shape)


@dataclass(frozen=True)
class Weights:
    """The tensors of a model as they are stored, in the order of the files.

    `n_params` counts every stored value, buffers and packed values too; `check_weights` says which are which.
    `values_by_format` splits that count.
    """

    tensors: tuple[WeightTensor, ...]
    n_params: int
    n_bytes: int
    values_by_format: Mapping[str, int]


def read_weights(path: Path) -> Weights:
    """Read the tensors of a .safetensors file, of a model.safetensors.index.json, or of a folder that holds either.

    Raises `ConfigError` where a file is missing (naming it), cut short or not what it should be.
    """
    files, wanted = _files(path)
    tensors: dict[str, WeightTensor] = {}
    for file in files:
        for tensor in read_header(file):
            if tensor.name in tensors:
                raise ConfigError(f"{file}: tensor {tensor.name!r} stands in another file, too")
            tensors[tensor.name] = tensor
    if lacking := [name for name in wanted if name not in tensors]:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise ConfigError(f"{path}: the index names tensor {lacking[0]!r}{more}, which no file holds")
    return gather(tensors.values())


def gather(tensors: Iterable[WeightTensor]) -> Weights:
    """Sum tensors up.

    >>> gather([WeightTensor("w", (2, 3), "bfloat16", 12)]).n_params
    6
    """
    tensors = tuple(tensors)
    by_format: dict[str, int] = {}
    for tensor in tensors:
        by_format[tensor.format_name] = by_format.get(tensor.format_name, 0) + tensor.n_values
    return Weights(tensors, sum(by_format.values()), sum(tensor.n_bytes for tensor in tensors), by_format)


def read_header(file: Path) -> tuple[WeightTensor, ...]:
    """Read the tensors of one .safetensors file, by its header alone."""
    try:
        n_file = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(8)
            n_header = int.from_bytes(start, "little")
            if len(start) < 8:
                raise ConfigError(f"{file} has {n_file} bytes, too few for a safetensors file")
            if n_header > min(LONGEST_HEADER, n_file - 8):
                raise ConfigError(
                    f"{file} is no safetensors file, or is cut short: its header would have {n_header} bytes and the"
                    f" file has {n_file}"
                )
            raw = stream.read(n_header)
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error.strerror or error}") from None
    header = parse_json(raw, f"the header of {file}")
    header.pop("__metadata__", None)
    spans = [_span(file, name, entry) for name, entry in header.items()]
    _check_tiling(file, spans, n_file - 8 - n_header)
    return tuple(tensor for _, tensor in spans)


def _span(file: Path, name: str, entry: object) -> tuple[int, WeightTensor]:
    """Check one header entry; return where its data begins, and the tensor."""
    where = f"{file}: tensor {name[:200]!r}"
    if not isinstance(entry, Mapping) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise ConfigError(f"{where} must have dtype, shape and data_offsets; got {shown(entry)}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ConfigError(f"{where}: dtype {shown(dtype)} is not one of {', '.join(DTYPES)}")
    if not _whole_numbers(shape):
        raise ConfigError(f"{where}: shape must be a list of whole numbers; got {shown(shape)}")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise ConfigError(f"{where}: data_offsets must be two whole numbers; got {shown(offsets)}")
    format_name, bits = DTYPES[dtype]
    n_bytes = offsets[1] - offsets[0]
    if n_bytes * 8 != prod(shape) * bits:
        raise ConfigError(
            f"{where}: {dtype} of shape {shown(shape)} takes {prod(shape) * bits // 8} bytes, not {n_bytes}"
        )
    return offsets[0], WeightTensor(name, tuple(shape), format_name, n_bytes)


def _whole_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _check_tiling(file: Path, spans: list[tuple[int, WeightTensor]], n_data: int) -> None:
    """Hold the tensors to fill the data from its first byte to its last, none over another."""
    at = 0
    for begin, tensor in sorted(spans, key=lambda span: (span[0], span[1].n_bytes)):
        if begin != at:
            fault = "overlaps the tensor before it" if begin < at else f"leaves a hole of {begin - at} bytes before it"
            raise ConfigError(f"{file}: tensor {tensor.name!r} {fault}")
        at += tensor.n_bytes
    if at != n_data:
        raise ConfigError(
            f"{file} holds {n_data} bytes of data and its header describes {at}; the file may be cut short"
        )


def _files(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """List the files to read, and the tensors that an index says they hold."""
    if path.is_dir():
        if (path / INDEX).is_file():
            return _shards(path / INDEX)
        files = [path / SINGLE] if (path / SINGLE).is_file() else sorted(path.glob("*.safetensors"))
        if not files:
            raise ConfigError(f"folder {str(path)!r} holds no .safetensors file and no {INDEX}")
        return files, ()
    return _shards(path) if path.name.endswith(".index.json") else ([path], ())


def _shards(index: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Read an index: its files, all of which must be there, and its tensors."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise ConfigError(f"{index}: 'weight_map' must say for each tensor which file holds it")
    names = sorted(set(places.values()))
    if len(names) > MOST_SHARDS:
        raise ConfigError(f"{index} names {len(names)} files; at most {MOST_SHARDS} are read")
    if strange := [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]:
        raise ConfigError(f"{index}: {strange[0][:200]!r} is not the name of a .safetensors file beside it")
    if missing := [name for name in names if not (index.parent / name).is_file()]:
        raise ConfigError(f"{index}: {len(missing)} of {len(names)} files are missing: {', '.join(missing[:10])}")
    return [index.parent / name for name in names], tuple(places)
