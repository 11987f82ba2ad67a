"""What is assumed in an account, and what is not counted? Said with every answer."""

from __future__ import annotations

from sixnd.machines import Cluster, engine_rates
from sixnd.models.architecture import Experts
from sixnd.plan import Plan
from sixnd.planning.answers import TimePart
from sixnd.planning.build import Built
from sixnd.planning.estimate import Estimate, links_recorded
from sixnd.planning.memory import CONTEXT_BYTES, FRAGMENTATION
from sixnd.units import format_bytes, format_percent, format_seconds


def assumed(built: Built, cluster: Cluster, estimated: Estimate) -> tuple[str, ...]:
    """The assumptions that shaped this answer."""
    alias = (cluster.machine.alias_note,) if cluster.machine.alias_note else ()
    return (*built.model.notes, *alias, *_work(built), *_memory(built), *_time(built, cluster, estimated))


def above_peak(time: TimePart) -> tuple[str, ...]:
    """An MFU above one is no feat: its numerator counts work that the kernels skip."""
    if max(time.mfu, time.ideal_mfu) <= 1:
        return ()
    return (
        f"MFU above 100 %: the convention {time.mfu_convention} counts masked query x key pairs, which flash attention "
        "skips; --mfu-convention exact-causal does not",
    )


def uncounted(built: Built) -> tuple[str, ...]:
    """What happens in a real step and is in no number here."""
    common = ["data loading and logging", "rotary tables and constant multipliers"]
    if built.plan.phase == "train":
        common += ["gradient clipping", "loss scaling"] if "fp16" in built.plan.precision else ["gradient clipping"]
    else:
        common += ["sampling", "the engine's scheduler", "splitting one copy of the model over several devices"]
    if built.sharding.parameters and _has_experts(built):
        common.append("expert parallelism, which splits the experts over devices instead of gathering them all")
    return tuple(common)


def _has_experts(built: Built) -> bool:
    return any(isinstance(layer.feed_forward, Experts) for layer in built.model.layers)


def _work(built: Built) -> list[str]:
    plan = built.plan
    said = [f"precision {plan.precision}: {built.precision.source}"]
    kernels = {"flash": "a fused kernel that stores no scores", "math": "line by line, every score stored"}
    said.append(f"attention {plan.attention}: {kernels[plan.attention]}; FLOPs count every query x key pair")
    said.append(_kernels(plan))
    if plan.phase == "train":
        form = "many-tensor form, with a temporary" if plan.foreach else "fused form, no temporary"
        said.append(f"optimizer {plan.optimizer}, {form}: {built.optimizer.source}")
        said.append("loss in float32 over all positions: logits are widened and log-probabilities kept")
    else:
        said.append(
            "caches hold what each layer can attend to; engines may reserve the full context (kv_cache_reserved)"
        )
    if _has_experts(built):
        said.append("experts are balanced: every one gets the same number of tokens")
    if plan.recompute.policy in ("full", "every"):
        said.append(
            "recompute runs whole blocks again; torch's checkpoint stops early and skips the last matmul of each"
        )
    if plan.recompute.policy == "selective" and plan.attention == "flash":
        said.append(
            "selective recompute saves next to nothing under flash attention: no scores are kept in the first place"
        )
    return said


def _kernels(plan: Plan) -> str:
    if plan.kernels == "eager":
        return "kernels eager: norms and softmax in float32, gates in two kernels, each keeping its own inputs"
    return "kernels fused: a norm and a gated activation are one each; uncompiled PyTorch keeps more (--kernels eager)"


def _memory(built: Built) -> list[str]:
    said = [
        f"reserved = peak + {format_percent(FRAGMENTATION)} of what comes and goes (allocator rounding and fragments); "
        f"device = reserved + {format_bytes(CONTEXT_BYTES)} (context and libraries). Assumptions, not measurements"
    ]
    if built.plan.shard == "zero3" and built.sharding.parameters:
        said.append("parameters are gathered block by block, the next block's while one computes, and let go after use")
    return said


def _time(built: Built, cluster: Cluster, estimated: Estimate) -> list[str]:
    rates = engine_rates(cluster.machine, built.precision.engine)
    matmul = rates.reached_flop_per_second / rates.peak_flop_per_second
    bandwidth = rates.reached_bytes_per_second / rates.bytes_per_second
    launches = sum(p.count for p in estimated.prices if not p.op.collective)
    said = [
        f"estimated time: matmuls at {format_percent(matmul)} of peak ({rates.matmul_source}), memory at "
        f"{format_percent(bandwidth)} of bandwidth ({rates.bandwidth_source}), "
        f"{format_seconds(rates.overhead_seconds)} to launch each of {launches:,} kernels. It is not calibrated and a "
        "best case: most shapes are slower than the best matmul",
    ]
    if not links_recorded(cluster, cluster.n_devices):
        said.append(
            f"NOT in the time: communication, because no link between nodes of {cluster.machine.name} is recorded "
            "(record a machine of your own that has one)"
        )
    elif cluster.n_devices > 1 and estimated.communication_seconds:
        said.append(
            "communication runs in rings at the links' full rate, a lower bound (published all-reduces of 256 MB took "
            "about that on one node and eight times it on 64); gathers and gradient reductions overlap with computation"
        )
    return said
