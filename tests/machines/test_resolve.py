"""Does a name mean the machine that people and drivers mean by it?"""

import pytest

from sixnd.errors import UnitError, UnknownMachineError, UsageError
from sixnd.machines import Cluster, machine_names, n_nodes, parse_cluster, resolve
from sixnd.units import parse_devices

DRIVERS = {  # as torch.cuda.get_device_name, jax's device_kind or the system print them
    "Tesla P100-SXM2-16GB": "p100-sxm2-16gb",
    "Tesla V100-SXM2-16GB": "v100-sxm2-16gb",
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "Tesla T4": "t4",
    "NVIDIA A100-SXM4-40GB": "a100-sxm-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA A800-SXM4-80GB": "a800-sxm-80gb",
    "NVIDIA A10": "a10",
    "NVIDIA A10G": "a10g",
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb",
    "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA H100 NVL": "h100-nvl-94gb",
    "NVIDIA H200": "h200-sxm-141gb",
    "NVIDIA H200 NVL": "h200-nvl-141gb",
    "NVIDIA GH200 480GB": "gh200-96gb",
    "NVIDIA GH200 144G HBM3e": "gh200-144gb",
    "NVIDIA B200": "b200",
    "NVIDIA GB200": "gb200",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA L40S": "l40s",
    "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA RTX A6000": "rtx-a6000",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "AMD Instinct MI250X": "mi250x-gcd",
    "AMD Instinct MI300X": "mi300x",
    "TPU v5 lite": "tpu-v5e",
    "TPU v5p": "tpu-v5p",
    "TPU7x": "tpu-v7x",
    "Apple M3 Max": "m3-max",
}

TYPED = {
    "h100": "h100-sxm-80gb",
    "H100": "h100-sxm-80gb",
    "H100 SXM": "h100-sxm-80gb",
    "h100_sxm_80gb": "h100-sxm-80gb",
    " h100 ": "h100-sxm-80gb",
    "a100": "a100-sxm-80gb",
    "a100-80gb": "a100-sxm-80gb",
    "a100-40gb": "a100-sxm-40gb",
    "v100": "v100-sxm2-32gb",
    "h200": "h200-sxm-141gb",
    "gh200": "gh200-96gb",
    "mi-300x": "mi300x",
    "mi250x": "mi250x",
    "RTX4090": "rtx-4090",
    "4090": "rtx-4090",
    "tpuv4": "tpu-v4",
    "m3": "m3",
    "m3max": "m3-max",
}


@pytest.mark.parametrize(("name", "machine"), (DRIVERS | TYPED).items())
def test_a_name_means_a_machine(name, machine):
    assert resolve(name).name == machine


@pytest.mark.parametrize("name", [*machine_names(), *DRIVERS])
def test_every_name_can_stand_after_a_number_of_devices(name):
    assert parse_cluster(f"8x{name}") == Cluster(resolve(name), 8)
    assert parse_devices(name).machine == name.lower()


@pytest.mark.parametrize("name", machine_names())
def test_a_canonical_name_needs_no_note(name):
    assert resolve(name).name == name
    assert resolve(name).alias_note == ""


@pytest.mark.parametrize(
    ("name", "others"),
    [("h100", ["h100-pcie-80gb", "h100-nvl-94gb"]), ("a100-80gb", ["a100-pcie-80gb"]), ("v100", ["v100-sxm2-16gb"])],
)
def test_a_short_name_says_what_else_it_could_mean(name, others):
    note = resolve(name.upper()).alias_note
    assert note.startswith(f"'{name}' was taken to be {resolve(name).name}; there are also")
    assert all(other in note for other in others)
    assert "gh200" not in note


@pytest.mark.parametrize(
    ("name", "several"),
    [("mi300", ["mi300a", "mi300x"]), ("tpu-v5", ["tpu-v5e", "tpu-v5p"]), ("gaudi", ["gaudi2", "gaudi3"])],
)
def test_an_ambiguous_name_is_an_error_that_lists_what_it_could_be(name, several):
    with pytest.raises(UnknownMachineError) as caught:
        resolve(name)
    assert str(caught.value) == f"machine '{name}' could be any of {', '.join(several)}: choose one"


@pytest.mark.parametrize(
    ("name", "near"),
    [("h1000", "'h100'"), ("a100-pci-80gb", "'a100-pcie-80gb'"), ("rtx 4070", "'rtx-4090'"), ("mi301x", "'mi300x'")],
)
def test_an_unknown_name_has_a_near_miss_and_the_list(name, near):
    with pytest.raises(UnknownMachineError) as caught:
        resolve(name)
    assert f"machine {name!r} is not known: expected one of " in str(caught.value)
    assert near in str(caught.value).rpartition("did you mean")[2]
    assert all(each in str(caught.value) for each in machine_names())


@pytest.mark.parametrize("name", ["", " ", "-", "nvidia", "x" * 10_000, "[defaults]", "defaults", "é", '"', "bf16"])
def test_nonsense_is_an_error_of_ours(name):
    with pytest.raises(UnknownMachineError) as caught:
        resolve(name)
    assert len(str(caught.value)) < 2000


def test_a_processor_and_an_uncalibrated_machine_say_why():
    with pytest.raises(UnknownMachineError, match="must be measured"):
        resolve("cpu")
    with pytest.raises(UnknownMachineError, match="not calibrated"):
        resolve("this")


def test_a_cluster():
    cluster = parse_cluster("1024xh100")
    assert cluster.n_devices == 1024
    assert n_nodes(cluster) == 128
    assert n_nodes(parse_cluster("9xh100")) == 2
    assert n_nodes(parse_cluster("72xgb200")) == 1
    assert parse_cluster("mi300x").n_devices == 1


def test_a_cluster_that_cannot_be():
    with pytest.raises(UnknownMachineError, match="'h100'"):
        parse_cluster("8xh1000")
    with pytest.raises(UnitError):
        parse_cluster("0xh100")
    with pytest.raises(UsageError):
        Cluster(resolve("h100"), 0)
