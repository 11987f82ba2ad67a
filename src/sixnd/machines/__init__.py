"""What can an accelerator do, how is it joined to others, and how long does work take on it at best?"""

from sixnd.machines.catalogue import machine_names
from sixnd.machines.cluster import Cluster, collective_link, n_nodes, parse_cluster
from sixnd.machines.collectives import CollectiveKind, collective_seconds
from sixnd.machines.own import add_machine, config_dir, own_path
from sixnd.machines.peaks import Peak, peak, vector_peak, with_peak
from sixnd.machines.rates import Rates, engine_rates
from sixnd.machines.record import Efficiency, Link, Machine, Sourced
from sixnd.machines.resolve import all_machines, resolve
from sixnd.machines.roofline import (
    RooflineTime,
    attainable_flop_per_second,
    bounded_seconds,
    estimated_seconds,
    ridge,
    roofline_seconds,
)

__all__ = [
    "Cluster",
    "CollectiveKind",
    "Efficiency",
    "Link",
    "Machine",
    "Peak",
    "Rates",
    "RooflineTime",
    "Sourced",
    "add_machine",
    "all_machines",
    "attainable_flop_per_second",
    "bounded_seconds",
    "collective_link",
    "collective_seconds",
    "config_dir",
    "engine_rates",
    "estimated_seconds",
    "machine_names",
    "n_nodes",
    "own_path",
    "parse_cluster",
    "peak",
    "resolve",
    "ridge",
    "roofline_seconds",
    "vector_peak",
    "with_peak",
]
