"""What are many devices of one machine?"""

from __future__ import annotations

from dataclasses import dataclass

from sixnd.errors import InputError, UsageError
from sixnd.machines.record import Link, Machine
from sixnd.machines.resolve import resolve
from sixnd.units import parse_devices


@dataclass(frozen=True)
class Cluster:
    """So many devices of one machine, in nodes as full as they can be."""

    machine: Machine
    n_devices: int

    def __post_init__(self) -> None:
        """Refuse a cluster of nothing."""
        if self.n_devices < 1:
            raise UsageError(f"a cluster of {self.n_devices} devices: expected at least 1")


def parse_cluster(text: str) -> Cluster:
    """The cluster that a text such as "1024xh100" or "h100" names.

    Raises:
        UnitError: the text is not a number of devices and a name.
        UnknownMachineError: no machine has the name.

    >>> cluster = parse_cluster("1024xh100")
    >>> cluster.n_devices, cluster.machine.name, n_nodes(cluster)
    (1024, 'h100-sxm-80gb', 128)
    """
    devices = parse_devices(text)
    return Cluster(resolve(devices.machine), devices.count)


def n_nodes(cluster: Cluster) -> int:
    """The nodes that the devices fill, the last one perhaps in part.

    >>> n_nodes(parse_cluster("12xh100"))
    2
    """
    return -(-cluster.n_devices // cluster.machine.devices_per_node)


def collective_link(cluster: Cluster, group_size: int) -> Link:
    """The slowest link that neighbouring devices of a group talk over: inside a node where they fit, else between.

    Raises:
        UsageError: the group is larger than the cluster.
        InputError: that link is not recorded for the machine.

    >>> [collective_link(parse_cluster("64xh100"), size).name for size in (8, 16)]
    ['NVLink4', '400 Gb/s a device']
    """
    if not 1 <= group_size <= cluster.n_devices:
        raise UsageError(f"a group of {group_size} devices: expected 1 to {cluster.n_devices}, the cluster's size")
    within = group_size <= cluster.machine.devices_per_node
    return intra_node(cluster.machine) if within else inter_node(cluster.machine)


def intra_node(machine: Machine) -> Link:
    """The link inside a node; an InputError where none is recorded."""
    return _known(machine, machine.intra_node, "intra_node")


def inter_node(machine: Machine) -> Link:
    """The link between nodes; an InputError where none is recorded."""
    return _known(machine, machine.inter_node, "inter_node")


def _known(machine: Machine, link: Link | None, key: str) -> Link:
    if link is None:
        raise InputError(
            f"no {key} link is recorded for {machine.name}, so the time to communicate over it is not known: record a "
            f"machine of your own with {key}, or use fewer devices"
        )
    return link
