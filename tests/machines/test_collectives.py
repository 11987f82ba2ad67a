"""Are collectives bounded as their formulas say, and how far is the bound from what was measured?"""

import csv
from pathlib import Path

import pytest

from sixnd.errors import InputError, UsageError
from sixnd.machines import Cluster, Link, collective_link, collective_seconds, collectives, parse_cluster, resolve

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "data" / "published" / "collectives.csv"
KINDS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}
S = 10**12  # so much that latency does not show


def seconds(kind, n, machine="512xh100", stride=1, n_bytes=S):
    return collective_seconds(kind, n_bytes, n, parse_cluster(machine), stride)


@pytest.mark.parametrize(
    ("kind", "n", "stride", "expected"),
    [
        ("all_reduce", 8, 1, 2 * 7 / 8 * S / 450e9),
        ("all_reduce", 2, 1, 2 * 1 / 2 * S / 450e9),
        ("all_gather", 8, 1, 7 / 8 * S / 450e9),
        ("reduce_scatter", 4, 1, 3 / 4 * S / 450e9),
        ("all_to_all", 8, 1, 7 / 8 * S / 450e9),
        ("all_reduce", 64, 1, 2 * 63 / 64 * S / 400e9),  # eight shares of the network at once
        ("all_gather", 64, 8, 63 / 64 * S / 50e9),  # one device in each node
        ("all_gather", 16, 4, 15 / 16 * S / 100e9),  # two devices in each node
        ("all_to_all", 64, 1, 56 / 64 * S / 50e9),
        ("all_to_all", 8, 8, 7 / 8 * S / 50e9),
    ],
)
def test_the_formula(kind, n, stride, expected):
    assert seconds(kind, n, stride=stride) == pytest.approx(expected, rel=1e-3)


def test_one_device_talks_to_nobody():
    assert seconds("all_reduce", 1, "1xm3-max") == 0


def test_reduce_scatter_and_all_gather_make_an_all_reduce():
    for n in (2, 8, 24, 512):
        halves = seconds("reduce_scatter", n, n_bytes=2**28) + seconds("all_gather", n, n_bytes=2**28)
        assert seconds("all_reduce", n, n_bytes=2**28) == pytest.approx(halves)


def test_small_messages_cost_latency_and_more_bytes_more_time():
    link, network = resolve("h100").intra_node, resolve("h100").inter_node
    once = 7 * link.latency_seconds + 63 * network.latency_seconds
    assert seconds("all_gather", 512, n_bytes=0) == pytest.approx(once)
    times = [seconds("all_reduce", 64, n_bytes=n) for n in (0, 1, 10**6, 10**9)]
    assert times == sorted(times)


def test_a_mesh_without_a_switch_reaches_few_peers_slowly():
    pair, node = (seconds("all_gather", n, "8xmi300x") for n in (2, 8))
    assert pair == pytest.approx(1 / 2 * S / 64e9, rel=1e-3)
    assert node == pytest.approx(7 / 8 * S / 448e9, rel=1e-3)


def test_the_link_of_a_group():
    cluster = parse_cluster("64xh100")
    assert collective_link(cluster, 8) is cluster.machine.intra_node
    assert collective_link(cluster, 9) is cluster.machine.inter_node
    assert isinstance(collective_link(parse_cluster("72xgb200"), 72), Link)


def test_what_cannot_be_asked():
    with pytest.raises(UsageError, match="has 8"):
        seconds("all_reduce", 16, "8xh100")
    with pytest.raises(UsageError, match="need 16"):
        seconds("all_reduce", 2, "8xh100", stride=8)
    with pytest.raises(UsageError, match="group of 9"):
        collective_link(parse_cluster("8xh100"), 9)
    for ask in (collective_link, lambda cluster, n: collective_seconds("all_reduce", 1, n, cluster)):
        with pytest.raises(InputError, match="no inter_node link is recorded for m3-max"):
            ask(Cluster(resolve("m3-max"), 4), 4)


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published measurements are not beside this checkout")
def test_the_bound_holds_for_published_measurements_and_the_docstring_says_how_far_it_is():
    shares = {kind: [] for kind in KINDS.values()}
    for row in csv.DictReader(PUBLISHED.read_text().splitlines()):
        kind, n = KINDS[row["collective"]], int(row["n_gpus"])
        factor = 2 if kind == "all_reduce" else 1
        n_bytes = int(row["message_MB"]) * 10**6
        measured = factor * (n - 1) / n * n_bytes / (float(row["mean_busbw_or_algbw_GBps"]) * 1e9)
        shares[kind].append(seconds(kind, n, n_bytes=n_bytes) / measured)
    assert all(share <= 1 for each in shares.values() for share in each)
    said = " ".join(collectives.__doc__.split())
    for each in shares.values():
        assert each == sorted(each, reverse=True)
        assert f"{each[0]:.2f} to {each[-1]:.2f}" in said
