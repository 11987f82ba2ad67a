"""Is a file there whole or not at all, and is what cannot be written refused in words?"""

import os
import stat

import pytest

from sixnd.errors import UsageError
from sixnd.reporting import files
from sixnd.reporting.files import write_bytes, write_text


def test_it_writes_utf_8_with_line_ends_as_given(tmp_path):
    write_text(tmp_path / "a.txt", "2·batch\r\n✓\n")
    assert (tmp_path / "a.txt").read_bytes() == "2·batch\r\n✓\n".encode()


def test_it_replaces_what_was_there_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path):
    write_text(tmp_path / "ours", "")
    (tmp_path / "plain").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_file_is_written_to():
    write_text(os.devnull, "gone")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize(
    "name, words",
    [("", "it is a folder"), ("none/a.html", "there is no folder"), ("file/a.html", "there is no folder")],
)
def test_what_cannot_be_is_refused(tmp_path, name, words):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=words):
        write_text(tmp_path / name, "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_closed_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="not writable"):
        write_text(tmp_path / "a.html", "")


def test_a_closed_folder_is_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="not writable"):
        write_text(tmp_path / "a.html", "")


@pytest.mark.parametrize(
    "error, seen", [(OSError(28, "No space left on device"), UsageError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error, seen):
    (tmp_path / "a.html").write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(seen):
        write_bytes(tmp_path / "a.html", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert (tmp_path / "a.html").read_text() == "old"
