"""The lecture's deep network, written in the notation: layers of a D x D matrix and a ReLU, and a mean to start from.

It has no norm, no residual and no attention, so every rule can be seen bare: backward costs twice forward but for the
first layer, whose input is data and needs no gradient; and each layer keeps one tensor, because the output that a ReLU
keeps is the operand that the next matrix keeps.

The batch lies in memory before the step begins and is not counted; gradients are kept, as an optimizer would want them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sixnd.ledger import Ledger, TensorSpec
from sixnd.notation import kinds
from sixnd.notation.derived import Derived
from sixnd.notation.kinds import Kind
from sixnd.notation.program import Numerics, Program, product
from sixnd.notation.shard import Sharding
from sixnd.notation.step import Stage, backward_nodes, forward_nodes
from sixnd.plan import Recompute

LAYER = "batch d_in, d_in d_out -> batch d_out"


def layer_program(
    numerics: Numerics, *, first: bool, activation: Kind = kinds.RELU, input_needs_grad: bool = False
) -> Program:
    """One layer; the first one's input is data, which stays where it is, and has a gradient only if it is asked for."""
    p = Program("layers.first" if first else "layers", numerics)
    wanted = input_needs_grad if first else True
    p.entry = p.input("x", "batch d_in", needs_grad=wanted, role="input" if first else "activation")
    h = p.linear("linear", LAYER, p.entry)
    p.exit = p.apply(activation, "activation", "batch d_out -> batch d_out", h)
    return p


def end_program(numerics: Numerics) -> Program:
    """The mean of the last layer's output: one number, where backward begins."""
    p = Program("end", numerics)
    p.entry = p.input("x", "batch d_in", needs_grad=True)
    p.apply(kinds.MEAN, "mean", "batch d_in -> ", p.entry)
    return p


def mlp_step(
    n_layers: int,
    d_model: int,
    batch: int,
    numerics: Numerics,
    recompute: Recompute | None = None,
    activation: Kind = kinds.RELU,
    *,
    input_needs_grad: bool = False,
) -> Ledger:
    """Forward and backward of the deep network; its parameters are what the ledger holds all the time.

    >>> from sixnd.planning.policies import get_precision
    >>> ledger = mlp_step(4, 16, 8, get_precision("fp32").numerics())
    >>> ledger.totals(lambda op: op.phase)["backward"].matrix_flops == (4 * 4 - 2) * 8 * 16**2
    True
    >>> sum(tensor.n_elements for tensor in ledger.resident) == 4 * 16**2
    True
    """
    sizes = {"batch": batch, "d_in": d_model, "d_out": d_model}
    policy = recompute or Recompute()
    first, rest, end = (
        Derived(program, sizes, Sharding())
        for program in (
            layer_program(numerics, first=True, activation=activation, input_needs_grad=input_needs_grad),
            layer_program(numerics, first=False, activation=activation),
            end_program(numerics),
        )
    )
    layers = [first, *[rest] * (n_layers - 1)]
    chain = [*map(Stage, layers), Stage(end, recomputable=False)]
    return Ledger(forward_nodes(chain, policy) + backward_nodes(chain, policy), _parameters(layers))


def _parameters(layers: Sequence[Derived]) -> tuple[TensorSpec, ...]:
    """Every layer's parameters, as its program states them."""
    return tuple(
        TensorSpec(tensor.name, tensor.dims, product(tensor.dims, layer.sizes), tensor.format, tensor.role)
        for layer in layers
        for tensor in layer.program.parameters
    )
