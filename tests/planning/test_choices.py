"""Is every choice that does not exist, or contradicts another, refused in one sentence that says what to do?"""

import pytest

from sixnd.errors import InputError, SixndError, UsageError
from sixnd.models.config import load_architecture
from sixnd.plan import Mesh, Recompute
from sixnd.planning.account import account
from sixnd.planning.build import build
from sixnd.planning.choices import check_mesh, read_recompute
from sixnd.planning.policies import get_optimizer, get_precision, optimizer_names, precision_names, stored_per_param

REFUSED = [
    ({"batch": 0}, "--batch 0: give a whole number from 1"),
    ({"batch": -3}, "--batch -3"),
    ({"batch": 10**10}, "--batch 10000000000"),
    ({"batch": 1.5}, "--batch 1.5"),
    ({"batch": "2"}, "--batch '2'"),
    ({"batch": True}, "--batch True"),
    ({"seq": 0}, "--seq 0"),
    ({"seq": 10**10}, "--seq 10000000000"),
    ({"accumulation": 0}, "--accumulation 0"),
    ({"phase": "training"}, "--phase 'training' is none of train, prefill, decode; did you mean 'train'?"),
    ({"precision": "bf16-maser"}, "did you mean 'bf16-master'"),
    ({"precision": "int4"}, "for inference; training needs gradients"),
    ({"precision": "mxfp4"}, "see bf16-master or fp8-training"),
    ({"optimizer": "adamwww"}, "did you mean 'adamw'"),
    ({"optimizer": "x"}, "optimizer 'x' is not known: expected one of sgd"),
    ({"recompute": "ful"}, "--recompute 'ful' is none of none, selective, full, sqrt, every:K; did you mean 'full'"),
    ({"recompute": "every:0"}, "--recompute 'every:0'"),
    ({"recompute": "every:-1"}, "--recompute 'every:-1'"),
    ({"recompute": "every:²"}, "--recompute 'every:²'"),
    ({"recompute": "every:9999999"}, "--recompute"),
    ({"attention": "flash2"}, "--attention 'flash2' is none of flash, math"),
    ({"kernels": "compiled"}, "--kernels 'compiled' is none of fused, eager"),
    ({"shard": "zero4"}, "--shard 'zero4' is none of none, ddp, zero1, zero2, zero3"),
    ({"mesh": "tp"}, "--mesh 'tp' is not understood"),
    ({"mesh": "dp=x"}, "--mesh 'dp=x' is not understood"),
    ({"mesh": "dp=2"}, "--mesh dp=2 has 2 devices, and --on names 1"),
    ({"mesh": "dp=1,tp=2"}, "only the data axis (dp) is accounted for so far, not tp"),
    ({"mfu_convention": "6NN"}, "expected one of exact, exact-causal, 6N, 6N+12LHT"),
    ({"tokens": 0}, "--tokens 0: give a whole number from 1"),
    ({"tokens": 1e12}, "--tokens 1000000000000.0"),
    ({"global_batch": 0}, "--global-batch 0"),
    ({"global_batch": 100}, "--global-batch 100 tokens is less than one micro-batch on every device: 128"),
    ({"peak": 0}, "FLOP/s 0 is not above zero"),
    ({"on": "h1000"}, "did you mean"),
    ({"on": "0xh100"}, "0xh100"),
    ({"phase": "decode", "recompute": "full"}, "--recompute is for training"),
    ({"phase": "decode", "accumulation": 2}, "--accumulation is for training"),
    ({"phase": "prefill", "shard": "zero3"}, "--shard is for training"),
    ({"phase": "prefill", "global_batch": 10**6}, "--accumulation is for training"),
    ({"on": "v100"}, "v100-sxm2-32gb has no engine for; it could run fp32, fp16-master"),
    ({"on": "a100", "precision": "fp8-training"}, "multiplies in e4m3, which a100-sxm-80gb has no engine for"),
]


@pytest.mark.parametrize("choices, words", REFUSED, ids=[str(choices) for choices, _ in REFUSED])
def test_refusals(choices, words):
    with pytest.raises(SixndError) as caught:
        account("llama-3.2-1b", **{"seq": 128, **choices})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kinds_of_refusal():
    with pytest.raises(UsageError):
        account("gpt2", batch=0)
    with pytest.raises(InputError):
        account("gpt22")
    with pytest.raises(InputError):
        account("gpt2", on="h1000")


def test_a_learned_table_ends():
    with pytest.raises(UsageError, match="learned table of 1024 positions"):
        account("gpt2", seq=1025)
    result = account("llama-2-7b", seq=5000, advise=False)
    assert any("--seq 5000 is beyond the 4096 positions" in note for note in result.notes)


def test_case_does_not_matter():
    result = account(
        "gpt2", phase="Train", precision="BF16-Master", optimizer="AdamW", recompute="SQRT", seq=64, advise=False
    )
    assert (result.plan.precision, result.plan.optimizer) == ("bf16-master", "adamw")


def test_defaults():
    one, many = account("llama-3-8b", advise=False), account("llama-3-8b", on="8xh100", advise=False)
    plan = one.plan
    assert (plan.phase, plan.micro_batch, plan.accumulation, plan.seq) == ("train", 1, 1, 8192)
    assert (plan.precision, plan.optimizer, plan.attention) == ("bf16-master", "adamw", "flash")
    assert (plan.recompute, plan.shard, many.plan.shard) == (Recompute(), "none", "zero3")
    assert one.cluster.machine.name == "h100-sxm-80gb"
    assert account("gpt2", advise=False).plan.seq == 1024  # the model's own context
    assert any("--seq was not given" in note for note in one.notes)


