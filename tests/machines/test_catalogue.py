"""Is every built-in machine sound, sourced and plausible?"""

import csv
import statistics
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from sixnd.errors import InputError
from sixnd.machines import all_machines, machine_names, resolve
from sixnd.machines.catalogue import defaults, names_of, squeezed
from sixnd.machines.entry import read_machine
from sixnd.machines.record import PEAK_KEYS

MACHINES = all_machines()
NVIDIA = [machine for machine in MACHINES if machine.vendor == "NVIDIA"]
every = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "data" / "published"
needs_published = pytest.mark.skipif(not PUBLISHED.exists(), reason="the published data are not beside this checkout")
RENAMED = {"H100-96GB-HBM2e-500W": "h100-sxm-96gb-hbm2e"}

LISTED = """
v100-sxm2-32gb a100-sxm-40gb a100-sxm-80gb a100-pcie-40gb a100-pcie-80gb a800-sxm-80gb h100-sxm-80gb
h100-sxm-96gb-hbm2e h100-pcie-80gb h100-nvl-94gb h200-sxm-141gb gh200-96gb h800-sxm-80gb h20-96gb b200 gb200 b300 gb300
l4 l40s a40 a10g t4 rtx-3090 rtx-4090 rtx-5090 rtx-a6000 rtx-6000-ada mi250x mi300x mi325x mi355x tpu-v3 tpu-v4 tpu-v5e
tpu-v5p tpu-v6e tpu-v7x trainium1 trainium2 gaudi2 gaudi3 m1 m1-pro m1-max m1-ultra m2 m2-pro m2-max m2-ultra m3 m3-pro
m3-max m3-ultra m4 m4-pro m4-max m5
"""


def test_the_catalogue_holds_what_was_promised():
    assert len(MACHINES) >= 50
    assert set(LISTED.split()) <= set(machine_names())


