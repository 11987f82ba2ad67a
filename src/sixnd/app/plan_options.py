"""The options that describe a plan, and the keywords of `sixnd.account` that they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter, Token

from sixnd.errors import UsageError
from sixnd.units import parse_count, parse_flop_per_second

LONGEST_NUMBER = 40
LEAST_PEAK = 1e9


def whole(hint: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number as it stands; raises `ValueError` for 1.5, which must not become 1, and for 8k."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9](_?[0-9])*", text) or len(text) > LONGEST_NUMBER:
        raise ValueError(f"{text[:LONGEST_NUMBER]!r} is no whole number")
    return int(text)


WHOLE = Parameter(converter=whole)


@Parameter(name="*")
@dataclass(frozen=True)
class PlanOptions:
    """How a step is done, and where."""

    on: Annotated[str, Parameter(help="The devices: h100, 8xh100, 1024xb200.")] = "h100"
    batch: Annotated[int, WHOLE, Parameter(help="Sequences in the micro-batch of one device.")] = 1
    seq: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Tokens of a sequence; in decode, the context. Default: the model's, up to 8192."),
    ] = None
    phase: Annotated[str, Parameter(help="train, prefill or decode.")] = "train"
    precision: Annotated[
        str, Parameter(help="bf16-master, bf16, fp32, amp-bf16, fp8-training ...; to serve also int8, int4 ...")
    ] = "bf16-master"
    optimizer: Annotated[
        str, Parameter(help="sgd, momentum, adagrad, rmsprop, adam, adamw, adam8bit, adafactor, lion, muon.")
    ] = "adamw"
    recompute: Annotated[
        str, Parameter(help="What backward makes again: none, selective, full, sqrt, or every:K blocks.")
    ] = "none"
    attention: Annotated[str, Parameter(help="flash (no scores stored) or math (all of them).")] = "flash"
    kernels: Annotated[
        str, Parameter(help="fused (a norm or a gated activation is one kernel) or eager (uncompiled PyTorch).")
    ] = "fused"
    accumulation: Annotated[int, WHOLE, Parameter(help="Micro-batches for each optimizer step.")] = 1
    shard: Annotated[
        str | None, Parameter(help="none, ddp, zero1, zero2, zero3. Default: zero3 on several devices.")
    ] = None
    mesh: Annotated[str | None, Parameter(help="Devices by axis, such as dp=8.")] = None
    foreach: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="The optimizer's many-tensor form, which needs a temporary."),
    ] = False
    global_batch: Annotated[
        str | None, Parameter(help="Tokens for each optimizer step over all devices (4M); sets the accumulation.")
    ] = None
    tokens: Annotated[str | None, Parameter(help="Tokens of the whole run (15T): adds days and device-hours.")] = None
    mfu_convention: Annotated[
        str, Parameter(help="What MFU divides: exact, exact-causal, 6N, 6N+12LHT, 6Nmm+12LHT, 6Nmm+6LHT.")
    ] = "exact"
    peak: Annotated[str | None, Parameter(help="Another peak for the device, such as 800TFLOP/s.")] = None


ONE_STEP = PlanOptions()
"""The defaults of every command."""


def keywords(options: PlanOptions) -> dict[str, Any]:
    """The keywords of `sixnd.account`; raises `UnitError` for an amount that cannot be read."""
    words = dict(vars(options))
    for name in ("global_batch", "tokens"):
        if words[name] is not None:
            words[name] = parse_count(words[name], minimum=1, what=f"--{name.replace('_', '-')}")
    if words["peak"] is not None:
        words["peak"] = parse_flop_per_second(words["peak"])
        if words["peak"] < LEAST_PEAK:
            raise UsageError(f"--peak {options.peak}: no device is that slow; write the unit, as in 800TFLOP/s")
    return words
