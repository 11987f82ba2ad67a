"""What is known about one accelerator, and where does each number come from?

Peaks are dense (no sparsity) and per device, as software sees a device: one GPU, one TPU chip, one GCD where the name
says so. On GeForce cards they are those with float32 accumulation, which is what training uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Confidence = Literal["high", "medium", "low"]

PEAK_KEYS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
"""The spellings of the formats that peaks are recorded for."""


@dataclass(frozen=True)
class Link:
    """What joins devices: each device's rate in one direction over all its links, and the time for a message to start.

    `peer_bytes_per_second` is the rate to one other device where it is less than the whole: a mesh without a switch.
    """

    name: str
    bytes_per_second: float
    latency_seconds: float
    peer_bytes_per_second: float | None = None


@dataclass(frozen=True)
class Sourced:
    """A number that was measured or assumed, with the words for where it comes from."""

    value: float
    source: str


@dataclass(frozen=True)
class Efficiency:
    """How much of the peaks real kernels reach: a fraction of each format's matmul peak, a fraction of the bandwidth,
    and the seconds that it takes to launch a kernel.
    """

    matmul: Mapping[str, Sourced] = field(hash=False)
    bandwidth: Sourced
    launch_seconds: Sourced


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One accelerator.

    `peak_flop_per_second` holds the best matmul rate for each format that the device has an engine for; for float32 on
    most GPUs that engine is the vector one. `memory_bytes` is what a program can have, as the driver reports it where
    that is known, and `nameplate_bytes` what is marketed; `memory_note` says which. A node is a group of devices that
    is joined by `intra_node`; `inter_node` is the usual network, as each device's share of it. `alias_note` is filled
    where a name meant several machines and this one was taken.
    """

    name: str
    peak_flop_per_second: Mapping[str, float] = field(hash=False)
    memory_bytes: int
    memory_bytes_per_second: float
    efficiency: Efficiency
    nameplate_bytes: int
    memory_note: str = ""
    vendor: str = ""
    form_factor: str = ""
    year: int | None = None
    vector_flop_per_second: float | None = None
    last_level_cache_bytes: int | None = None
    intra_node: Link | None = None
    inter_node: Link | None = None
    devices_per_node: int = 1
    host_link_bytes_per_second: float | None = None
    tdp_watts: float | None = None
    source: str = ""
    date: str = ""
    confidence: Confidence = "low"
    notes: str = ""
    aliases: tuple[str, ...] = ()
    short_for: tuple[str, ...] = ()
    alias_note: str = ""
