"""Does an account agree with published counts, with the rules of its own parts, and with itself?"""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from sixnd.ledger import CATEGORIES
from sixnd.models.config import load_architecture
from sixnd.planning.account import account as accounted
from sixnd.planning.account import step_ledger
from sixnd.planning.conventions import CONVENTIONS


@cache
def account(model, **options):
    return accounted(model, advise=False, **options)


# ------------------------------------------------------------------------------------------- published counts

# Parameters as the official files have them, and FLOPs of one forward pass of one sequence as torch 2.13's
# FlopCounterMode counted them on transformers' own modules, eager attention: contractions alone, each query with each
# key, two FLOPs for a multiply and an add. It does not see grouped experts, so mixtures have none. (Our own count of
# November 2026.)
TRUTH = [
    ("deepseek-v3", 671026404352, 2048, None),
    ("falcon-7b", 6921720704, 2048, 30789681020928),
    ("gemma-2-9b", 9241705984, 2048, 40737764802560),
    ("gpt-neox-20b", 20554567680, 2048, 87443386662912),
    ("gpt2", 124439808, 1024, 291648307200),
    ("llama-2-70b", 68976648192, 2048, 292444323184640),
    ("llama-2-7b", 6738415616, 2048, 29261612187648),
    ("llama-3-8b", 8030261248, 2048, 32938104193024),
    ("llama-3.1-405b", 405853388800, 2048, 1688386003795968),
    ("mistral-7b", 7241732096, 2048, 31323196489728),
    ("mixtral-8x7b", 46702792704, 2048, None),
    ("olmo-2-7b", 7298617344, 2048, 30408368455680),
    ("opt-6.7b", 6658473984, 2048, 29430726524928),
    ("phi-3-mini", 3821079552, 2048, 16896132907008),
    ("qwen2.5-7b", 7615616512, 2048, 30643517915136),
    ("qwen3-8b", 8190735360, 2048, 33472827621376),
    ("smollm2-135m", 134515008, 2048, 840739848192),
]
# Of a mixture of experts, parameters that one token uses, by the model's paper or card.
ACTIVE = [
    ("mixtral-8x7b", 12.9e9),  # Jiang et al. 2024
    ("deepseek-v3", 37e9),  # DeepSeek-AI 2024
    ("qwen3-30b-a3b", 3.3e9),  # model card
    ("qwen3-235b-a22b", 22e9),  # model card
    ("gpt-oss-20b", 3.6e9),  # model card; OpenAI counts the head and not the embedding
    ("gpt-oss-120b", 5.1e9),
    ("olmoe-1b-7b", 1.3e9),  # Muennighoff et al. 2024
]


@pytest.mark.parametrize("name, params, seq, flops", TRUTH, ids=[row[0] for row in TRUTH])
@pytest.mark.parametrize("attention", ["flash", "math"])
def test_parameters_and_forward_flops(name, params, seq, flops, attention):
    result = account(name, seq=seq, attention=attention)
    assert result.model.params.total == params
    if flops is not None:
        assert result.flops.forward.matrix == flops
        assert result.flops.backward.matrix == 2 * flops  # each weight and each operand wants its gradient
        assert result.model.params.active == params


@pytest.mark.parametrize("name, active", ACTIVE, ids=[row[0] for row in ACTIVE])
def test_active_parameters(name, active):
    params = account(name, seq=64).model.params
    outside = params.embedding if name.startswith("gpt-oss") else 0
    assert params.active - outside == pytest.approx(active, rel=0.02)
    assert params.active < params.total


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3"])
def test_six_n_d(name):
    result = account(name, seq=1024, batch=2)
    model, flops = load_architecture(name), result.flops
    params = result.model.params
    n = params.active - (0 if model.tied else params.embedding)
    assert flops.six_n_d == 6 * n * 2048
    assert flops.per_token == flops.model // 2048
    assert 0.9 < flops.model / flops.six_n_d < 1.25  # attention is what it leaves out


# ------------------------------------------------------------------------------------------- sums

