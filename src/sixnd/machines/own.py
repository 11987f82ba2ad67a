"""Which machines has the user recorded?

They are in `machines.toml` in the user's configuration folder, in the same form as the built-in catalogue: one table
for each machine, with at least its peaks, its memory and its memory's bandwidth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from sixnd.errors import InputError
from sixnd.machines.catalogue import defaults, find, squeezed
from sixnd.machines.entry import read_machine
from sixnd.machines.record import Machine

_NAME = re.compile(r"[a-z][a-z0-9.+-]*")


def config_dir() -> Path:
    """The folder of the user's settings: `$SIXND_CONFIG_DIR`, else `sixnd` in `$XDG_CONFIG_HOME` or in ~/.config."""
    chosen = os.environ.get("SIXND_CONFIG_DIR")
    if chosen:
        return Path(os.path.expanduser(chosen))
    parent = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.path.expanduser(parent)) / "sixnd"


def own_path() -> Path:
    """The file of the user's own machines, whether or not it is there."""
    return config_dir() / "machines.toml"


def own_machines() -> Mapping[str, Machine]:
    """The user's own machines under their names; none where there is no file.

    Raises:
        InputError: the file cannot be read, is not TOML, or holds a table that is no machine.
    """
    path = own_path()
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return _read(path, stat.st_mtime_ns, stat.st_size)


def add_machine(name: str, entry: Mapping[str, Any]) -> Machine:
    """Record a machine in the user's own file, and return it as it will be read from there.

    What the file holds already is kept as it is, comments included; the new text takes its place in one step, so that
    a reader sees the old file or the new one.

    Args:
        name: lower case, starting with a letter, such as "rubin-sxm".
        entry: keys and values as in the catalogue: at least peak_flop_per_second (a table of rates), memory_bytes and
            memory_bytes_per_second, each a number in base units or a text with a unit.

    Raises:
        InputError: the name is taken or malformed, the entry or the file is not sound, or it cannot be written.
    """
    path = own_path()
    if not _NAME.fullmatch(name):
        raise InputError(f"machine name {name[:40]!r} is not usable: expected lower case such as 'rubin-sxm'")
    if (taken := find(squeezed(name), own_machines().values())) is not None:
        raise InputError(
            f"machine {name!r} is in {path} already, as {taken.name!r}: choose another name or edit it there"
        )
    read_machine(name, entry, defaults(), "the new entry")
    try:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        separator = "" if not old else "\n" if old.endswith("\n") else "\n\n"
        text = old + separator + _written(name, entry)
        machine = _machines(text, path)[name]
        _replace(path, text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    return machine


@lru_cache(maxsize=8)
def _read(path: Path, mtime_ns: int, size: int) -> Mapping[str, Machine]:
    """The machines of a file, read again when its time or size changes."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text in UTF-8: {error.reason} at byte {error.start}") from error
    return _machines(text, path)


def _machines(text: str, path: Path) -> Mapping[str, Machine]:
    """The machines that a text in TOML describes."""
    import tomllib

    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    return {name: read_machine(name, table, defaults(), str(path)) for name, table in tables.items()}


def _replace(path: Path, text: str) -> None:
    """Write a file through another beside it, in one step; a link stays a link, a mode stays as it was."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _written(name: str, entry: Mapping[str, Any]) -> str:
    """A table in TOML."""
    header = name if re.fullmatch(r"[a-z0-9-]+", name) else _quoted(name)
    return f"[{header}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in entry.items())


def _value(value: Any) -> str:
    """A value in TOML; the entry was checked, so that its keys need no quotes and its numbers are finite."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return repr(value)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, which also wants DEL escaped; odd surrogates become ?."""
    import json

    whole = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
