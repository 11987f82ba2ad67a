"""What JSON object does a file hold?

Whatever the file is (missing, empty, cut short, binary, huge, nested without end, not an object), the answer is the
object or one sentence that says what is wrong with it.
"""

from __future__ import annotations

import json
from pathlib import Path

from sixnd.errors import ConfigError

LARGEST_BYTES = 64 * 2**20


def read_json(path: Path, largest_bytes: int = LARGEST_BYTES) -> dict[str, object]:
    """Return the JSON object in the file at `path`; raise `ConfigError` where there is none."""
    try:
        n_bytes = path.stat().st_size
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, not a JSON file")
        if not path.is_file():
            raise ConfigError(f"{path} is not a regular file")
        if n_bytes > largest_bytes:
            raise ConfigError(f"{path} has {n_bytes} bytes; a JSON description of at most {largest_bytes} is read")
        return parse_json(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {str(path)!r}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise ConfigError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def parse_json(raw: bytes, where: str) -> dict[str, object]:
    """Return the JSON object that `raw` spells; `where` names it in messages.

    >>> parse_json(b'{"hidden_size": 4096}', "config.json")
    {'hidden_size': 4096}
    >>> parse_json(b"[1, 2]", "config.json")
    Traceback (most recent call last):
    sixnd.errors.ConfigError: config.json holds a list; a JSON object is wanted
    """
    if not raw.strip():
        raise ConfigError(f"{where} is empty; a JSON object is wanted")
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not text; a JSON object is wanted") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply to be a model's description") from None
    except ValueError as error:  # JSONDecodeError, an integer of too many digits, or NaN
        raise ConfigError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
        raise ConfigError(f"{where} holds {kind}; a JSON object is wanted")
    return value


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not a number that JSON has")
