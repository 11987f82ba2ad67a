"""What can a number format represent, what does a tensor become in it, and how many bytes does it take?

Rounding needs numpy, which is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sixnd.formats.record import (
    Format,
    bits_per_value,
    encoding_of,
    format_names,
    get_format,
    storage_bytes,
    tensor_bits,
)

if TYPE_CHECKING:
    from sixnd.formats.quantizer import quantize
    from sixnd.formats.tally import Damage, best_formats, damage

__all__ = [
    "Damage",
    "Format",
    "best_formats",
    "bits_per_value",
    "damage",
    "encoding_of",
    "format_names",
    "get_format",
    "quantize",
    "storage_bytes",
    "tensor_bits",
]

_WITH_NUMPY = {"quantize": "quantizer", "Damage": "tally", "best_formats": "tally", "damage": "tally"}


def __getattr__(name: str) -> object:
    """Import what needs numpy when it is first asked for."""
    if name in _WITH_NUMPY:
        from importlib import import_module

        found = getattr(import_module(f"sixnd.formats.{_WITH_NUMPY[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
