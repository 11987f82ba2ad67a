"""What does an account say? Records only; their fields are the JSON that other programs rely on, in this order.

They are msgspec structs and not dataclasses because they are that edge: msgspec turns them into JSON as they stand, and
defining a struct costs a tenth of defining a dataclass, which a command line pays at every start.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sixnd.ledger import Category, Ledger
from sixnd.machines import Cluster
from sixnd.plan import Plan
from sixnd.planning.build import Built


class Params(msgspec.Struct, frozen=True):
    """Parameters: all, those that one token uses, and the input embedding's."""

    total: int
    active: int
    embedding: int


class ModelPart(msgspec.Struct, frozen=True):
    """Which model."""

    name: str
    family: str
    params: Params


class Workload(msgspec.Struct, frozen=True):
    """What is done with it: one optimizer step in training, one forward pass otherwise."""

    phase: str
    batch: int
    accumulation: int
    seq: int
    tokens_per_step: int
    precision: str
    bytes_per_param: str
    optimizer: str
    recompute: str
    attention: str
    devices: int
    on: str
    shard: str
    mesh: dict[str, int]


class PhaseFlops(msgspec.Struct, frozen=True):
    """FLOPs of one phase on one device: contractions dense, contractions as masked, and the rest."""

    matrix: int
    matrix_causal: int
    vector: int


class Flops(msgspec.Struct, frozen=True):
    """FLOPs of one step on one device. `model` is what MFU divides: forward and backward without recompute."""

    forward: PhaseFlops
    backward: PhaseFlops
    recompute: PhaseFlops
    optimizer: PhaseFlops
    total: int
    model: int
    per_token: int
    six_n_d: int
    conventions: dict[str, int]


class MemoryPart(msgspec.Struct, frozen=True):
    """Memory of one device at the fullest moment of the step, by what it is for. The categories sum to the peak.

    `maxima` are each category's own; `phase_peaks` the fullest moments of forward, backward, recompute and optimizer.
    """

    parameters_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    master_bytes: int
    activations_bytes: int
    temporaries_bytes: int
    communication_bytes: int
    kv_cache_bytes: int
    peak_bytes: int
    peak_at: str
    reserved_bytes: int
    device_bytes: int
    capacity_bytes: int
    nameplate_bytes: int
    kv_cache_reserved_bytes: int
    fits: bool
    maxima: dict[Category, int]
    phase_peaks: dict[str, int]


class Bound(msgspec.Struct, frozen=True):
    """Shares of the estimated time by what limits it; they sum to one."""

    compute: float
    memory: float
    communication: float
    overhead: float


class Published(msgspec.Struct, frozen=True):
    """What the step would take if it went as published training runs did: their time over our estimate, the median
    and the middle four fifths of `runs` runs on `machine` ("any": none on this one).
    """

    seconds: float
    mfu: float
    ratio: float
    low: float
    high: float
    runs: int
    machine: str
    source: str


class TimePart(msgspec.Struct, frozen=True):
    """Time of one step: the roofline's, with perfect overlap, and the estimate, which MFU and throughput belong to."""

    ideal_seconds: float
    seconds: float
    mfu: float
    ideal_mfu: float
    mfu_convention: str
    mfu_peak_flop_per_second: float
    tokens_per_second: float
    tokens_per_second_per_device: float
    communication_seconds: float
    exposed_communication_seconds: float
    bound: Bound
    published: Published | None


class Operation(msgspec.Struct, frozen=True):
    """One distinct operation of the step, totals over its `count`."""

    path: str
    kind: str
    phase: str
    count: int
    flops: int
    bytes: int
    intensity: float
    seconds: float
    ideal_seconds: float
    bound: str
    line: str
    formula: str


class Remedy(msgspec.Struct, frozen=True):
    """A change that makes it fit, with what it costs in FLOPs and in devices."""

    change: str
    options: str
    device_bytes: int
    extra_flops: float
    devices: int


class Room(msgspec.Struct, frozen=True):
    """What else would fit, everything else unchanged: the largest micro-batch, and the longest sequence."""

    batch: int
    seq: int


class Project(msgspec.Struct, frozen=True):
    """A whole training run under this account: steps, days and device-hours for `tokens`, by the estimate; and the days
    if it goes as published runs did.
    """

    tokens: int
    steps: int
    flops: int
    model_flops: int
    days: float
    device_hours: float
    published_days: float | None


class Account(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The full account of one step of a model under a plan on a cluster. `to_dict` is the JSON."""

    model: ModelPart
    workload: Workload
    flops: Flops
    memory: MemoryPart
    time: TimePart
    operations: tuple[Operation, ...]
    uncounted: tuple[str, ...]
    notes: tuple[str, ...]
    verdict: str
    remedies: tuple[Remedy, ...]
    room: Room | None
    project: Project | None
    built: Built
    cluster: Cluster

    @property
    def ledger(self) -> Ledger:
        """What one device does in the step, op by op."""
        return self.built.ledger

    @property
    def plan(self) -> Plan:
        """The choices that were made."""
        return self.built.plan

    def to_dict(self) -> dict[str, Any]:
        """The account as plain data, keys as `sixnd account --json` prints them."""
        shown = {name: msgspec.to_builtins(getattr(self, name)) for name in _SHOWN}
        return {"schema": "sixnd.account/1", **shown}


_SHOWN = (
    "verdict",
    "model",
    "workload",
    "flops",
    "memory",
    "time",
    "operations",
    "remedies",
    "room",
    "project",
    "uncounted",
    "notes",
)
