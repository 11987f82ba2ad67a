"""Do the commands answer, keep the JSON that others rely on, and refuse nonsense in one sentence?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.app.cli import COMMANDS, front_page, main

GOOD = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}
BAD_CONFIGS = {
    "empty": "",
    "truncated": '{"model_type": "llama", "hidden_',
    "list": "[1,2]",
    "null": "null",
    "unknown-family": json.dumps({**GOOD, "model_type": "zebra"}),
    "no-family": json.dumps({"hidden_size": 4}),
    "negative": json.dumps({**GOOD, "hidden_size": -4096}),
    "zero-layers": json.dumps({**GOOD, "num_hidden_layers": 0}),
    "string-size": json.dumps({**GOOD, "hidden_size": "big"}),
    "heads": json.dumps({**GOOD, "num_attention_heads": 31}),
    "kv-heads": json.dumps({**GOOD, "num_key_value_heads": 5}),
    "huge": json.dumps({**GOOD, "hidden_size": 10**30}),
    "nan": '{"model_type":"llama","hidden_size":NaN}',
    "deep": "[" * 100000,
}
BAD_WORDS = (
    (2, ["account", "gpt2", "--batch", "0"]),
    (2, ["account", "gpt2", "--seq", "-1"]),
    (2, ["account", "gpt2", "--seq", "4096"]),
    (2, ["account", "gpt2", "--phase", "dream"]),
    (2, ["account", "gpt2", "--batch", "1.5"]),
    (2, ["account", "gpt2", "--seq", "8k"]),
    (2, ["account", "gpt2", "--json", "--csv"]),
    (3, ["account", ""]),
    (2, ["roofline", "--on", ","]),
    (2, ["account", "gpt2", "--optimizer", "adamz"]),
    (2, ["account", "gpt2", "--precision", "int4"]),
    (2, ["account", "gpt2", "--recompute", "every:0"]),
    (2, ["account", "gpt2", "--mesh", "tp=2"]),
    (2, ["account", "gpt2", "--on", "8xh100", "--mesh", "dp=4"]),
    (2, ["account", "gpt2", "--phase", "decode", "--recompute", "full"]),
    (2, ["account", "gpt2", "--mfu-convention", "7N"]),
    (2, ["account", "gpt2", "--vs", "--colour red"]),
    (3, ["account", "gpt2", "--on", "8xh1000"]),
    (2, ["account", "gpt2", "--on", "0xh100"]),
    (2, ["account", "gpt2", "--on", "v100"]),
    (3, ["account", "gtp2"]),
    (2, ["acount", "gpt2"]),
    (2, ["account", "gpt2", "--bacth", "1"]),
    (2, ["time", "--params", "70B"]),
    (2, ["time", "--params", "70Q", "--tokens", "15T", "--mfu", "0.5"]),
    (2, ["time", "--params", "70B", "--tokens", "15T", "--on", "8xh100", "--mfu", "1.5"]),
    (3, ["einops", "a b, b c -> a d", "a=1", "b=2", "c=3"]),
    (3, ["einops", "a b -> b", "a=2"]),
    (2, ["einops", "a b -> b", "a=2", "b"]),
    (3, ["machines", "h1000"]),
    (2, ["machines", "add", "mine"]),
    (3, ["weights", "nowhere.safetensors"]),
)
TIME_KEYS = {"schema", "flops", "days", "seconds", "params", "tokens", "devices", "mfu", "peak_flop_per_second"}
LARGEST_KEYS = {"schema", "bytes_per_param", "capacity_bytes", "params", "params_with_activations"}
EINOPS_KEYS = {"schema", "flops", "formula", "read_bytes", "written_bytes", "intensity", "layout", "out_shape"}
ACCOUNT_KEYS: dict[str, set[str]] = {
    "model": {"name", "params"},
    "workload": {
        "phase", "batch", "accumulation", "seq", "tokens_per_step", "precision", "optimizer", "recompute", "attention",
        "devices", "shard", "mesh",
    },
    "flops": {"forward", "backward", "recompute", "total", "model", "per_token", "six_n_d"},
    "memory": {
        "parameters_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "peak_bytes", "peak_at",
        "reserved_bytes", "capacity_bytes", "fits", "master_bytes", "temporaries_bytes", "communication_bytes",
        "kv_cache_bytes", "maxima",
    },
    "time": {"ideal_seconds", "seconds", "mfu", "tokens_per_second", "tokens_per_second_per_device", "bound"},
}  # fmt: skip


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    status, out, err = call(capsys, *words, "--json")
    assert status in (0, 1), err
    data = json.loads(out)
    assert isinstance(data, dict)
    return data


def test_account_keeps_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = answer(capsys, "account", "mixtral-8x7b", "--on", "64xh100", "--tokens", "1T")
    assert data["schema"] == "sixnd.account/1"
    for part, keys in ACCOUNT_KEYS.items():
        assert keys <= set(data[part]), part
    assert set(data["model"]["params"]) >= {"total", "active", "embedding"}
    assert set(data["flops"]["forward"]) == {"matrix", "matrix_causal", "vector"}
    assert set(data["time"]["bound"]) == {"compute", "memory", "communication", "overhead"}
    rows = {"path", "kind", "phase", "count", "flops", "bytes", "intensity", "seconds", "bound"}
    assert rows <= set(data["operations"][0])
    assert isinstance(data["uncounted"], list)
    assert isinstance(data["notes"], list)
    assert isinstance(data["memory"]["peak_bytes"], int)


def test_the_others_keep_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    time = ("time", "--params", "70B", "--tokens", "15T", "--on", "1024xh100", "--mfu", "0.5")
    assert set(answer(capsys, *time)) >= TIME_KEYS
    assert set(answer(capsys, "largest", "--on", "8xh100")) >= LARGEST_KEYS
    assert set(answer(capsys, "einops", "b s, s d -> b d", "b=2", "s=3", "d=4")) >= EINOPS_KEYS
    machine = answer(capsys, "machines", "h100")
    assert machine["intensity"]["bf16"] == pytest.approx(295, abs=1)


@pytest.mark.parametrize("unknown", ["params", "tokens", "mfu", "days"])
def test_time_works_out_whichever_is_left_out(capsys: pytest.CaptureFixture[str], unknown: str) -> None:
    whole = {"params": "70B", "tokens": "15T", "mfu": "0.5", "days": "143.926594"}
    words = [w for name, value in whole.items() if name != unknown for w in (f"--{name}", value)]
    data = answer(capsys, "time", "--on", "1024xh100", *words)
    expected = {"params": 70e9, "tokens": 15e12, "mfu": 0.5, "days": 143.926594}[unknown]
    assert data["unknown"] == unknown
    assert data[unknown] == pytest.approx(expected, rel=1e-5)


def test_time_works_out_the_devices(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--params", "70B", "--tokens", "15T", "--mfu", "0.5", "--days", "143.926594")
    assert answer(capsys, "time", "--on", "h100", *words)["devices"] in (1024, 1025)


def test_too_much_for_the_peak_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "time", "--params", "70B", "--tokens", "15T", "--on", "8xh100", "--days", "1")
    assert status == 1
    assert "cannot be" in out


@pytest.mark.parametrize("text", BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_a_bad_config_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    status, out, err = call(capsys, "account", str(path))
    assert status == 3
    assert out == ""
    assert err.startswith("sixnd: ")
    assert err.count("\n") == 1
    assert len(err) < 1000


@pytest.mark.parametrize(("status", "words"), BAD_WORDS, ids=[" ".join(w)[:60] for _, w in BAD_WORDS])
def test_bad_words_are_one_sentence(capsys: pytest.CaptureFixture[str], status: int, words: list[str]) -> None:
    found, out, err = call(capsys, *words)
    assert (found, out) == (status, "")
    assert err.startswith("sixnd: ")
    assert err.count("\n") == 1


def test_a_typo_names_the_near_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert "llama-3-8b" in call(capsys, "account", "lama-3-8b")[2]
    assert "adamw" in call(capsys, "account", "gpt2", "--optimizer", "adanw")[2]
    assert "--batch" in call(capsys, "account", "gpt2", "--bacth", "1")[2]


def test_exit_status_says_whether_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "account", "gpt2")[0] == 0
    assert call(capsys, "account", "llama-3-8b")[0] == 1


@pytest.mark.parametrize("form", ["--md", "--csv"])
def test_other_forms(capsys: pytest.CaptureFixture[str], form: str) -> None:
    status, out, _ = call(capsys, "account", "gpt2", form)
    assert status == 0
    assert "head.logits" in out


def test_page_and_figures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    page, figure = tmp_path / "a.html", tmp_path / "a.svg"
    assert call(capsys, "account", "gpt2", "--html", str(page), "--plot", str(figure))[0] == 0
    assert "<svg" in page.read_text()
    assert (tmp_path / "a-roofline.svg").stat().st_size > 1000
    assert figure.read_text().startswith("<?xml")


def test_a_machine_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIXND_CONFIG_DIR", str(tmp_path))
    words = ("machines", "add", "mine", "--peak", "bf16=2300TFLOP/s", "--memory", "288GB", "--bandwidth", "8TB/s")
    assert call(capsys, *words)[0] == 0
    assert answer(capsys, "machines", "mine")["peak_flop_per_second"] == {"bf16": 2.3e15}
    assert answer(capsys, "account", "gpt2", "--on", "mine")["workload"]["on"] == "mine"


def test_the_front_page_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys)
    assert status == 0
    assert all(name in out for name in COMMANDS)
    assert front_page() + "\n" == out
    for name in COMMANDS:
        assert call(capsys, name, "--help")[0] == 0


def test_an_account_imports_nothing_heavy() -> None:
    program = (
        "import sys; from sixnd.app.cli import main; main(['account', 'gpt2', '--json'])\n"
        "print([m for m in ('torch', 'numpy', 'scipy', 'matplotlib', 'fastapi') if m in sys.modules], file=sys.stderr)"
    )
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    assert done.stderr.strip() == "[]"


WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            ["--on", "--batch", "--seq", "--phase", "--recompute", "--shard", "8xh100", "decode", "gpt2", "1"]
        ),
        st.text(min_size=1, max_size=12),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(words=WORDS)
def test_no_words_make_a_traceback(words: list[str]) -> None:
    assert main(["account", "gpt2", *words, "--json"]) in (0, 1, 2, 3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    program = "import sys; from sixnd.app.cli import main; sys.exit(main(['account', 'gpt2']))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
