"""How much memory does a device need, and does it have it?

Three numbers, never one: *allocated* is the ledger's peak, exact for the lines as written; *reserved* adds what the
caching allocator loses to rounding and fragments; *device* adds the context and its libraries' workspaces. Whether a
plan fits is asked of the last, against the memory that the driver reports.
"""

from __future__ import annotations

from sixnd.formats import storage_bytes
from sixnd.ledger import CATEGORIES, Memory
from sixnd.machines import Cluster
from sixnd.models.architecture import Architecture
from sixnd.notation.program import product
from sixnd.plan import Plan
from sixnd.planning.answers import MemoryPart
from sixnd.planning.build import Built, build

# What a device holds beside the tensors: a CUDA context with its libraries' workspaces, and what the caching allocator
# loses to rounding and fragments. Assumptions from observed runs, not measurements of yours; always printed.
CONTEXT_BYTES = 768 * 2**20
FRAGMENTATION = 0.05


def memory_part(built: Built, cluster: Cluster) -> MemoryPart:
    """Memory at the fullest moment, what the allocator reserves for it, what the device holds, and whether it fits."""
    memory = built.ledger.memory()
    reserved = reserved_bytes(memory)
    device = reserved + CONTEXT_BYTES
    by = {f"{name}_bytes": memory.by_category[name] for name in CATEGORIES}
    machine = cluster.machine
    return MemoryPart(
        **by,
        peak_bytes=memory.peak_bytes,
        peak_at=memory.peak_at,
        reserved_bytes=reserved,
        device_bytes=device,
        capacity_bytes=machine.memory_bytes,
        nameplate_bytes=machine.nameplate_bytes,
        kv_cache_reserved_bytes=_reserved_cache(built),
        fits=device <= machine.memory_bytes,
        maxima=memory.maxima,
        phase_peaks=dict(memory.phase_peaks),
    )


def reserved_bytes(memory: Memory) -> int:
    """What the caching allocator is expected to hold: the peak, and a share of what comes and goes for fragments."""
    lasting = sum(memory.resident.values())
    return memory.peak_bytes + int(FRAGMENTATION * (memory.peak_bytes - lasting))


def _reserved_cache(built: Built) -> int:
    """The cache as engines reserve it: the full context in every layer, windows or not."""
    whole = {"key": built.plan.seq}
    total = 0
    for part in built.parts:
        for cache in part.program.caches:
            total += storage_bytes(cache.format, product(cache.dims, {**part.sizes, **whole}) * part.count)
    return total // built.sharding.mesh.size(tuple(built.sharding.mesh.axes))


def fits(model: Architecture, plan: Plan, cluster: Cluster) -> tuple[bool, int]:
    """Whether a plan fits a cluster, and the bytes its device would hold. Only memory is worked out.

    Where what is resident is too much already, the step is not derived at all, and that is the number given.
    """
    built = build(model, plan, cluster.n_devices)
    lasting = sum(spec.n_bytes for spec in built.resident) + CONTEXT_BYTES
    if lasting > cluster.machine.memory_bytes:
        return False, lasting
    device = reserved_bytes(built.ledger.memory()) + CONTEXT_BYTES
    return device <= cluster.machine.memory_bytes, device
