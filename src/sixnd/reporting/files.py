"""How is a file written so that it is there whole or not at all?

The text goes to a new file beside the wanted one, which then takes its name in one step. A reader, or a program that is
stopped half way, never meets half a page.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from sixnd.errors import UsageError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` in UTF-8 to `path`, replacing what was there. Raises `UsageError` where that cannot be done.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/page.html", "<p>8·10⁹</p>")
    ...     print(Path(folder, "page.html").read_text(encoding="utf-8"))
    <p>8·10⁹</p>
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, replacing what was there. Raises `UsageError` where that cannot be done."""
    wanted = Path(path)
    target = Path(os.path.realpath(wanted))  # a link stays a link; what it points to is replaced
    _check(wanted, target)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # /dev/stdout, a pipe: nothing to replace
        else:
            _replace(target, data)
    except OSError as error:
        raise UsageError(f"cannot write {str(wanted)!r}: {error.strerror or error}") from error


def _check(wanted: Path, target: Path) -> None:
    """Refuse early what cannot work, in words of its own."""
    if target.is_dir():
        raise UsageError(f"cannot write {str(wanted)!r}: it is a folder; give the name of a file in it")
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {str(wanted)!r}: there is no folder {str(wanted.parent)!r}; make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK) and not target.exists():
        raise UsageError(f"cannot write {str(wanted)!r}: the folder {str(wanted.parent)!r} is not writable")


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target and take its place; on any failure the target is as it was and nothing is left over."""
    handle, name = tempfile.mkstemp(prefix=".sixnd-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _mode(target: Path) -> int:
    """The permissions that the file had, or those that a new one gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
