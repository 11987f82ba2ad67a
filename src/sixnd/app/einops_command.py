"""`sixnd einops`: what one line costs."""

from __future__ import annotations

from typing import cast, get_args

from sixnd.app.output import TABLES, Output, emit
from sixnd.errors import UsageError, near_miss


def einops(
    line: str,
    /,
    *sizes: str,
    op: str | None = None,
    reduction: str = "sum",
    format: str = "bf16",
    on: str = "h100",
    output: Output = TABLES,
) -> int:
    """What one line costs: FLOPs, bytes, view or copy, and the order of several operands. Operands are contiguous.

    Parameters
    ----------
    line
        The line, such as "batch seq d, d k -> batch seq k".
    sizes
        The size of every name, such as batch=2 seq=8; those of an ellipsis as ...=2,5.
    op
        einsum, rearrange, reduce or repeat. Default: what the line looks like.
    reduction
        Of a reduce: sum, mean, max, min or prod.
    format
        The format of every tensor.
    on
        The machine whose roofline is asked.
    """
    from sixnd.formats import get_format
    from sixnd.machines import resolve
    from sixnd.notation.einops import Operation, Reduction, line_cost
    from sixnd.reporting.einops_report import einops_report

    known, ellipsis = _sizes(sizes)
    answer = line_cost(
        line,
        known,
        ellipsis=ellipsis,
        op=None if op is None else cast(Operation, _one_of("--op", op, get_args(Operation))),
        reduction=cast(Reduction, _one_of("--reduction", reduction, get_args(Reduction))),
        format=get_format(format),
    )
    emit(einops_report(line, answer, format, resolve(on)), output)
    return 0


def _sizes(words: tuple[str, ...]) -> tuple[dict[str, int], list[int] | None]:
    """Read b=2 s=8 ...=2,5; raises `UsageError` for a word that is no size."""
    known: dict[str, int] = {}
    ellipsis: list[int] | None = None
    for word in words:
        name, equals, text = word.partition("=")
        try:
            numbers = [int(part) for part in text.split(",") if part or name != "..."]
        except ValueError:
            numbers = []
        if name == "..." and equals:
            ellipsis = numbers
        elif name and equals and len(numbers) == 1 and name not in known:
            known[name] = numbers[0]
        else:
            raise UsageError(
                f"{word[:60]!r} is no size: write name=number once for each name, as in batch=2, or ...=2,5"
            )
    return known, ellipsis


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise UsageError(f"{option} {value!r} is none of {', '.join(allowed)}{near_miss(value, allowed)}")
    return value