def test_cutting_the_text_at_headers_finds_the_same_tables_as_a_toml_parser():
    tables = tomllib.loads(files("sixnd.machines").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    assert list(tables) == ["defaults", *machine_names()]
    for machine in MACHINES:
        assert read_machine(machine.name, tables[machine.name], defaults(), "") == machine


@every
def test_a_machine_is_sourced(machine):
    assert machine.source
    assert machine.date
    assert machine.vendor
    assert machine.form_factor
    assert machine.memory_note.startswith(("driver", "nameplate"))
    assert all(each.source for each in machine.efficiency.matmul.values())
    assert machine.efficiency.bandwidth.source
    assert machine.efficiency.launch_seconds.source


@every
def test_a_machine_is_plausible(machine):
    assert set(machine.peak_flop_per_second) <= set(PEAK_KEYS)
    assert all(1e12 <= peak <= 1e17 for peak in machine.peak_flop_per_second.values())
    assert 50e9 <= machine.memory_bytes_per_second <= 20e12
    assert 0.6 <= machine.memory_bytes / machine.nameplate_bytes <= 1.08
    assert 2016 <= machine.year <= 2026
    assert machine.efficiency.matmul.keys() == machine.peak_flop_per_second.keys()
    assert all(0.4 <= each.value <= 1 for each in machine.efficiency.matmul.values())


@every
def test_wider_formats_are_not_faster(machine):
    peaks = machine.peak_flop_per_second
    order = [peaks[key] for key in ("fp64", "fp32", "tf32", "bf16", "fp8", "fp4") if key in peaks]
    assert order == sorted(order)
    vector = machine.vector_flop_per_second
    assert vector is None or vector <= peaks.get("fp32", max(peaks.values()))


@every
def test_links_are_slower_than_memory_and_networks_than_links(machine):
    for link in (machine.intra_node, machine.inter_node):
        assert link is None or 0 < link.bytes_per_second < machine.memory_bytes_per_second
        assert link is None or 1e-7 < link.latency_seconds < 1e-4
        assert link is None or (link.peer_bytes_per_second or 0) < link.bytes_per_second
    if machine.intra_node and machine.inter_node:
        assert machine.inter_node.bytes_per_second <= machine.intra_node.bytes_per_second
    assert machine.devices_per_node == 1 or machine.intra_node


@pytest.mark.parametrize("machine", NVIDIA, ids=lambda machine: machine.name)
def test_halving_the_width_doubles_the_rate_on_nvidia(machine):
    peaks = machine.peak_flop_per_second
    if "fp8" in peaks:
        assert peaks["fp8"] == pytest.approx(2 * peaks["bf16"], rel=0.02)
    if "bf16" in peaks:
        assert peaks["bf16"] == peaks["fp16"]
        assert peaks["bf16"] == pytest.approx(2 * peaks["tf32"], rel=0.02)


def test_no_name_means_two_machines():
    owners = {}
    for machine in MACHINES:
        for name in names_of(machine):
            owners.setdefault(squeezed(name), set()).add(machine.name)
    assert {name: owner for name, owner in owners.items() if len(owner) > 1} == {}


def test_names_are_lower_kebab():
    assert all(name == name.lower() and "_" not in name and " " not in name for name in machine_names())


def test_the_default_fractions_are_medians_of_the_measured_ones():
    for key in ("bf16", "fp8"):
        measured = [
            machine.efficiency.matmul[key].value
            for machine in MACHINES
            if key in machine.efficiency.matmul and machine.efficiency.matmul[key].source.startswith(("stas", "AI-H"))
        ]
        assert len(measured) >= 8
        assert defaults()["matmul_fraction"][key] == pytest.approx(statistics.median(measured), abs=0.0006)


def rows(name):
    return csv.DictReader((PUBLISHED / name).read_text(encoding="utf-8").splitlines())


@needs_published
def test_rates_agree_with_the_published_table():
    for row in rows("hardware.csv"):
        machine = resolve(RENAMED.get(row["name"], row["name"]))
        assert machine.memory_bytes_per_second == pytest.approx(float(row["mem_bw_GBps"]) * 1e9, rel=0.001), row
        assert machine.nameplate_bytes == float(row["mem_GB"]) * 1e9, row
        for key in ("tf32", "bf16", "fp16", "fp8", "fp4"):
            if row[key]:
                assert machine.peak_flop_per_second[key] == pytest.approx(float(row[key]) * 1e12, rel=0.001), row


@needs_published
def test_the_best_matmuls_are_the_published_ones():
    best = {}
    for row in rows("matmul_peak.csv"):
        # The source's GH200 row was measured on the 144 GB version.
        name = {"GH200-96GB": "gh200-144gb"}.get(row["accelerator"], row["accelerator"])
        key = name, row["dtype"]
        best[key] = max(best.get(key, 0), float(row["best_matmul_tflops"]) * 1e12)
    for (name, key), rate in best.items():
        machine = resolve(name)
        assert machine.efficiency.matmul[key].value == pytest.approx(rate / machine.peak_flop_per_second[key]), name


def test_the_numbers_that_others_lean_on():
    h100 = resolve("h100")
    assert h100.peak_flop_per_second["bf16"] == 989.5e12
    assert h100.memory_bytes_per_second == 3.35e12
    assert h100.nameplate_bytes == 80 * 10**9
    assert h100.memory_bytes == 81_559 * 2**20
    assert 79.2 <= h100.memory_bytes / 2**30 <= 79.65
    assert resolve("a100").memory_bytes == 81_920 * 2**20


def test_an_own_fraction_goes_before_the_default_and_bf16_stands_in_for_others():
    h100, v100 = resolve("h100").efficiency.matmul, resolve("v100").efficiency.matmul
    assert h100["bf16"].value == pytest.approx(794.5 / 989.5)
    assert h100["tf32"].value == h100["bf16"].value
    assert h100["tf32"].source.startswith("that of bf16")
    assert v100["fp16"].value == defaults()["matmul_fraction"]["bf16"]


GOOD = {"peak_flop_per_second": {"bf16": 1e15}, "memory_bytes": 80e9, "memory_bytes_per_second": 3e12}
BAD = [
    ({"memory_bytes": None}, "memory_bytes is None"),
    ({"memory_bytes": True}, "memory_bytes is True"),
    ({"memory_bytes": -1}, "memory_bytes is -1: expected an amount above zero"),
    ({"memory_bytes": 0.5}, "a whole number"),
    ({"memory_bytes": "80G"}, "memory_bytes is not understood: bytes '80G'"),
    ({"memory_bytes_per_second": float("nan")}, "memory_bytes_per_second is nan"),
    ({"memory_bytes_per_second": float("inf")}, "memory_bytes_per_second is inf"),
    ({"memory_bytes_per_second": 10**400}, "memory_bytes_per_second is"),
    ({"memory_bytes_per_second": "8TFLOP/s"}, "memory_bytes_per_second is not understood"),
    ({"peak_flop_per_second": {}}, "expected a table of rates"),
    ({"peak_flop_per_second": {"bfloat16": 1e12}}, "expected a table of rates"),
    ({"peak_flop_per_second": {"bf16": "9TFLOPS"}}, "peak_flop_per_second is not understood"),
    ({"peak_flop_per_second": 1e15}, "expected a table of rates"),
    ({"memory_byte": 1}, "memory_byte is not a known key; did you mean 'memory_bytes'"),
    ({"zzz": 1}, "zzz is not a known key: expected vendor"),
    ({"vendor": 3}, "vendor is 3: expected a text"),
    ({"aliases": "h"}, "aliases is 'h': expected a list"),
    ({"confidence": "sure"}, "expected one of high, medium, low"),
    ({"devices_per_node": 1.5}, "a whole number"),
    ({"intra_node": {"name": "x"}}, "intra_node is"),
    ({"intra_node": {"name": "x", "bytes_per_second": 0}}, "a rate above zero"),
    ({"matmul_flop_per_second": {"bf16": 2e15}}, "above its peak"),
    ({"matmul_flop_per_second": {"fp8": 1e15}}, "above its peak, or without one"),
    ({"bandwidth_fraction": 1.1}, "at most 1"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=lambda value: str(value)[:40])
def test_an_unsound_entry_is_refused_in_a_sentence(change, words):
    with pytest.raises(InputError) as caught:
        read_machine("mine", {**GOOD, **change}, defaults(), "machines.toml")
    assert str(caught.value).startswith("machines.toml: machine 'mine': ")
    assert words in str(caught.value)


@pytest.mark.parametrize("key", GOOD)
def test_a_key_that_must_be_there_is_named(key):
    with pytest.raises(InputError, match=f"{key} is missing"):
        read_machine("mine", {each: GOOD[each] for each in GOOD if each != key}, defaults(), "machines.toml")


def test_texts_with_units_and_plain_numbers_are_the_same():
    texts = {"peak_flop_per_second": {"bf16": "1PFLOP/s"}, "memory_bytes": "80GB", "memory_bytes_per_second": "3TB/s"}
    assert read_machine("m", texts, defaults(), "") == read_machine("m", GOOD, defaults(), "")
