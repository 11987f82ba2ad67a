"""What does one optimizer step read, write, compute and exchange?

The update walks every element that this device updates: its gradient, its states, its master copy. Muon's orthogonal
momentum is five Newton-Schulz steps of three matmuls each, written as lines. Where the optimizer's state is split over
devices but the parameters are whole, the updated parameters are gathered afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from sixnd.formats import get_format, storage_bytes
from sixnd.ledger import Block, Cost, Op, TensorSpec
from sixnd.notation.cost import contraction, contraction_flops
from sixnd.notation.program import Sizes, Tensor, product
from sixnd.notation.shard import Sharding, collective, wire_bytes
from sixnd.planning.policies import Optimizer, Precision, Update, state_format

# X (m x n, m <= n) becomes a X + (b A + c A A) X with A = X X^T (Jordan et al. 2024).
_NEWTON_SCHULZ = (
    ((("m", "n"), ("k", "n")), ("m", "k")),
    ((("m", "k"), ("k", "j")), ("m", "j")),
    ((("m", "k"), ("k", "n")), ("m", "n")),
)


class Held(msgspec.Struct, frozen=True):
    """What one device updates: elements, vector and matrix FLOPs, and the numbers of state it keeps."""

    n_params: int
    vector_flops: int
    matrix_flops: int
    state_counts: tuple[int, ...]

    @staticmethod
    def of(
        optimizer: Optimizer,
        rows: Iterable[tuple[Tensor, Sizes, int]],
        parts: int,
        hidden: Callable[[Tensor], bool],
    ) -> Held:
        """Add up parameters (tensor, sizes, how many layers have it), each split flat over `parts` devices."""
        n_params = vector = matrix = states = 0
        for tensor, sizes, count in rows:
            update = optimizer.matrix_update if hidden(tensor) else optimizer.update
            n = product(tensor.dims, sizes)
            n_params += n * count
            vector += update.flops * n * count
            states += _state_elements(update, tensor, sizes, n) * count
            matrix += _newton_schulz(update, tensor, sizes) * count
        shares = [-(-value // parts) for value in (n_params, vector, matrix, states)]
        return Held(shares[0], shares[1], shares[2], (shares[3],) if shares[3] else ())


def _matrix(tensor: Tensor, sizes: Sizes) -> tuple[int, int]:
    """A contraction's weight as a matrix: what it sums, and what it makes."""
    made = tuple(name for name in tensor.dims if name not in tensor.summed and name not in tensor.stacked)
    return product(tensor.summed, sizes), product(made, sizes)


def _state_elements(update: Update, tensor: Tensor, sizes: Sizes, n: int) -> int:
    if not update.factored or not tensor.summed:
        return update.states * n
    return update.states * sum(_matrix(tensor, sizes)) * product(tensor.stacked, sizes)


def _newton_schulz(update: Update, tensor: Tensor, sizes: Sizes) -> int:
    if not update.newton_schulz_steps:
        return 0
    m, n = sorted(_matrix(tensor, sizes))
    here = {"m": m, "k": m, "j": m, "n": n}
    once = sum(contraction_flops(contraction(terms, result), here).matrix for terms, result in _NEWTON_SCHULZ)
    return update.newton_schulz_steps * once * product(tensor.stacked, sizes)


def optimizer_block(
    precision: Precision, optimizer: Optimizer, held: Held, sharding: Sharding, gradient_bytes: int, foreach: bool
) -> Block:
    """The update as one op, freeing the gradients; then the gather of parameters where they were updated in parts.

    The foreach form makes one temporary of the state's size (the denominator); the fused form makes none.
    """
    state = state_format(precision, optimizer)
    updated = precision.master or precision.parameter
    kept = sum(storage_bytes(state, n) for n in held.state_counts)
    moved = storage_bytes(updated, held.n_params) + kept
    gradient_share = gradient_bytes if not _scatters_late(sharding) else -(-gradient_bytes // _parts(sharding))
    copies = storage_bytes(precision.parameter, held.n_params) if precision.master else 0
    cost = Cost(
        held.matrix_flops,
        held.matrix_flops,
        held.vector_flops,
        read_bytes=moved + gradient_share,
        written_bytes=moved + copies,
    )
    gradients = TensorSpec("gradients", (), gradient_bytes, get_format("uint8"), "gradient")
    scratch = TensorSpec("optimizer.denominator", (), held.n_params, state, "temporary")
    temporaries = (scratch,) if foreach and held.state_counts else ()
    ops = [
        Op(
            "optimizer",
            f"optimizer.{optimizer.name}",
            "optimizer",
            cost=cost,
            allocates=temporaries,
            frees=(gradients, *temporaries),
            engine=precision.engine,
        )
    ]
    if sharding.optimizer and not sharding.parameters:
        whole = storage_bytes(precision.parameter, held.n_params * _parts(sharding))
        move = collective("all_gather", sharding.optimizer, whole, sharding.mesh)
        ops.append(
            Op(
                "all_gather",
                "optimizer.parameters",
                "optimizer",
                cost=Cost(wire_bytes=wire_bytes(move)),
                collective=move,
            )
        )
    return Block("optimizer", tuple(ops))


def _parts(sharding: Sharding) -> int:
    return sharding.mesh.size(sharding.optimizer)


def _scatters_late(sharding: Sharding) -> bool:
    """ZeRO-1: gradients are stored whole, but each device updates only its part."""
    return bool(sharding.optimizer) and not sharding.gradients
