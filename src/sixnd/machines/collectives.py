"""How long does a collective take at best?

A ring over n devices (Thakur, Rabenseifner and Gropp 2005; the factors are those of nccl-tests' "bus bandwidth"):

    all_reduce        2·(n-1)/n · S     S the whole tensor, which every device holds
    all_gather          (n-1)/n · S     S the gathered tensor
    reduce_scatter      (n-1)/n · S     S the tensor before it is scattered
    all_to_all          (n-1)/n · S     S what one device holds before (and after)

bytes leave each device. A group of n devices has g in each of m nodes. Rings are laid so that they leave a node on
every device's own share of the network at once, so each node's boundary passes g shares, and

    seconds = factor·(n-1)/n·S / min(W_intra, g·W_inter)  +  factor·((g-1)·a_intra + (m-1)·a_inter)

with W bytes per second of one device in one direction and `a` the latency of a message; `factor` is 2 for all_reduce.
Where g is 1 only the network counts, where m is 1 only the node. An all-to-all does not pass through neighbours: of
its S bytes, (n-g)/n take the network and (g-1)/n the node, at the same time, and the longer counts.
In a mesh without a switch a device reaches g-1 peers over that many links, so W_intra is at most (g-1) links; a torus
is taken to reach all its links, which holds for groups that span it.

This is a bound, and real networks stay below it. On 8 to 512 H100s with 400 Gb/s a device, 256 MB at a time, the bound
is 0.99 to 0.12 of the published time for an all-reduce, 0.57 to 0.04 for an all-gather and 0.57 to 0.04 for a
reduce-scatter (whose source does not say how it counts): close inside a node and on two, far off on many.
"""

from __future__ import annotations

from typing import Literal

from sixnd.errors import UsageError
from sixnd.machines.cluster import Cluster, inter_node, intra_node
from sixnd.machines.record import Link

CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


def collective_seconds(kind: CollectiveKind, n_bytes: int, group_size: int, cluster: Cluster, stride: int = 1) -> float:
    """The least time of one collective, in all groups of the cluster at once; formulas at the head of this file.

    Args:
        kind: which collective.
        n_bytes: S above: the whole tensor of one group.
        group_size: devices in one group.
        cluster: where.
        stride: the distance between neighbours of a group, which is the product of the mesh axes inside this one:
            groups of 16 with stride 8 have one device in each node of eight.

    Raises:
        UsageError: the groups do not fit into the cluster.
        InputError: a link that is needed is not recorded for the machine.

    >>> from sixnd.machines import parse_cluster
    >>> cluster = parse_cluster("64xh100")
    >>> [f"{collective_seconds('all_reduce', 2**28, n, cluster) * 1e3:.2f} ms" for n in (1, 8, 64)]
    ['0.00 ms', '1.07 ms', '1.40 ms']
    """
    if group_size < 1 or stride < 1 or group_size * stride > cluster.n_devices:
        raise UsageError(
            f"groups of {group_size} devices with stride {stride} need {group_size * stride}, and the cluster has "
            f"{cluster.n_devices}"
        )
    if group_size == 1:
        return 0.0
    in_node = min(group_size, max(1, cluster.machine.devices_per_node // stride))
    nodes = -(-group_size // in_node)
    if kind == "all_to_all":
        return _all_to_all_seconds(n_bytes, group_size, in_node, nodes, cluster)
    factor = 2 if kind == "all_reduce" else 1
    rate, latency = _ring(in_node, nodes, cluster)
    return factor * ((group_size - 1) / group_size * n_bytes / rate + latency)


def _ring(in_node: int, nodes: int, cluster: Cluster) -> tuple[float, float]:
    """The rate at which a ring passes bytes through each device, and the latency of going round once."""
    rates, latency = [], 0.0
    if in_node > 1:
        link = intra_node(cluster.machine)
        rates.append(_reach(link, in_node))
        latency += (in_node - 1) * link.latency_seconds
    if nodes > 1:
        link = inter_node(cluster.machine)
        rates.append(in_node * link.bytes_per_second)
        latency += (nodes - 1) * link.latency_seconds
    return min(rates), latency


def _all_to_all_seconds(n_bytes: int, group_size: int, in_node: int, nodes: int, cluster: Cluster) -> float:
    """The longer of what goes inside the node and what goes between nodes."""
    seconds = 0.0
    if in_node > 1:
        link = intra_node(cluster.machine)
        share = (in_node - 1) / group_size
        seconds = share * n_bytes / _reach(link, in_node) + (in_node - 1) * link.latency_seconds
    if nodes > 1:
        link = inter_node(cluster.machine)
        share = (group_size - in_node) / group_size
        seconds = max(seconds, share * n_bytes / link.bytes_per_second + (nodes - 1) * link.latency_seconds)
    return seconds


def _reach(link: Link, n_devices: int) -> float:
    """A device's rate to n-1 others."""
    if link.peer_bytes_per_second is None:
        return link.bytes_per_second
    return min(link.bytes_per_second, (n_devices - 1) * link.peer_bytes_per_second)
