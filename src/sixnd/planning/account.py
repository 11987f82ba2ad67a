"""The main job: what does one step of this model cost on this cluster, and does it fit?

    account(model, on=..., ...) : choices -> Plan -> Built (ledger) -> memory, FLOPs, prices -> Account

Everything is a fold over the ledger of one device; no formula for a model stands here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec.structs import replace

from sixnd.ledger import Cost, Ledger, Phase
from sixnd.machines import Cluster, parse_cluster, with_peak
from sixnd.machines import peak as peak_rate
from sixnd.models.architecture import Architecture
from sixnd.models.config import load_architecture
from sixnd.models.weight_check import weights_note
from sixnd.notation.program import product
from sixnd.plan import Plan
from sixnd.planning import notes
from sixnd.planning.answers import (
    Account,
    Flops,
    ModelPart,
    Params,
    PhaseFlops,
    Project,
    Published,
    TimePart,
    Workload,
)
from sixnd.planning.build import DATA_AXIS, Built, build
from sixnd.planning.choices import MOST_TOKENS, Choices, check_engine, read_choices, within
from sixnd.planning.conventions import attention_width, check_convention, flops_by_convention
from sixnd.planning.estimate import Estimate, estimate, operations
from sixnd.planning.experience import experience
from sixnd.planning.memory import memory_part
from sixnd.planning.policies import bytes_per_param_text, get_precision
from sixnd.planning.remedies import find_remedies, find_room
from sixnd.planning.verdict import verdict


def account(
    model: str | Architecture,
    *,
    on: str = "h100",
    batch: int = 1,
    seq: int | None = None,
    phase: str = "train",
    precision: str = "bf16-master",
    optimizer: str = "adamw",
    recompute: str = "none",
    attention: str = "flash",
    accumulation: int = 1,
    shard: str | None = None,
    mesh: str | Mapping[str, int] | None = None,
    foreach: bool = False,
    kernels: str = "fused",
    mfu_convention: str = "exact",
    tokens: int | None = None,
    global_batch: int | None = None,
    peak: float | None = None,
    advise: bool = True,
) -> Account:
    """Account for one step of `model`: an optimizer step in training, a forward pass in prefill and decode.

    `batch` is the micro-batch of one device in sequences of `seq` tokens (in decode: of context); `seq` defaults to the
    model's own context, up to 8192. `global_batch` (tokens for each optimizer step) sets the accumulation instead.
    FLOPs, memory and time are for one device. `advise` also looks for what would make it fit, or what else would.

    Raises `UsageError` for choices that do not exist or contradict each other, `InputError` for a model or machine that
    is not understood.

    >>> account("llama-3-8b", on="8xh100", seq=2048, advise=False).flops.forward.matrix
    32938104193024
    """
    architecture = load_architecture(model) if isinstance(model, str) else model
    cluster = parse_cluster(on)
    if peak is not None:
        cluster = Cluster(with_peak(cluster.machine, peak, get_precision(precision).engine), cluster.n_devices)
    chosen = read_choices(
        architecture,
        cluster.n_devices,
        batch=batch,
        seq=seq,
        phase=phase,
        precision=precision,
        optimizer=optimizer,
        recompute=recompute,
        attention=attention,
        accumulation=accumulation,
        shard=shard,
        mesh=mesh,
        foreach=foreach,
        kernels=kernels,
        global_batch=global_batch,
    )
    check_engine(cluster.machine, chosen.plan)
    convention = check_convention(mfu_convention)
    if tokens is not None:
        within("--tokens", tokens, MOST_TOKENS)
    answer = _assemble(architecture, cluster, chosen, convention, tokens, advise)
    held = weights_note(model, architecture, answer.model.params.total) if isinstance(model, str) else None
    return replace(answer, notes=(held, *answer.notes)) if held else answer


def _assemble(
    model: Architecture, cluster: Cluster, chosen: Choices, convention: str, tokens: int | None, advise: bool
) -> Account:
    plan = chosen.plan
    built = build(model, plan, cluster.n_devices)
    memory = memory_part(built, cluster)
    flops = flops_part(built)
    estimated = estimate(built.ledger, cluster, built.precision.engine)
    time = _time_part(built, cluster, flops, estimated, convention)
    shell = Account(
        model=_model_part(built),
        workload=_workload(built, cluster),
        flops=flops,
        memory=memory,
        time=time,
        operations=operations(estimated.prices),
        uncounted=notes.uncounted(built),
        notes=(*notes.above_peak(time), *chosen.notes, *notes.assumed(built, cluster, estimated)),
        verdict="",
        remedies=find_remedies(model, plan, cluster) if advise and not memory.fits else (),
        room=find_room(model, plan, cluster) if advise and memory.fits else None,
        project=_project(tokens, built, flops, time, cluster),
        built=built,
        cluster=cluster,
    )
    return replace(shell, verdict=verdict(shell))


def _model_part(built: Built) -> ModelPart:
    return ModelPart(built.model.name, built.model.family, params_of(built))


def params_of(built: Built) -> Params:
    """Count parameters: all, those that one token uses (its experts' share), and the input embedding's."""
    active = embedding = total = 0
    for part in built.parts:
        for p in part.program.parameters:
            n = product(p.dims, part.sizes) * part.count
            total += n
            if "expert" in p.stacked or (p.dims and p.dims[0] == "expert" and len(p.dims) > 1):
                active += n * int(part.sizes["top_k"]) // int(part.sizes["expert"])
            else:
                active += n
    table = built.parts[0].program.parameters[0]
    embedding = product(table.dims, built.parts[0].sizes)
    return Params(total, active, embedding)


def _workload(built: Built, cluster: Cluster) -> Workload:
    plan, precision = built.plan, built.precision
    trains = plan.phase == "train"
    return Workload(
        plan.phase,
        plan.micro_batch,
        plan.accumulation,
        plan.seq,
        tokens_per_step(plan) * cluster.n_devices,
        plan.precision,
        bytes_per_param_text(precision, built.optimizer, trains=trains),
        plan.optimizer if trains else "none",
        recompute_text(plan),
        plan.attention,
        cluster.n_devices,
        cluster.machine.name,
        plan.shard,
        {DATA_AXIS: cluster.n_devices},
    )


def tokens_per_step(plan: Plan) -> int:
    """Tokens that one device processes in a step."""
    return plan.micro_batch * (1 if plan.phase == "decode" else plan.seq) * plan.accumulation


def recompute_text(plan: Plan) -> str:
    """The recompute policy as it is typed."""
    return f"every:{plan.recompute.every}" if plan.recompute.policy == "every" else plan.recompute.policy


def flops_part(built: Built) -> Flops:
    """FLOPs by phase, and the model's own under every convention."""
    sums: defaultdict[Phase, Cost] = defaultdict(Cost, built.ledger.totals(lambda op: op.phase))
    tokens, params = tokens_per_step(built.plan), params_of(built)
    model = sums["forward"].matrix_flops + sums["backward"].matrix_flops
    causal = sums["forward"].masked_matrix_flops + sums["backward"].masked_matrix_flops
    n_matmul = params.active - (0 if built.model.tied else params.embedding)
    per_token = flops_by_convention(
        params.active, n_matmul, attention_width(built.model), built.plan.seq, tokens, model, causal
    )
    if built.plan.phase != "train":  # a forward pass alone is a third of it
        per_token = {name: value if name.startswith("exact") else value // 3 for name, value in per_token.items()}
    passes = 6 if built.plan.phase == "train" else 2
    total = sum(cost.flops for cost in sums.values())
    return Flops(
        _phase(sums["forward"]),
        _phase(sums["backward"]),
        _phase(sums["recompute"]),
        _phase(sums["optimizer"]),
        total,
        model,
        model // tokens,
        passes * n_matmul * tokens,
        per_token,
    )


def _phase(cost: Cost) -> PhaseFlops:
    return PhaseFlops(cost.matrix_flops, cost.masked_matrix_flops, cost.vector_flops)


def _time_part(built: Built, cluster: Cluster, flops: Flops, estimated: Estimate, convention: str) -> TimePart:
    rate = peak_rate(cluster.machine, built.precision.engine).flop_per_second
    numerator = flops.conventions[convention]
    tokens = tokens_per_step(built.plan)
    return TimePart(
        estimated.ideal_seconds,
        estimated.seconds,
        numerator / (estimated.seconds * rate),
        numerator / (estimated.ideal_seconds * rate),
        convention,
        rate,
        tokens * cluster.n_devices / estimated.seconds,
        tokens / estimated.seconds,
        estimated.communication_seconds,
        estimated.exposed_seconds,
        estimated.bound,
        _published(built, cluster, estimated.seconds, numerator / (estimated.seconds * rate)),
    )


def _published(built: Built, cluster: Cluster, seconds: float, mfu: float) -> Published | None:
    if built.plan.phase != "train":
        return None
    known = experience(cluster.machine.name)
    return Published(
        seconds * known.ratio,
        mfu / known.ratio,
        known.ratio,
        known.low,
        known.high,
        known.runs,
        known.machine,
        known.source,
    )


def _project(tokens: int | None, built: Built, flops: Flops, time: TimePart, cluster: Cluster) -> Project | None:
    if tokens is None:
        return None
    each = tokens_per_step(built.plan) * cluster.n_devices
    steps = -(-tokens // each)
    days = steps * time.seconds / 86400
    published = days * time.published.ratio if time.published else None
    flops_of_all = flops.total * cluster.n_devices * steps
    model = flops.model * cluster.n_devices * steps
    return Project(tokens, steps, flops_of_all, model, days, days * 24 * cluster.n_devices, published)


def step_ledger(model: Architecture, plan: Plan, n_devices: int = 1) -> Ledger:
    """The ledger of one step, for those who want to fold it themselves."""
    return build(model, plan, n_devices).ledger
