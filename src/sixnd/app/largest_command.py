"""`sixnd largest`: the largest model that a cluster can train."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from sixnd.app.output import TABLES, Output, emit
from sixnd.app.plan_options import WHOLE


def largest(
    *,
    on: str = "h100",
    optimizer: str = "adamw",
    precision: str = "bf16-master",
    batch: Annotated[int, WHOLE] = 1,
    seq: Annotated[int | None, WHOLE] = None,
    recompute: str = "none",
    layers_like: str = "llama-3-8b",
    output: Output = TABLES,
) -> int:
    """The largest model that a cluster can train, with its activations and without.

    Parameters
    ----------
    on
        The devices: 8xh100.
    optimizer
        Whose state is kept: adamw, sgd, adam8bit ...
    precision
        The policy that numbers are stored by; bf16 is the lecture's 2 + 2 + 8 bytes.
    batch
        Sequences in the micro-batch of one device, for the activations.
    seq
        Tokens of a sequence. Default: the context of the model it is shaped like, up to 8192.
    recompute
        none, selective, full, sqrt or every:K.
    layers_like
        The model whose proportions are kept.
    """
    from sixnd.machines import parse_cluster
    from sixnd.models.config import load_architecture
    from sixnd.planning.choices import check_engine, read_choices
    from sixnd.planning.napkin import largest_model
    from sixnd.reporting.napkin_report import largest_report

    cluster, like = parse_cluster(on), load_architecture(layers_like)
    chosen = read_choices(
        like,
        cluster.n_devices,
        batch=batch,
        seq=seq,
        phase="train",
        precision=precision,
        optimizer=optimizer,
        recompute=recompute,
        attention="flash",
        accumulation=1,
        shard=None,
        mesh=None,
        foreach=False,
        global_batch=None,
    )
    check_engine(cluster.machine, chosen.plan)
    emit(largest_report(largest_model(cluster, like, replace(chosen.plan)), cluster, chosen.plan, chosen.notes), output)
    return 0