PLANS = {
    "plain": ("llama-3-8b", {"on": "8xh100"}),
    "does not fit": ("llama-3-70b", {"on": "h100", "seq": 2048}),
    "accumulated": ("gpt2", {"batch": 4, "accumulation": 3, "foreach": True}),
    "recomputed": ("gemma-2-9b", {"on": "8xh100", "seq": 4096, "recompute": "full"}),
    "selective": ("gpt2-xl", {"recompute": "selective", "attention": "math"}),
    "segments": ("llama-2-7b", {"on": "4xh100", "recompute": "every:4", "shard": "zero2"}),
    "experts": ("mixtral-8x7b", {"on": "16xh100", "seq": 512}),
    "latent": ("deepseek-v3", {"on": "256xh100", "seq": 512, "precision": "fp8-training"}),
    "autocast": ("qwen3-8b", {"on": "8xa100-80gb", "precision": "amp-bf16", "shard": "ddp", "seq": 512}),
    "muon": ("llama-3.2-1b", {"optimizer": "muon", "seq": 512}),
    "eager": ("smollm2-135m", {"kernels": "eager", "attention": "math", "seq": 512}),
    "prefill": ("llama-3-8b", {"phase": "prefill", "batch": 2}),
    "decode": ("gpt-oss-20b", {"phase": "decode", "batch": 8}),
    "int4 decode": ("llama-3-70b", {"phase": "decode", "precision": "int4"}),
    "many serve": ("mixtral-8x7b", {"phase": "decode", "on": "8xh100", "precision": "int4"}),
}
EVERY_PLAN = pytest.mark.parametrize("model, options", PLANS.values(), ids=PLANS)


@EVERY_PLAN
def test_flops_of_the_phases_add_up(model, options):
    result = account(model, **options)
    flops = result.flops
    parts = (flops.forward, flops.backward, flops.recompute, flops.optimizer)
    assert flops.total == sum(part.matrix + part.vector for part in parts)
    assert flops.total == sum(operation.flops for operation in result.operations) == result.ledger.flops()
    assert flops.model == flops.forward.matrix + flops.backward.matrix == flops.conventions["exact"]
    assert all(part.matrix_causal <= part.matrix for part in parts)
    assert set(flops.conventions) == set(CONVENTIONS)
    if result.workload.phase != "train":
        assert flops.backward.matrix == flops.recompute.matrix == flops.optimizer.vector == 0


@EVERY_PLAN
def test_memory_of_the_categories_adds_up_to_the_peak(model, options):
    memory = account(model, **options).memory
    by = {name: getattr(memory, f"{name}_bytes") for name in CATEGORIES}
    assert sum(by.values()) == memory.peak_bytes
    assert all(0 <= by[name] <= memory.maxima[name] for name in CATEGORIES)
    assert memory.peak_bytes <= memory.reserved_bytes < memory.device_bytes
    assert memory.fits is (memory.device_bytes <= memory.capacity_bytes)
    resident = account(model, **options).ledger.memory().resident
    assert memory.parameters_bytes == resident["parameters"]


@EVERY_PLAN
def test_shares_of_the_bound_add_up_to_one(model, options):
    time = account(model, **options).time
    shares = (time.bound.compute, time.bound.memory, time.bound.communication, time.bound.overhead)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
    assert 0 < time.ideal_seconds <= time.seconds
    assert 0 < time.mfu <= time.ideal_mfu <= 1
    assert 0 <= time.exposed_communication_seconds <= time.communication_seconds


@EVERY_PLAN
def test_the_verdict_and_the_json_say_the_same(model, options):
    result = account(model, **options)
    said = result.to_dict()
    assert said["schema"] == "sixnd.account/1"
    assert ("does not fit" in said["verdict"]) is not said["memory"]["fits"]
    work, plan = result.workload, result.plan
    tokens = plan.micro_batch * plan.accumulation * work.devices * (1 if plan.phase == "decode" else plan.seq)
    assert said["workload"]["tokens_per_step"] == tokens
    assert said["time"]["tokens_per_second"] == pytest.approx(tokens / said["time"]["seconds"])


# ------------------------------------------------------------------------------------------- equal pairs, growth


