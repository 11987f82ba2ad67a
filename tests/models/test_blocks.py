"""Do the lines written for an architecture have the parameters and the FLOPs that outsiders count?

`golden.jsonl` holds small random configs of every family with transformers' parameter count and, where torch's
FlopCounterMode sees every matmul, its forward FLOPs; `witness.py` writes it. The lines must equal both exactly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sixnd.models.config import load_architecture, read_config
from sixnd.plan import Plan
from sixnd.planning.account import params_of
from sixnd.planning.build import build

GOLDEN = [json.loads(line) for line in Path(__file__).with_name("golden.jsonl").read_text().splitlines()]
ACTIVE = (  # published active parameters, to the digits that their model cards print
    ("mixtral-8x7b", 12.9e9, 0.01),
    ("deepseek-v3", 37e9, 0.02),
    ("qwen3-30b-a3b", 3.3e9, 0.02),
    ("qwen3-235b-a22b", 22e9, 0.02),
    ("gpt-oss-120b", 5.1e9, 0.15),
)


def row_id(row: dict[str, Any]) -> str:
    """A readable name for a golden row."""
    return str(row.get("id") or f"{row['family']}-{GOLDEN.index(row)}")


@pytest.mark.parametrize("row", GOLDEN, ids=row_id)
def test_lines_equal_the_outside_witnesses(row: dict[str, Any]) -> None:
    built = build(read_config(row["config"], "golden"), Plan(seq=row.get("seq", 64)))
    assert built.n_params == row["params"]
    if row.get("flops"):
        forward = built.ledger.totals(lambda op: op.phase)["forward"]
        assert forward.matrix_flops == row["flops"]


@pytest.mark.parametrize(("name", "published", "tolerance"), ACTIVE, ids=[name for name, *_ in ACTIVE])
def test_active_parameters_are_those_published(name: str, published: float, tolerance: float) -> None:
    params = params_of(build(load_architecture(name), Plan(seq=1)))
    assert params.active == pytest.approx(published, rel=tolerance)
