"""When is each tensor freed? By its last reader.

A draft knows what it reads, writes and allocates. `finish` turns a list of them into a `Block` whose ops also know what
they free. What outlives the list is said by the caller: tensors kept for backward, the block's result, and whatever
is resident (parameters, gradients, the cache) or owned by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sixnd.ledger import Block, Op, Phase, TensorSpec
from sixnd.notation.derive import Draft

_RESIDENT = frozenset({"parameter", "gradient", "optimizer", "master", "input", "kv_cache"})


def read_before_made(drafts: Sequence[Draft]) -> dict[str, TensorSpec]:
    """The tensors that these drafts read and did not make: for a backward, what its forward has to keep."""
    made: set[str] = set()
    needed: dict[str, TensorSpec] = {}
    for draft in drafts:
        for spec in draft.reads:
            if spec.name not in made and spec.role not in _RESIDENT:
                needed.setdefault(spec.name, spec)
        made.update(spec.name for spec in draft.writes)
    return needed


def finish(
    path: str,
    drafts: Sequence[Draft],
    *,
    arrives: Iterable[TensorSpec] = (),
    keeps: Iterable[str] = (),
    held: Iterable[TensorSpec] = (),
    phase: Phase | None = None,
) -> Block:
    """Give every op what it frees. `arrives` are tensors made earlier and freed here (one that is
    made again is written where it lies); `keeps` are names that stay;
    `held` are freed by the last op, whoever read them last (parameters gathered for the whole block).
    """
    stays = set(keeps)
    sizes = {spec.name: spec for spec in arrives}
    held_names = {spec.name for spec in held}
    last: dict[str, int] = {}
    arrived = set(sizes)
    for i, draft in enumerate(drafts):
        for spec in draft.allocates:
            sizes.setdefault(spec.name, spec)
            last[spec.name] = i
        for spec in draft.reads:
            last[spec.name] = i
    frees: list[list[TensorSpec]] = [[] for _ in drafts]
    for name, i in last.items():
        if name in sizes and name not in stays and name not in held_names and sizes[name].role not in _RESIDENT:
            frees[i].append(sizes[name])
    if drafts:
        frees[-1].extend(held)
    return Block(path, tuple(_op(d, f, stays, arrived, phase) for d, f in zip(drafts, frees, strict=True)))


def _op(draft: Draft, frees: list[TensorSpec], stays: set[str], arrived: set[str], phase: Phase | None) -> Op:
    saved = tuple(t for t in (*draft.reads, *draft.writes) if t.name in stays) if draft.phase == "forward" else ()
    return Op(
        draft.kind,
        draft.path,
        phase or draft.phase,
        tuple(draft.reads),
        tuple(draft.writes),
        saved,
        draft.cost,
        tuple(t for t in draft.allocates if t.name not in arrived),
        tuple(frees),
        draft.engine,
        draft.line,
        draft.formula,
        draft.collective,
        draft.skips_masked,
    )
