"""The reports that every renderer is tried on: a small one, one that means harm, and one that holds nothing."""

import pytest

from sixnd.reporting.report import Column, Report, Table

MEMORY = Table(
    "Memory",
    (Column("category"), Column("bytes", "right"), Column("share", "right")),
    (("parameters", "15.0 GiB", "25.0 %"), ("optimizer", "45.0 GiB", "75.0 %")),
    bars=(0.25, 0.75),
    caption="peak during forward head.loss",
)
OPERATIONS = Table(
    "operations",
    (Column("path"), Column("FLOPs", "right")),
    (("layers.mlp.up", "30.8 TFLOP"), ("head", "-")),
    records=({"path": "layers.mlp.up", "flops": 30_786_325_577_728}, {"path": "head", "flops": 0}),
)
HARM = '<script>alert("1")</script> | `x` [a](http://b) \x1b[31mred\x1b[0m \u202eback\n# next & <img src=x onerror=y>'


@pytest.fixture
def report():
    return Report(
        "Account of tiny",
        "Training tiny on h100 fits: 60.0 GiB of 79.6 GiB.",
        ok=True,
        tables=(MEMORY, OPERATIONS),
        notes=("precision bf16-master",),
        uncounted=("gradient clipping",),
    )


@pytest.fixture
def hostile():
    table = Table(
        HARM, (Column(HARM), Column("=1+1", "right")), ((HARM, '=HYPERLINK("x")'), ("-", "-1.5 GiB")), caption=HARM
    )
    return Report(HARM, HARM, ok=False, tables=(table,), notes=(HARM,), uncounted=(HARM,))


@pytest.fixture
def empty():
    return Report("", "", tables=(Table("Nothing", (Column("a"),), ()),))
