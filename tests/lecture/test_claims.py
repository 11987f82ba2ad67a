"""Do the lecture's claims hold, and would each of them fail if what it rests on were wrong?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace as replaced

from sixnd.formats import get_format
from sixnd.lecture import LATER, ROOMS, checkpointing, claims, lines, napkin, roofline, training
from sixnd.lecture.claim import Claim
from sixnd.machines import Cluster, Machine, parse_cluster, resolve
from sixnd.models.weights import gather
from sixnd.notation import kinds
from sixnd.notation.kinds import Work
from sixnd.plan import Plan
from sixnd.planning.answers import Account

HERE = [
    "L01", "L02", "L03", "L04", "L09", "L10", "L11", "L12", "L14", "L15", "L16", "L17", "L18", "L19", "L20", "L21",
    "L23", "L25", "L27", "L28", "L29", "L30", "T2", "T4",
]  # fmt: skip
WHOLE_TABLE = {*(f"L{i:02}" for i in range(1, 31)), *(f"T{i}" for i in range(1, 7))}
ROW_OF: Mapping[str, Callable[[], Claim]] = {row().id: row for room in ROOMS for row in room.ROWS}


def waiting() -> set[str]:
    """The rows that wait for later work, ranges written out; rows of which only a part waits are left out."""
    found = set()
    for ids in LATER:
        for first, last in re.findall(r"(\w\d+)(?:-\w(\d+))?", "" if ids.startswith("of ") else ids):
            found |= {f"{first[0]}{i:0{len(first) - 1}}" for i in range(int(first[1:]), int(last or first[1:]) + 1)}
    return found


def test_every_claim_holds() -> None:
    rows = claims()
    assert [row for row in rows if not row.ok] == []
    assert [row.id for row in rows] == HERE == sorted(set(HERE))


def test_every_row_of_the_lecture_is_here_or_waits() -> None:
    assert waiting() | set(HERE) == WHOLE_TABLE
    assert waiting() & set(HERE) == set()


def test_every_claim_says_something() -> None:
    for row in claims():
        assert row.claim
        assert row.expected
        assert row.value
        assert "\n" not in row.claim + row.expected + row.value


# -------------------------------------------------------------------------------------------------- each can fail


def worse(machine: Machine) -> Machine:
    """Half the peaks, half the memory on the box, and a host link that crawls."""
    return replace(
        machine,
        peak_flop_per_second={name: rate / 2 for name, rate in machine.peak_flop_per_second.items()},
        nameplate_bytes=machine.nameplate_bytes // 2,
        host_link_bytes_per_second=1e6,
    )


def worse_cluster(text: str) -> Cluster:
    cluster = parse_cluster(text)
    return replace(cluster, machine=worse(cluster.machine))


def worse_machine(name: str) -> Machine:
    return worse(resolve(name))


def flops_halved(room: ModuleType) -> Callable[..., Any]:
    """Contractions that forget the adds."""
    real = room.contraction_flops
    return lambda *args: replaced(real(*args), matrix=real(*args).matrix // 2)


def cost_changed(**changes: object) -> Callable[..., Any]:
    real = lines.line_cost
    return lambda *args, **options: replace(real(*args, **options), **changes)


def account_changed(change: Callable[[Account], Account], **always: object) -> Callable[..., Any]:
    real = roofline.account
    return lambda model, **options: change(real(model, **{**options, **always}))


def same(answer: Account) -> Account:
    return answer


def slow_link(answer: Account) -> Account:
    return replaced(answer, cluster=replace(answer.cluster, machine=worse(answer.cluster.machine)))


def trains_with_anything(model: str, **options: Any) -> Account:
    """No precision is refused for training."""
    return ACCOUNT(model, **{**options, "phase": "decode"})


def mlp_with(**always: object) -> Callable[..., Any]:
    real = lines.mlp_step
    return lambda *args, **options: real(*args, **{**options, **always})


def one_layer_less(n: int, *args: Any, **options: Any) -> Any:
    return MLP(n - 1, *args, **options)


def careless(n: int, d: int, b: int, formats: Any, recompute: Any, activation: Any) -> Any:
    keeps_input = replaced(activation, keeps=("0",))
    return MLP(n, d, b, formats, recompute, keeps_input)


def never_again(n: int, d: int, b: int, formats: Any, recompute: Any, activation: Any) -> Any:
    return MLP(n, d, b, formats, None, activation)


def short_context(model: Any, plan: Plan) -> Any:
    return BUILD(model, replace(plan, seq=2048))


def no_recompute(model: Any, plan: Plan) -> Any:
    return BUILD(model, replace(plan, recompute=checkpointing.Recompute()))


def no_segments(model: Any, plan: Plan) -> Any:
    """Every block by itself, whatever segments are asked for."""
    asked = plan.recompute.policy
    return BUILD(model, plan if asked == "none" else replace(plan, recompute=checkpointing.Recompute("full")))


def one_missing(path: Any) -> Any:
    return gather(READ(path).tensors[1:])


def half_states(name: str) -> Any:
    return replaced(PRECISION(name), state=get_format("bfloat16"))


def no_activations(*args: Any) -> Any:
    found = LARGEST(*args)
    return replace(found, params_with_activations=found.params)


ACCOUNT, MLP, BUILD, READ = roofline.account, lines.mlp_step, lines.build, training.read_weights
PRECISION, LARGEST, RIDGE = training.get_precision, napkin.largest_model, roofline.ridge
TWICE_BYTES = "twice the bytes", {"storage_bytes": lambda held, n: 2 * n * held.bits // 8}
WORSE = "a worse machine", {"parse_cluster": worse_cluster, "resolve": worse_machine}

BROKEN: list[tuple[str, ModuleType, str, dict[str, Any]]] = [
    ("L01", napkin, *WORSE),
    ("L02", napkin, *WORSE),
    ("L02", napkin, "activations are free", {"largest_model": no_activations}),
    ("L03", napkin, *TWICE_BYTES),
    ("L04", napkin, *TWICE_BYTES),
    ("L09", lines, "multiplies alone", {"line_cost": cost_changed(flops=384)}),
    ("L09", lines, "another shape", {"line_cost": cost_changed(out_shape=(2, 4, 3))}),
    ("L10", lines, "no copy is seen", {"line_cost": cost_changed(layout="view")}),
    ("L10", lines, "nothing costs", {"line_cost": cost_changed(flops=0)}),
    ("L11", napkin, *WORSE),
    ("L12", lines, "no adds", {"contraction_flops": flops_halved(lines)}),
    ("L14", roofline, *WORSE),
    ("L15", roofline, "a ReLU that multiplies", {"RELU": replaced(kinds.RELU, forward=Work(vector=2))}),
    ("L15", roofline, *WORSE),
    ("L15", roofline, *TWICE_BYTES),
    ("L16", roofline, "a cheap GELU", {"GELU": replaced(kinds.GELU, forward=Work(vector=8))}),
    ("L16", roofline, "2000 operations", {"GELU": replaced(kinds.GELU, forward=Work(vector=2000))}),
    ("L17", roofline, "no adds", {"contraction_flops": flops_halved(roofline)}),
    ("L17", roofline, *TWICE_BYTES),
    ("L18", roofline, "ridge elsewhere", {"ridge": lambda machine, name: 1.01 * RIDGE(machine, name)}),
    ("L19", roofline, "training decodes", {"account": account_changed(same, phase="decode")}),
    ("L19", roofline, "decoding trains", {"account": account_changed(same, phase="train")}),
    ("L20", lines, "input always wants it", {"mlp_step": mlp_with(input_needs_grad=True)}),
    ("L20", lines, "input never wants it", {"mlp_step": mlp_with(input_needs_grad=False)}),
    ("L20", lines, "a layer lost", {"mlp_step": one_layer_less}),
    ("L21", lines, "length ignored", {"build": short_context}),
    ("L23", training, "states in bf16", {"get_precision": half_states}),
    ("L25", checkpointing, "ReLU keeps its input", {"mlp_step": careless}),
    ("L25", checkpointing, "nothing is recomputed", {"mlp_step": never_again}),
    ("L25", checkpointing, "no block is recomputed", {"build": no_recompute}),
    ("L25", checkpointing, "no segments", {"build": no_segments}),
    ("L27", napkin, *WORSE),
    ("L28", training, "a tensor lost", {"read_weights": one_missing}),
    ("L29", roofline, "a slow link", {"account": account_changed(slow_link)}),
    ("L30", roofline, "one precision", {"account": account_changed(same, precision="bf16")}),
    ("L30", roofline, "not refused", {"account": trains_with_anything}),
    ("T2", napkin, *WORSE),
    ("T2", napkin, "activations are free", {"largest_model": no_activations}),
    ("T4", lines, "a ReLU that multiplies", {"RELU": replaced(kinds.RELU, forward=Work(vector=1))}),
    ("T4", lines, "GELU without its tanh", {"GELU": replaced(kinds.GELU, forward=Work(vector=20))}),
]


@pytest.mark.parametrize("id, room, why, patches", BROKEN, ids=[f"{id}: {why}" for id, _, why, _ in BROKEN])
def test_a_row_fails(
    monkeypatch: pytest.MonkeyPatch, id: str, room: ModuleType, why: str, patches: Mapping[str, Any]
) -> None:
    assert ROW_OF[id]().ok
    for name, value in patches.items():
        monkeypatch.setattr(room, name, value, raising=why != WORSE[0])
    assert not ROW_OF[id]().ok


def test_every_row_can_fail() -> None:
    assert {id for id, *_ in BROKEN} == set(HERE)


PARTS = [
    checkpointing.pre_activations,
    checkpointing.nothing_kept,
    checkpointing.square_root,
    checkpointing.transformer_blocks,
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_part_of_checkpointing_can_fail(monkeypatch: pytest.MonkeyPatch, part: Callable[[], Any]) -> None:
    assert part().ok

    def other(depth: int, width: int, batch: int, formats: Any, recompute: Any, activation: Any) -> Any:
        """Half the depth that was asked for, and a ReLU whatever was asked for."""
        return MLP(max(1, depth // 2), width, batch, formats, recompute, kinds.RELU)

    monkeypatch.setattr(checkpointing, "mlp_step", other)
    monkeypatch.setattr(checkpointing, "build", no_segments)
    assert not part().ok
