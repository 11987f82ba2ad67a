"""What do a precision policy and an optimizer store, and what does an update do?"""

from __future__ import annotations

import tomllib
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sixnd.errors import UsageError, near_miss
from sixnd.formats import Format, bits_per_value, get_format
from sixnd.notation.program import Numerics


class Precision(msgspec.Struct, frozen=True):
    """A precision policy; see `precisions.toml` for what each format is for."""

    name: str
    parameter: Format
    gradient: Format | None
    master: Format | None
    state: Format
    compute: Format
    matmul: Format
    engine: str
    weight_only: bool
    source: str

    def numerics(self, *, fused: bool = True, gathered: bool = False) -> Numerics:
        """The formats that a program's lines are written in."""
        gradient = self.gradient or self.compute
        parameter = self.compute if gathered and self.matmul == self.compute else self.parameter
        return Numerics(parameter, self.compute, self.matmul, gradient, self.weight_only, fused, self.engine)


class Update(msgspec.Struct, frozen=True):
    """What an optimizer keeps and does for one element of a parameter."""

    states: int
    flops: int
    newton_schulz_steps: int = 0
    factored: bool = False


class Optimizer(msgspec.Struct, frozen=True):
    """An optimizer: the update of most parameters, that of hidden matrices, and its state format if it has its own."""

    name: str
    update: Update
    matrix_update: Update
    format: Format | None
    source: str


def precision_names() -> list[str]:
    """The names of all precision policies."""
    return list(_table("precisions.toml"))


def optimizer_names() -> list[str]:
    """The names of all optimizers."""
    return list(_table("optimizers.toml"))


@cache
def get_precision(name: str) -> Precision:
    """Look a precision policy up; raises `UsageError` with the near misses for an unknown name.

    >>> get_precision("bf16-master").master.name
    'float32'
    """
    row = _row("precisions.toml", name, "precision policy")

    def held(key: str) -> Format | None:
        return get_format(row[key]) if key in row else None

    parameter, compute, matmul = get_format(row["parameter"]), get_format(row["compute"]), get_format(row["matmul"])
    return Precision(
        name.lower(),
        parameter,
        held("gradient"),
        held("master"),
        held("state") or get_format("float32"),
        compute,
        matmul,
        row.get("engine", matmul.name),
        row.get("weight_only", False),
        row["source"],
    )


@cache
def get_optimizer(name: str) -> Optimizer:
    """Look an optimizer up; raises `UsageError` with the near misses for an unknown name.

    >>> get_optimizer("adamw").update.states
    2
    """
    row = _row("optimizers.toml", name, "optimizer")
    update = Update(row["states"], row["flops"], factored=row.get("factored", False))
    matrix = Update(**row["matrix"]) if "matrix" in row else update
    own = row.get("format")
    held = Format(f"{name}-state", own["bits"], own["block"], own["scale_bits"]) if own else None
    return Optimizer(name.lower(), update, matrix, held, row["source"])


def state_format(precision: Precision, optimizer: Optimizer) -> Format:
    """The format of the optimizer's numbers: its own, or the policy's."""
    return optimizer.format or precision.state


def stored_per_param(precision: Precision, optimizer: Optimizer, *, trains: bool = True) -> dict[str, Fraction]:
    """Bytes that are kept for each parameter of a matrix, by what they are.

    >>> {name: int(n) for name, n in stored_per_param(get_precision("bf16"), get_optimizer("adamw")).items()}
    {'parameter': 2, 'gradient': 2, 'optimizer': 8}
    """
    bits = {"parameter": bits_per_value(precision.parameter)}
    if trains:
        bits["gradient"] = bits_per_value(precision.gradient or precision.compute)
        if precision.master is not None:
            bits["master"] = bits_per_value(precision.master)
        if optimizer.matrix_update.states and not optimizer.matrix_update.factored:
            bits["optimizer"] = optimizer.matrix_update.states * bits_per_value(state_format(precision, optimizer))
    return {name: n / 8 for name, n in bits.items()}


def bytes_per_param_text(precision: Precision, optimizer: Optimizer, *, trains: bool = True) -> str:
    """The same, spelled out.

    >>> bytes_per_param_text(get_precision("bf16-master"), get_optimizer("adamw"))
    '2 parameter + 2 gradient + 4 master + 8 optimizer = 16'
    """
    stored = stored_per_param(precision, optimizer, trains=trains)
    words = " + ".join(f"{float(n):g} {name}" for name, n in stored.items())
    return f"{words} = {float(sum(stored.values())):g}"


def _row(file: str, name: str, what: str) -> dict[str, Any]:
    table = _table(file)
    if name.lower() not in table:
        raise UsageError(f"{what} {name!r} is not known: expected one of {', '.join(table)}{near_miss(name, table)}")
    return table[name.lower()]


@cache
def _table(file: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
