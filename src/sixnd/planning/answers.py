"""What does an account say? Records only; their fields are the JSON that other programs rely on, in this order."""

from __future__ import annotations

from dataclasses import dataclass, field

from sixnd.ledger import Category, Ledger
from sixnd.machines import Cluster
from sixnd.plan import Plan


@dataclass(frozen=True)
class Params:
    """Parameters: all, those that one token uses, and the input embedding's."""

    total: int
    active: int
    embedding: int


@dataclass(frozen=True)
class ModelPart:
    """Which model."""

    name: str
    family: str
    params: Params


@dataclass(frozen=True)
class Workload:
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


@dataclass(frozen=True)
class PhaseFlops:
    """FLOPs of one phase on one device: contractions dense, contractions as masked, and the rest."""

    matrix: int
    matrix_causal: int
    vector: int


@dataclass(frozen=True)
class Flops:
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


@dataclass(frozen=True)
class MemoryPart:
    """Memory of one device at the fullest moment of the step, by what it is for. The categories sum to the peak."""

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


@dataclass(frozen=True)
class Bound:
    """Shares of the estimated time by what limits it; they sum to one."""

    compute: float
    memory: float
    communication: float
    overhead: float


@dataclass(frozen=True)
class TimePart:
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


@dataclass(frozen=True)
class Operation:
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


@dataclass(frozen=True)
class Remedy:
    """A change that makes it fit, with what it costs in FLOPs and in devices."""

    change: str
    options: str
    device_bytes: int
    extra_flops: float
    devices: int


@dataclass(frozen=True)
class Room:
    """What else would fit, everything else unchanged: the largest micro-batch, and the longest sequence."""

    batch: int
    seq: int


@dataclass(frozen=True)
class Project:
    """A whole training run under this account: steps, days and device-hours for `tokens`."""

    tokens: int
    steps: int
    flops: int
    days: float
    device_hours: float


@dataclass(frozen=True)
class Explained:
    """One headline number: its formula, the formula with the numbers filled in, and where the rule comes from."""

    name: str
    value: str
    formula: str
    filled: str
    source: str


@dataclass(frozen=True, eq=False)
class Account:
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
    explained: tuple[Explained, ...]
    project: Project | None
    ledger: Ledger = field(repr=False)
    plan: Plan = field(repr=False)
    cluster: Cluster = field(repr=False)

    def to_dict(self) -> dict[str, object]:
        """The account as plain data, keys as `sixnd account --json` prints them."""
        from dataclasses import asdict

        shown: dict[str, object] = {"schema": "sixnd.account/1", "verdict": self.verdict}
        for name in ("model", "workload", "flops", "memory", "time"):
            shown[name] = asdict(getattr(self, name))
        shown["operations"] = [vars(operation) for operation in self.operations]
        shown["remedies"] = [vars(remedy) for remedy in self.remedies]
        shown["room"] = vars(self.room) if self.room else None
        shown["project"] = vars(self.project) if self.project else None
        return {**shown, "uncounted": list(self.uncounted), "notes": list(self.notes)}
