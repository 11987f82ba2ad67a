"""Can a user record a machine, and is what was in the file safe?"""

import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sixnd.errors import InputError
from sixnd.machines import add_machine, all_machines, config_dir, own_path, resolve, ridge

ENTRY = {
    "peak_flop_per_second": {"bf16": "2300TFLOP/s", "fp8": 4.6e15},
    "memory_bytes": "288GB",
    "memory_bytes_per_second": "8TB/s",
}
TABLE = '# mine\n[rack-one]  # the first\npeak_flop_per_second = {bf16 = 1e15}\nmemory_bytes = "80GB"\n'
WHOLE = TABLE + "memory_bytes_per_second = 3e12\n"


def write(text):
    own_path().parent.mkdir(parents=True, exist_ok=True)
    own_path().write_bytes(text if isinstance(text, bytes) else text.encode())


def test_what_is_added_can_be_named():
    added = add_machine("rubin-x", ENTRY)
    assert resolve("Rubin X") == added
    assert added.memory_bytes == 288 * 10**9
    assert added.peak_flop_per_second == {"bf16": 2.3e15, "fp8": 4.6e15}
    assert ridge(added, "bf16") == 287.5
    assert all_machines()[0] == added


def test_all_keys_survive_the_round_trip():
    entry = {
        **ENTRY,
        "vendor": 'A"B\\C\n\tÅ\x7f\x00🙂',
        "aliases": ["one two", "three"],
        "intra_node": {"name": "fabric", "bytes_per_second": "1TB/s", "latency_seconds": "2us"},
        "inter_node": {"name": "net", "bytes_per_second": 50e9},
        "devices_per_node": 16,
        "matmul_flop_per_second": {"bf16": 1.15e15},
        "confidence": "high",
    }
    machine = add_machine("rubin", entry)
    assert machine.vendor == entry["vendor"]
    assert machine.aliases == ("one two", "three")
    assert machine.intra_node.latency_seconds == 2e-6
    assert machine.inter_node.latency_seconds > 0
    assert machine.efficiency.matmul["bf16"].value == 0.5
    assert resolve("one_two") == machine


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(notes=st.text(), peak=st.floats(1, 1e20), memory=st.integers(1, 10**15))
def test_any_text_and_number_survives(notes, peak, memory):
    own_path().unlink(missing_ok=True)
    entry = {"peak_flop_per_second": {"bf16": peak}, "memory_bytes": memory, "memory_bytes_per_second": 1e9}
    machine = add_machine("m.1", {**entry, "notes": notes})
    assert (machine.notes, machine.peak_flop_per_second["bf16"], machine.memory_bytes) == (notes, peak, memory)


@pytest.mark.parametrize("old", [WHOLE, WHOLE.rstrip("\n"), "# only a remark\n"], ids=["file", "no newline", "remark"])
def test_what_the_file_held_is_kept_to_the_byte(old):
    write(old)
    add_machine("rubin", ENTRY)
    assert own_path().read_text().startswith(old)
    assert resolve("rubin").name == "rubin"


def test_adding_leaves_nothing_beside_the_file_and_keeps_its_mode():
    write(WHOLE)
    own_path().chmod(0o600)
    add_machine("rubin", ENTRY)
    assert os.listdir(own_path().parent) == ["machines.toml"]
    assert stat.S_IMODE(own_path().stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path):
    target = tmp_path / "dotfiles.toml"
    target.write_text(WHOLE)
    own_path().parent.mkdir(parents=True)
    own_path().symlink_to(target)
    add_machine("rubin", ENTRY)
    assert own_path().is_symlink()
    assert "[rubin]" in target.read_text()


def test_a_write_that_fails_leaves_the_old_file(monkeypatch):
    write(WHOLE)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"machines\.toml cannot be written: No space left"):
        add_machine("rubin", ENTRY)
    assert own_path().read_text() == WHOLE
    assert os.listdir(own_path().parent) == ["machines.toml"]


@pytest.mark.parametrize("name", ["", "H100", "9x", "a b", "ä", "x\n[y]", "a]"])
def test_a_name_that_could_not_be_typed_later_is_refused(name):
    with pytest.raises(InputError, match="is not usable"):
        add_machine(name, ENTRY)
    assert not own_path().exists()


def test_a_name_is_added_once():
    add_machine("rubin-x", ENTRY)
    with pytest.raises(InputError, match=r"'rubinx' is in .*machines\.toml already, as 'rubin-x'"):
        add_machine("rubinx", ENTRY)


def test_an_unsound_entry_is_not_written():
    with pytest.raises(InputError, match="the new entry: machine 'rubin': memory_bytes is missing"):
        add_machine("rubin", {"peak_flop_per_second": {"bf16": 1e15}, "memory_bytes_per_second": 1e12})
    assert not own_path().exists()


def test_a_users_machine_goes_before_a_built_in_one():
    write(WHOLE.replace("rack-one", "h100-sxm-80gb"))
    assert resolve("h100-sxm-80gb").peak_flop_per_second == {"bf16": 1e15}
    assert sum(machine.name == "h100-sxm-80gb" for machine in all_machines()) == 1


def test_a_calibrated_machine_is_one_of_the_users():
    add_machine("this", ENTRY)
    assert resolve("this").name == "this"


def test_a_change_of_the_file_is_seen():
    write(WHOLE)
    assert resolve("rack-one").memory_bytes == 80 * 10**9
    write(WHOLE.replace("80GB", "8000GB"))
    assert resolve("rack-one").memory_bytes == 8 * 10**12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a\n", "is not TOML"),
        (b"\xff\xfe", "is not a text in UTF-8"),
        (TABLE, "machine 'rack-one': memory_bytes_per_second is missing"),
        ("a = 3", "machine 'a': is 3: expected a table"),
        (WHOLE + "speed = 3\n", "speed is not a known key"),
    ],
)
def test_an_unsound_file_is_said_in_a_sentence_with_its_path(text, words):
    write(text)
    for ask in (lambda: resolve("h100"), lambda: add_machine("rubin", ENTRY), all_machines):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(own_path()) in str(caught.value)
        assert words in str(caught.value)
        assert caught.value.exit_code == 3
    assert own_path().read_bytes() == (text if isinstance(text, bytes) else text.encode())


def test_a_folder_in_the_place_of_the_file():
    own_path().mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be read"):
        resolve("h100")


def test_where_the_file_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SIXND_CONFIG_DIR")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert config_dir() == tmp_path / ".config" / "sixnd"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert config_dir() == tmp_path / "xdg" / "sixnd"
    monkeypatch.setenv("SIXND_CONFIG_DIR", "~/mine")
    assert config_dir() == tmp_path / "mine"
