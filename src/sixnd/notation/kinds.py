"""What can a line do besides contract, and what does each such kind cost and keep?

A kind is one entry here. It declares, per element of the largest tensor of the line:

- the work of its forward and of its backward, in adds-and-multiplies, comparisons and transcendentals;
- what its backward reads: operands by position ("0", "1"), its "output", and extras that it makes for that purpose;
- whether it is linear in its operands (partial sums may pass through it unreduced).

What is *not* here: contractions, whose cost, backward and kept operands follow from the line alone. A fused kind
lists the `inner` lines that it runs without storing what lies between them (a statement may name the dims otherwise:
they are matched with the kind's own `line` by position): its matrix FLOPs, those of its backward
and those of making the intermediate again are all derived from these lines.

Costs are those of the plain algorithm, written out in a comment at each kind; libraries differ by a few operations.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from sixnd.ledger import Role


class Work(msgspec.Struct, frozen=True):
    """Operations per element. `transcendentals` are evaluations of exp, tanh, erf, rsqrt."""

    vector: int = 0
    comparisons: int = 0
    transcendentals: int = 0


class Extra(msgspec.Struct, frozen=True):
    """A tensor that a kind makes for its backward: a dropout mask, a row statistic, chosen indices.

    Its dims are the result's ("all"), those of the result without the last ("rows"), or operand 0's ("operand").
    """

    suffix: str
    dims: Literal["all", "rows", "operand"]
    format: str
    role: Role


class Kind(msgspec.Struct, frozen=True):
    """One kind of line. See the head of the file."""

    name: str
    forward: Work = Work()
    backward: Work = Work()
    keeps: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()
    linear: bool = False
    contracts: bool = False
    line: str = ""  # of a fused kind, the line that it is for, in the names that its inner lines use
    inner: tuple[str, ...] = ()
    recomputes: int = 0  # how many of the inner lines backward runs again
    alias: bool = False  # the result is a view of operand 0
    in_place: bool = False  # the result overwrites operand 0 (a matmul's epilogue); only the other operands are read
    passes_gradient: bool = False  # the gradient of each operand is the gradient of the result itself
    reindexes: bool = False  # tokens (operand 1's names) become slots or slots tokens: no sum crosses devices
    indexed: int | None = None  # this operand is read by rows, as many as the result needs
    starts_backward: bool = False  # its gradient is one: backward begins here
    state: int = 0  # numbers per row that devices exchange where the last name of operand 0 is split


CONTRACT = Kind("contract", contracts=True)
VIEW = Kind("view", alias=True, linear=True)

# Part of a tensor, as a view. Used where no gradient flows.
SLICE = Kind("slice", alias=True, linear=True)

# y = x + r; the gradient is passed to both as it is.
ADD = Kind("add", Work(vector=1), linear=True, passes_gradient=True)
# y = x + b as the epilogue of a matmul; backward sums the gradient over rows.
BIAS = Kind("bias", Work(vector=1), Work(vector=1), in_place=True)
# y = c x with a constant c.
SCALE = Kind("scale", Work(vector=1), Work(vector=1), linear=True)
# The same numbers in another format.
CAST = Kind("cast", linear=True)
# Pieces written side by side into a new tensor.
CONCAT = Kind("concat", backward=Work(vector=1), linear=True)

# max(x, 0); backward needs only where the output is positive, and the output is the next matmul's operand.
RELU = Kind("relu", Work(comparisons=1), Work(vector=1), keeps=("output",))
# max(x, 0)^2; backward 2 max(x, 0) dy.
RELU2 = Kind("relu2", Work(vector=1, comparisons=1), Work(vector=2, comparisons=1), keeps=("0",))
# x Phi(x) by the tanh form: x^3 (2), * 0.044715, + x, * c, tanh, + 1, * x, * 0.5: 8 and one tanh.
GELU = Kind("gelu", Work(vector=8, transcendentals=1), Work(vector=14, transcendentals=1), keeps=("0",))
# x sigma(x): -x, exp, + 1, x / (.); backward sigma(x) (1 + x (1 - sigma(x))) dy.
SILU = Kind("silu", Work(vector=3, transcendentals=1), Work(vector=7, transcendentals=1), keeps=("0",))
# act(gate) * up as one kernel: keeps both operands, makes act(gate) again.
GATED_SILU = Kind("gated-silu", Work(vector=4, transcendentals=1), Work(vector=10, transcendentals=1), keeps=("0", "1"))
GATED_GELU = Kind("gated-gelu", Work(vector=9, transcendentals=1), Work(vector=17, transcendentals=1), keeps=("0", "1"))
GATED_RELU = Kind("gated-relu", Work(vector=1, comparisons=1), Work(vector=2, comparisons=1), keeps=("0", "1"))
# a * b
MULTIPLY = Kind("multiply", Work(vector=1), Work(vector=2), keeps=("0", "1"))
# sigma(x), from its output.
SIGMOID = Kind("sigmoid", Work(vector=2, transcendentals=1), Work(vector=3), keeps=("output",))
# cap tanh(x / cap); backward (1 - y^2/cap^2) dy from the output.
SOFTCAP = Kind("softcap", Work(vector=2, transcendentals=1), Work(vector=3), keeps=("output",))

# Scaled by 1 / (1 - p) where the mask, one byte an element, says so.
DROPOUT = Kind("dropout", Work(vector=1), Work(vector=1), extras=(Extra("mask", "all", "bool", "mask"),), linear=True)
# exp(x - max) / sum: subtract, add up, divide; backward y (dy - sum(y dy)).
SOFTMAX = Kind("softmax", Work(vector=3, comparisons=1, transcendentals=1), Work(vector=4), keeps=("output",), state=2)
# x rsqrt(mean x^2) w: square, add up, scale, times w.
RMS_NORM = Kind(
    "rms-norm",
    Work(vector=4),
    Work(vector=9),
    keeps=("0", "1"),
    extras=(Extra("rstd", "rows", "float32", "statistic"),),
    state=1,
)
RMS_NORM_PLAIN = replace(RMS_NORM, keeps=("0",))
# (x - mean) rstd w + b: mean, subtract, square, add up, scale, times w, plus b.
LAYER_NORM = Kind(
    "layer-norm",
    Work(vector=7),
    Work(vector=12),
    keeps=("0", "1"),
    extras=(Extra("mean", "rows", "float32", "statistic"), Extra("rstd", "rows", "float32", "statistic")),
    state=2,
)
LAYER_NORM_PLAIN = replace(LAYER_NORM, keeps=("0",))
# x cos + turn(x) sin; backward turns the other way. The tables are shared by all layers and not counted.
ROTARY = Kind("rotary", Work(vector=3), Work(vector=3), linear=True)
# Rows of a table; backward adds each gradient row into a table of zeros. Operand 0 are the indices, kept as given.
GATHER = Kind("gather", backward=Work(vector=1), keeps=("0",), linear=True, indexed=1)
# Cross-entropy as log-softmax and a pick: subtract, add up, subtract; keeps the log-probabilities.
LOSS = Kind(
    "loss",
    Work(vector=3, comparisons=1, transcendentals=1),
    Work(vector=2, transcendentals=1),
    keeps=("1",),
    extras=(Extra("log_probabilities", "operand", "float32", "activation"),),
    state=2,
    starts_backward=True,
)
# softmax(q k) v tile by tile, the scores never stored: keeps q, k, v, the output and one log-sum-exp per row and head;
# backward makes the scores again (the fifth matmul; Dao 2023). The work is that of scale and softmax, per score.
ATTENTION = Kind(
    "attention",
    Work(vector=4, comparisons=1, transcendentals=1),
    Work(vector=8, transcendentals=1),
    keeps=("0", "1", "2", "output"),
    extras=(Extra("lse", "rows", "float32", "statistic"),),
    line="batch query kv group d_head, batch key kv d_head, batch key kv d_value -> batch query kv group d_value",
    inner=(
        "batch query kv group d_head, batch key kv d_head -> batch kv group query key",
        "batch kv group query key, batch key kv d_value -> batch query kv group d_value",
    ),
    recomputes=1,
)
# The same where every head reads one cached row for keys and values (multi-head latent attention, absorbed).
LATENT_ATTENTION = replace(
    ATTENTION,
    line="batch query kv group d_latent, batch key d_latent, batch key kv_rank -> batch query kv group kv_rank",
    inner=(
        "batch query kv group d_latent, batch key d_latent -> batch kv group query key",
        "batch kv group query key, batch key kv_rank -> batch query kv group kv_rank",
    ),
)

# The top_k of the experts' scores for every token, with softmax over them; which ones is kept as indices.
ROUTE = Kind(
    "route",
    Work(vector=3, comparisons=2, transcendentals=1),
    Work(vector=4),
    keeps=("output",),
    extras=(Extra("experts", "all", "int64", "activation"),),
)
# Tokens copied to the slots of the experts they chose; backward adds the copies' gradients.
DISPATCH = Kind("dispatch", backward=Work(vector=1), keeps=("1",), reindexes=True)
# Slots times their weights, added up at their tokens; backward also needs the slots' values for the weights' gradient.
COMBINE = Kind("combine", Work(vector=2), Work(vector=3), keeps=("0", "1"), reindexes=True)
# New keys and values written into the cache.
CACHE = Kind("cache", linear=True)
# The mean of everything, where backward begins; every element's gradient is the same constant.
MEAN = Kind("mean", Work(vector=1), Work(vector=1), starts_backward=True)