@pytest.mark.parametrize(
    "text, layers, expected",
    [
        ("none", 32, Recompute("none")),
        ("Selective", 32, Recompute("selective")),
        ("full", 32, Recompute("full")),
        ("sqrt", 32, Recompute("every", 5)),
        ("sqrt", 1, Recompute("every", 1)),
        ("every:7", 32, Recompute("every", 7)),
    ],
)
def test_recomputation_as_it_is_typed(text, layers, expected):
    assert read_recompute(text, layers) == expected


@pytest.mark.parametrize("mesh", [None, "dp=8", " dp = 8", "dp=8,tp=1", {"dp": 8}, {"dp": 8, "pp": 1}])
def test_meshes_that_are_data_parallel(mesh):
    check_mesh(mesh, 8)


def test_a_mesh_multiplies_its_axes():
    mesh = Mesh({"dp": 4, "tp": 2, "pp": 3})
    assert (mesh.size(("dp", "pp")), mesh.size(())) == (12, 1)
    assert hash(mesh) == hash(Mesh({"dp": 4, "tp": 2, "pp": 3}))


# Bytes of a parameter in training with AdamW, by what they are: parameter, gradient, master copy, optimizer.
BYTES = {
    "fp32": (4, 4, 0, 8),
    "tf32": (4, 4, 0, 8),
    "bf16": (2, 2, 0, 8),  # the lecture's twelve
    "bf16-pure": (2, 2, 0, 4),
    "bf16-master": (2, 2, 4, 8),  # Rajbhandari et al. 2020
    "bf16-fp32grad": (2, 4, 4, 8),  # Megatron-LM
    "fp16-master": (2, 2, 4, 8),
    "amp-bf16": (4, 4, 0, 8),
    "amp-fp16": (4, 4, 0, 8),
    "fp8-training": (2, 2, 4, 8),
    "mxfp8-training": (2, 2, 4, 8),
    "nvfp4-training": (2, 2, 4, 8),
}
# Bytes of optimizer state for a parameter in float32 (the lecture's table, and each one's paper).
STATE = {"sgd": 0, "momentum": 4, "adagrad": 4, "rmsprop": 4, "adam": 8, "adamw": 8, "lion": 4}


@pytest.mark.parametrize("name", precision_names())
def test_bytes_a_parameter(name):
    if get_precision(name).weight_only:
        assert name not in BYTES
        return
    held = stored_per_param(get_precision(name), get_optimizer("adamw"))
    assert tuple(held.get(part, 0) for part in ("parameter", "gradient", "master", "optimizer")) == BYTES[name]


@pytest.mark.parametrize("precision", BYTES)
def test_an_account_holds_what_its_policy_says(precision):
    result = account("smollm2-135m", precision=precision, seq=64, on="b200", advise=False)
    n, maxima = result.model.params.total, result.memory.maxima
    held = tuple(maxima[part] / n for part in ("parameters", "gradients", "master", "optimizer"))
    assert held == BYTES[precision]


@pytest.mark.parametrize("name", STATE)
def test_optimizer_state(name):
    assert stored_per_param(get_precision("fp32"), get_optimizer(name)).get("optimizer", 0) == STATE[name]
    result = account("smollm2-135m", optimizer=name, seq=64, advise=False)
    assert result.memory.maxima["optimizer"] == STATE[name] * result.model.params.total


def test_eight_bit_state_has_a_scale_for_each_block():
    held = stored_per_param(get_precision("bf16-master"), get_optimizer("adam8bit"))["optimizer"]
    assert held == 2 * (1 + 4 / 256)


def test_adafactor_keeps_a_row_and_a_column():
    result = account("llama-2-7b", optimizer="adafactor", seq=64, advise=False)
    d, f, vocab, layers = 4096, 11008, 32000, 32
    tables = 2 * vocab * d - vocab * d + (vocab + d)  # the input table is read by rows and is no matrix
    matrices = layers * (4 * 2 * d + 3 * (d + f))
    norms = (2 * layers + 1) * d
    assert result.memory.maxima["optimizer"] == 4 * (tables + matrices + norms)


def test_muon_keeps_one_state_for_hidden_matrices_and_two_elsewhere():
    result = account("llama-2-7b", optimizer="muon", seq=64, advise=False)
    d, f, vocab, layers = 4096, 11008, 32000, 32
    hidden = layers * (4 * d * d + 3 * d * f)
    others = 2 * vocab * d + (2 * layers + 1) * d
    assert result.memory.maxima["optimizer"] == 4 * (hidden + 2 * others)
    steps = 5 * (2 * (2 * d * d * d) + 2 * d**3)  # of a square matrix: X X', A A, (.) X
    oblong = 5 * (2 * d * d * f + 2 * d**3 + 2 * d * d * f)
    assert result.flops.optimizer.matrix == layers * (4 * steps + 3 * oblong)


@pytest.mark.parametrize("name", optimizer_names())
def test_every_optimizer_trains_on_one_device_and_on_many(name):
    for n, shard in ((1, "none"), (4, "zero1"), (4, "zero3")):
        plan = account("smollm2-135m", optimizer=name, seq=64, on=f"{n}xh100", shard=shard, advise=False).plan
        built = build(load_architecture("smollm2-135m"), plan, n)
        assert sum(op.phase == "optimizer" for op, _ in built.ledger.counted) == (2 if shard == "zero1" else 1)
