"""From a chain of blocks to the nodes of one step: forward, backward in reverse, recomputation.

The chain is the blocks in the order a token passes them; equal layers are the same `Derived`, so they are derived once
and runs of them become one `Repeat`.

Between two blocks lies one tensor. It is kept once: by the block that made it where that block's backward reads its own
output (a ReLU), otherwise by the block that reads it. Under recomputation the chain is cut into segments; a segment
keeps only its input, and its backward first runs it forward again, keeping, then runs it backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from sixnd.ledger import Block, Node, Repeat
from sixnd.notation.derived import Derived
from sixnd.plan import Recompute


class Stage(msgspec.Struct, frozen=True):
    """One block of the chain. Only `recomputable` ones obey the recompute policy (not the embedding, not the loss)."""

    derived: Derived
    recomputable: bool = True


def forward_nodes(chain: Sequence[Stage], recompute: Recompute) -> tuple[Node, ...]:
    """The forward of a chain, as much of it kept as the policy says."""
    pieces: list[tuple[Block, ...]] = []
    for start, stop in _segments(chain, recompute):
        if _cut(chain[start], recompute):
            first = chain[start].derived.forward(keep=False, entry_owned=False)
            rest = [chain[i].derived.forward(keep=False, entry_owned=True) for i in range(start + 1, stop)]
            pieces.append((first, *rest))
        else:
            owned = not _entry_kept(chain[start].derived) and not _kept_before(chain, start, start, recompute)
            pieces.append(chain[start].derived.kept_forward(owned))
    return _folded(pieces)


def backward_nodes(chain: Sequence[Stage], recompute: Recompute) -> tuple[Node, ...]:
    """The backward of a chain, last block first."""
    pieces: list[tuple[Block, ...]] = []
    for start, stop in reversed(_segments(chain, recompute)):
        cut = _cut(chain[start], recompute)
        again = [_again(chain, i, start, stop, recompute) for i in range(start, stop)] if cut else []
        back = [
            chain[i].derived.backward(
                entry_owned=not _kept_before(chain, i, start, recompute), gather=not (cut and i == stop - 1)
            )
            for i in range(stop - 1, start - 1, -1)
        ]
        pieces.append((*again, *back))
    return _folded(pieces)


def _again(chain: Sequence[Stage], i: int, start: int, stop: int, recompute: Recompute) -> Block:
    """Block i of a segment forward once more; the last one's gathered parameters stay for its backward."""
    derived, last = chain[i].derived, i == stop - 1
    owned = not _entry_kept(derived) and not _kept_before(chain, i, start, recompute)
    return derived.forward(keep=True, entry_owned=owned, phase="recompute", drop_exit=last, release=not last)


def _entry_kept(derived: Derived) -> bool:
    return derived.entry is not None and derived.entry.name in derived.kept


def _kept_before(chain: Sequence[Stage], i: int, start: int, recompute: Recompute) -> bool:
    """Whether the block before i keeps the tensor between them; one in another, recomputed segment has let it go."""
    if i == 0:
        return False
    before = chain[i - 1]
    return before.derived.keeps_exit and (i > start or not _cut(before, recompute))


def _cut(stage: Stage, recompute: Recompute) -> bool:
    return stage.recomputable and recompute.policy in ("full", "every")


def _segments(chain: Sequence[Stage], recompute: Recompute) -> list[tuple[int, int]]:
    """Cut the chain: recomputed blocks in segments of `every`, all others alone."""
    every = recompute.every if recompute.policy == "every" else 1
    cuts: list[tuple[int, int]] = []
    for i, stage in enumerate(chain):
        grows = cuts and _cut(stage, recompute) and _cut(chain[i - 1], recompute) and i - cuts[-1][0] < every
        if grows:
            cuts[-1] = (cuts[-1][0], i + 1)
        else:
            cuts.append((i, i + 1))
    return cuts


def _folded(pieces: list[tuple[Block, ...]]) -> tuple[Node, ...]:
    """Write equal neighbours once, with their count; within a piece too."""
    nodes: list[Node] = []
    for piece, run in groupby(pieces):
        count = len(list(run))
        body: list[Node] = []
        for block, same in groupby(piece):
            times = len(list(same))
            body.append(block if times == 1 else Repeat((block,), times))
        nodes.extend(body if count == 1 else [Repeat(tuple(body), count)])
    return tuple(nodes)
