"""What can be chosen about a step? Pure choice: no arithmetic in here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

WorkPhase = Literal["train", "prefill", "decode"]
AttentionKernel = Literal["flash", "math"]
Kernels = Literal["fused", "eager"]
RecomputePolicy = Literal["none", "selective", "full", "every"]
Shard = Literal["none", "ddp", "zero1", "zero2", "zero3"]


@dataclass(frozen=True)
class Mesh:
    """Named axes of devices and how many devices each has: `Mesh({"dp": 8, "tp": 2})` is sixteen devices."""

    axes: dict[str, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Equal meshes hash alike: a plan can be looked up by."""
        return hash(tuple(self.axes.items()))

    def size(self, axes: tuple[str, ...]) -> int:
        """Multiply the sizes of some axes."""
        total = 1
        for axis in axes:
            total *= self.axes[axis]
        return total


@dataclass(frozen=True)
class Recompute:
    """Which activations are made again in backward instead of kept.

    "none" keeps all; "selective" makes the attention core again (Korthikanti et al. 2022); "full" keeps the input of
    every block; "every" keeps the input of every `every`-th block.
    """

    policy: RecomputePolicy = "none"
    every: int = 1


@dataclass(frozen=True)
class Plan:
    """How one step is done: `micro_batch` sequences of `seq` tokens on each device, `accumulation` times.

    In decode, `seq` is the context that one new token attends to. `foreach` is the optimizer's many-tensor form, which
    needs a temporary; the fused form does not. `kernels` says whether a norm and a gated activation are one kernel
    each, or the several that PyTorch runs when nothing is compiled, each keeping what it needs.
    """

    micro_batch: int = 1
    seq: int = 2048
    phase: WorkPhase = "train"
    accumulation: int = 1
    precision: str = "bf16-master"
    optimizer: str = "adamw"
    recompute: Recompute = field(default_factory=Recompute)
    attention: AttentionKernel = "flash"
    shard: Shard = "none"
    foreach: bool = False
    kernels: Kernels = "fused"
    mesh: Mesh = field(default_factory=Mesh)
