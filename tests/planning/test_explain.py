"""Does every formula, with its sizes filled in, make the number beside it?"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest

from sixnd.planning.account import account
from sixnd.planning.explain import explained, fill, local_sizes

PLANS = (
    ("gpt2", {}),
    ("llama-3-8b", {"on": "8xh100", "recompute": "full", "batch": 2}),
    ("mixtral-8x7b", {"on": "16xh100", "seq": 1000}),
    ("deepseek-v3", {"attention": "math", "seq": 512}),
    ("deepseek-v3", {"phase": "decode"}),
    ("gemma-2-9b", {"phase": "prefill", "kernels": "eager"}),
    ("opt-125m", {"precision": "fp8-training"}),
)


def value(filled: str) -> Fraction:
    """Multiply out what was filled in."""
    return sum((prod(Fraction(factor) for factor in term.split("·")) for term in filled.split(" + ")), Fraction(0))


@pytest.mark.parametrize(("model", "plan"), PLANS, ids=[f"{m} {' '.join(p)}" for m, p in PLANS])
def test_every_formula_makes_its_number(model: str, plan: dict[str, object]) -> None:
    answer = account(model, advise=False, **plan)
    counted = [o for o in answer.operations if o.formula and o.path != "optimizer" and o.kind != "accumulate"]
    assert counted
    for o in counted:
        filled = fill(o.formula, local_sizes(answer, o.path))
        assert o.count * value(filled) == o.flops, (o.path, o.phase, filled)


def test_headline_numbers_are_explained() -> None:
    rows = {row.name: row for row in explained(account("llama-3-8b", on="8xh100", advise=False))}
    assert {"parameters", "forward FLOPs", "backward FLOPs", "model FLOPs", "6ND", "peak memory", "MFU"} <= set(rows)
    assert rows["parameters"].filled.endswith("= 8,030,261,248")
    assert "2·1·8192·4096·14336" in rows["forward FLOPs"].filled