@pytest.mark.parametrize("name", ["llama-3.2-1b", "mixtral-8x7b", "gemma-2-9b"])
def test_a_batch_of_eight_is_eight_micro_batches_in_flops(name):
    once, often = account(name, batch=8, seq=256).flops, account(name, accumulation=8, seq=256).flops
    for phase in ("forward", "backward"):
        one, other = getattr(once, phase), getattr(often, phase)
        assert (one.matrix, one.matrix_causal) == (other.matrix, other.matrix_causal)
    assert once.forward.vector == often.forward.vector
    params = account(name, batch=8, seq=256).model.params
    shared = params.embedding if load_architecture(name).tied else 0  # made twice in each micro-batch
    assert often.backward.vector - once.backward.vector == 7 * (params.total + shared)  # added to the first gradient
    assert once.optimizer == often.optimizer


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "gemma-2-9b", "deepseek-v3"])
def test_monotone_in_the_sequence(name):
    rows = [account(name, seq=seq) for seq in (64, 128, 500, 1000)]
    for less, more in pairwise(rows):
        assert less.flops.total < more.flops.total
        assert less.memory.peak_bytes <= more.memory.peak_bytes
        assert less.time.seconds < more.time.seconds


def test_additive_over_layers():
    model = load_architecture("llama-3-8b")
    flops = [account(replace(model, layers=model.layers[:n]), seq=256).flops.forward.matrix for n in (1, 2, 3, 32)]
    layer = flops[1] - flops[0]
    assert flops[2] - flops[1] == layer
    assert flops[3] == flops[0] + 31 * layer


@pytest.mark.parametrize("recompute", ["full", "sqrt", "every:3"])
def test_recomputation_runs_the_layers_once_more(recompute):
    plain, again = (account("llama-2-7b", seq=512, recompute=policy) for policy in ("none", recompute))
    layers = sum(o.flops for o in plain.operations if o.phase == "forward" and o.path.startswith("layers"))
    added = again.flops.recompute.matrix + again.flops.recompute.vector
    kernel = plain.flops.recompute.matrix  # of fused attention's backward, with or without
    assert added - kernel == layers
    assert again.flops.model == plain.flops.model
    assert again.memory.maxima["activations"] < plain.memory.maxima["activations"]


def test_one_token_is_decoded_against_the_cache():
    context = 4096
    decode, longer = (account("llama-3-8b", phase="decode", seq=seq).flops.forward.matrix for seq in (context, 5000))
    model = load_architecture("llama-3-8b")
    heads = model.layers[0].attention.heads * model.layers[0].attention.d_head
    assert longer - decode == (5000 - context) * 4 * 32 * heads
    assert decode == pytest.approx(2 * 7.505e9 + 4 * 32 * heads * context, rel=1e-3)


def test_prefill_projects_only_the_last_token():
    prefill, train = (
        account("llama-3-8b", phase=phase, seq=1024).flops.forward.matrix for phase in ("prefill", "train")
    )
    model = load_architecture("llama-3-8b")
    assert train - prefill == 2 * 1023 * model.d_model * model.vocab


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v2-lite", "llama-3-8b"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_devices_that_serve_copies_do_what_one_does(model, phase):
    one, many = (account(model, phase=phase, on=on, seq=777, precision="int4") for on in ("h100", "8xh100"))
    assert one.flops == many.flops
    assert one.memory == many.memory
    assert one.time.seconds == many.time.seconds
    assert one.operations == many.operations
    assert many.time.tokens_per_second == pytest.approx(8 * one.time.tokens_per_second)


# ------------------------------------------------------------------------------------------- sharing out (ZeRO)


def shares(psi, n):
    """Rajbhandari et al. 2020, figure 1 with K = 12: bytes of model state on one of n devices."""
    return {
        "ddp": 16 * psi,
        "zero1": 4 * psi + 12 * psi / n,
        "zero2": 2 * psi + 14 * psi / n,
        "zero3": 16 * psi / n,
    }


