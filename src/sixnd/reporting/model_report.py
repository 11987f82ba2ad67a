"""Models as reports: what is known by name, and what a weights file holds."""

from __future__ import annotations

from sixnd.models.architecture import Architecture, Experts
from sixnd.models.bundled import bundled_names
from sixnd.models.config import load_architecture
from sixnd.models.families import known_families
from sixnd.models.weight_check import WeightCheck
from sixnd.models.weights import Weights
from sixnd.plan import Plan
from sixnd.planning.account import params_of
from sixnd.planning.answers import Params
from sixnd.planning.build import build
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import format_bytes, format_count

MOST_TENSORS = 30


def models_report() -> Report:
    """Every bundled model with its size, and the families a config.json may be of."""
    found = [(load_architecture(name), count(load_architecture(name))) for name in bundled_names()]
    columns = (
        Column("model"),
        Column("family"),
        Column("parameters", "right"),
        Column("active", "right"),
        Column("layers", "right"),
        Column("d_model", "right"),
        Column("heads", "right"),
        Column("vocab", "right"),
        Column("context", "right"),
    )
    rows = tuple(_model_row(model, params) for model, params in found)
    families = known_families()
    return Report(
        "Models",
        f"{len(found)} models by name; a config.json may be of {len(families)} families.",
        None,
        (Table("models", columns, rows),),
        ("families: " + ", ".join(families),),
        data={
            "schema": "sixnd.models/1",
            "models": [
                {
                    "name": m.name,
                    "family": m.family,
                    "params": p.total,
                    "active": p.active,
                    "layers": len(m.layers),
                    "d_model": m.d_model,
                }
                for m, p in found
            ],
            "families": list(families),
        },
    )


def count(model: Architecture) -> Params:
    """Count a model's parameters by its lines."""
    return params_of(build(model, Plan(seq=1)))


def _model_row(model: Architecture, params: Params) -> tuple[str, ...]:
    attention, ff = model.layers[-1].attention, model.layers[-1].feed_forward
    family = f"{model.family}, {ff.n_experts} experts" if isinstance(ff, Experts) else model.family
    heads = str(attention.heads) if attention.heads == attention.kv_heads else f"{attention.heads}/{attention.kv_heads}"
    active = "" if params.active == params.total else format_count(params.active)
    return (
        model.name,
        family,
        format_count(params.total),
        active,
        str(len(model.layers)),
        f"{model.d_model:,}",
        heads,
        f"{model.vocab:,}",
        f"{model.max_positions:,}",
    )


def weights_report(weights: Weights, check: WeightCheck | None, name: str) -> Report:
    """What a weights file holds by format, its largest tensors, and how that compares with the config."""
    by_format: dict[str, list[int]] = {}
    for tensor in weights.tensors:
        held = by_format.setdefault(tensor.format_name, [0, 0, 0])
        held[0], held[1], held[2] = held[0] + 1, held[1] + tensor.n_values, held[2] + tensor.n_bytes
    formats = tuple(
        (key, f"{n:,}", format_count(values), format_bytes(size)) for key, (n, values, size) in by_format.items()
    )
    largest = sorted(weights.tensors, key=lambda t: -t.n_bytes)[:MOST_TENSORS]
    tensors = tuple(
        (t.name, " x ".join(map(str, t.shape)) or "scalar", t.format_name, format_bytes(t.n_bytes)) for t in largest
    )
    left = len(weights.tensors) - len(largest)
    tables = [
        Table(
            "By format",
            (Column("format"), Column("tensors", "right"), Column("values", "right"), Column("bytes", "right")),
            formats,
        ),
        Table(
            "tensors",
            (Column("tensor"), Column("shape"), Column("format"), Column("bytes", "right")),
            tensors,
            caption=f"the {len(largest)} largest; {left:,} more in --json" if left else "",
        ),
    ]
    if check is not None:
        tables.insert(0, _check_table(check))
    amount = f"{len(weights.tensors):,} tensors, {format_count(weights.n_params)} values"
    verdict = f"{name}: {amount}, {format_bytes(weights.n_bytes)}."
    agrees = None if check is None else check.unexplained == 0
    if check is not None:
        verdict += (
            " It agrees with the config."
            if agrees
            else f" {check.unexplained:,} values are not explained by the config."
        )
    data: dict[str, object] = {
        "schema": "sixnd.weights/1",
        "n_params": weights.n_params,
        "n_bytes": weights.n_bytes,
        "agrees": agrees,
        "tensors": [
            {"name": t.name, "shape": list(t.shape), "format": t.format_name, "bytes": t.n_bytes}
            for t in weights.tensors
        ],
    }
    return Report("Weights", verdict, agrees, tuple(tables), ("only headers were read, no weights",), data=data)


def _check_table(check: WeightCheck) -> Table:
    rows = [("the config's parameters", f"{check.counted:,}"), ("values in the file", f"{check.stored:,}")]
    rows += [(reason.text, f"{reason.n_values:+,}") for reason in check.reasons]
    rows.append(("not explained", f"{check.unexplained:+,}"))
    return Table("Beside the config", (Column("what"), Column("values", "right")), tuple(rows))
