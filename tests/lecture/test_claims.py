"""Do the lecture's claims hold, and would they fail if what they rest on were wrong?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from sixnd.formats import Format
from sixnd.lecture import LATER, claims, lines, napkin, roofline, training
from sixnd.lecture.claim import Claim
from sixnd.machines import Machine, resolve
from sixnd.notation import kinds

HERE = {
    "L01", "L02", "L03", "L04", "L09", "L10", "L11", "L12", "L14", "L15", "L16", "L17", "L18", "L19", "L20", "L21",
    "L23", "L25", "L27", "L28", "L29", "L30", "T2", "T4",
}  # fmt: skip


def test_every_claim_holds() -> None:
    rows = claims()
    assert [row.id for row in rows if not row.ok] == []
    assert {row.id for row in rows} == HERE
    assert [row.id for row in rows] == sorted(HERE)
    assert not HERE & {word for words in LATER for word in words.replace(",", "").split()}


def slower(name: str) -> Machine:
    """The machine with half its peak."""
    machine = resolve(name)
    return replace(machine, peak_flop_per_second={key: rate / 2 for key, rate in machine.peak_flop_per_second.items()})


@pytest.mark.parametrize("row", [napkin.dense_peak, roofline.accelerator_intensity], ids=["L11", "L14"])
def test_a_wrong_peak_fails(monkeypatch: pytest.MonkeyPatch, row: Callable[[], Claim]) -> None:
    assert row().ok
    monkeypatch.setattr(napkin, "resolve", slower)
    monkeypatch.setattr(roofline, "resolve", slower)
    assert not row().ok


def test_wrong_bytes_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(napkin, "storage_bytes", lambda format, n: 2 * n)
    assert not napkin.small_tensor().ok
    assert not napkin.large_tensor().ok


def test_a_relu_that_multiplies_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = replaced(kinds.RELU, forward=kinds.Work(vector=1))
    monkeypatch.setattr(lines, "RELU", busy)
    monkeypatch.setattr(roofline, "RELU", replaced(kinds.RELU, forward=kinds.Work(vector=2)))
    assert not lines.separate_counts().ok
    assert not roofline.relu().ok


def test_a_step_that_keeps_both_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_input = replaced(kinds.RELU, keeps=("0",))
    real = training.mlp_step
    monkeypatch.setattr(
        training, "mlp_step", lambda n, d, b, f, r, a: real(n, d, b, f, r, keeps_input if a is kinds.RELU else a)
    )
    assert not training.checkpointing().ok


def test_other_optimizer_states_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Format("half", 16)
    real = training.get_precision
    monkeypatch.setattr(training, "get_precision", lambda name: replaced(real(name), state=half))
    assert not training.optimizer_state().ok