@pytest.mark.parametrize("n", [2, 8, 64])
@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "mixtral-8x7b", "gemma-2-9b"])
@pytest.mark.parametrize("shard", ["ddp", "zero1", "zero2", "zero3"])
def test_model_state_is_that_of_the_zero_paper(name, shard, n):
    result = account(name, on=f"{n}xh100", shard=shard, seq=128, batch=1)
    held = sum(result.memory.maxima[part] for part in ("parameters", "gradients", "master", "optimizer"))
    psi = result.model.params.total
    assert held == pytest.approx(shares(psi, n)[shard], rel=1e-4)  # parts are rounded up to whole elements
    assert held >= shares(psi, n)[shard]


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize(
    "shard, gradients, parameters",
    [("ddp", "all_reduce", 0), ("zero1", "reduce_scatter", 1), ("zero2", "reduce_scatter", 1), ("zero3", "", 0)],
)
def test_traffic_is_that_of_the_zero_paper(shard, gradients, parameters, accumulation):
    """Section 7: ZeRO-1 and 2 move as much as data parallelism, ZeRO-3 half as much again."""
    result = account("llama-3-8b", on="8xh100", shard=shard, seq=128, accumulation=accumulation)
    psi, moved = result.model.params.total, {}
    for op, times in result.ledger.counted:
        if op.collective is not None:
            moved[op.collective.name] = moved.get(op.collective.name, 0) + times * op.collective.n_bytes
    if shard == "zero3":
        assert moved["all_gather"] == 2 * accumulation * 2 * psi
        assert moved["reduce_scatter"] == accumulation * 2 * psi
    else:
        assert moved.pop(gradients) == 2 * psi * (accumulation if shard == "zero2" else 1)
        assert moved.pop("all_gather", 0) == parameters * 2 * psi
        assert moved == {}


@pytest.mark.parametrize("shard, parts", [("ddp", 1), ("zero1", 8), ("zero2", 8), ("zero3", 8)])
def test_each_device_updates_its_part(shard, parts):
    """Master copy and two states are read and written, the gradient is read, the parameter written: 12 + 12 + 2 + 2."""
    result = account("llama-2-7b", on="8xh100", shard=shard, seq=128)
    (update,) = [op for op, _ in result.ledger.counted if op.kind == "optimizer"]
    psi = result.model.params.total
    assert update.cost.read_bytes == pytest.approx((12 + 2) * psi / parts, rel=1e-6)
    assert update.cost.written_bytes == pytest.approx((12 + 2) * psi / parts, rel=1e-6)
    assert update.cost.vector_flops == pytest.approx(14 * psi / parts, rel=1e-6)


def test_communication_hides_behind_computation_where_there_is_enough_of_it():
    """Gathers and reductions overlap with the rest; what is longer than that is exposed and nothing else is."""
    long, short = (
        account("llama-3-8b", on="64xh100", seq=seq, batch=batch).time for seq, batch in ((8192, 1), (64, 1))
    )
    assert long.communication_seconds > 0
    assert long.exposed_communication_seconds == 0 == long.bound.communication
    assert 0 < short.exposed_communication_seconds < short.communication_seconds
    assert short.bound.communication == pytest.approx(short.exposed_communication_seconds / short.seconds)


@pytest.mark.parametrize("name", ["gpt2", "gemma-2b", "llama-3.2-1b"])
def test_a_tied_table_is_reduced_once(name):
    for shard, move in (("ddp", "all_reduce"), ("zero1", "reduce_scatter")):
        result = account(name, on="4xh100", shard=shard, seq=128, accumulation=2)
        moved = sum(n * op.collective.n_bytes for op, n in result.ledger.counted if op.kind == move)
        assert moved == 2 * result.model.params.total


# ------------------------------------------------------------------------------------------- a whole run


def test_a_project_is_its_steps():
    result = account("llama-3.2-1b", on="8xh100", seq=2048, tokens=10**9)
    project, tokens = result.project, 8 * 2048
    assert project.steps == -(-(10**9) // tokens)
    assert project.days == pytest.approx(project.steps * result.time.seconds / 86400)
    assert project.device_hours == pytest.approx(project.days * 24 * 8)
    assert project.flops == project.steps * result.flops.total * 8


def test_global_batch_sets_the_accumulation():
    result = account("gpt2", on="4xh100", seq=1024, batch=2, global_batch=4 * 2 * 1024 * 6)
    assert result.workload.accumulation == 6
    rounded = account("gpt2", on="4xh100", seq=1024, batch=2, global_batch=50_000)
    assert rounded.workload.tokens_per_step == 4 * 2 * 1024 * 6
    assert any("--global-batch 50000 is not a multiple" in note for note in rounded.notes)


def test_a_peak_of_ones_own():
    plain, doubled = account("gpt2"), account("gpt2", peak=2 * 989.5e12)
    assert doubled.time.mfu_peak_flop_per_second == 2 * plain.time.mfu_peak_flop_per_second
    assert doubled.time.seconds < plain.time.seconds


def test_step_ledger_is_the_accounts_ledger():
    result = account("gpt2", seq=256)
    ledger = step_ledger(load_architecture("gpt2"), result.plan)
    assert ledger.memory() == result.ledger.memory()
