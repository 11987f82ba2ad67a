"""How far are our ideal and our estimate from runs that others published?

Reads a table of published runs (train.csv; `--table` says where) and compares every dense, data-parallel bf16 row on a
machine of the catalogue with `account`: seconds a step by roofline and by estimate, and peak memory where it was
published. Prints ratios by source and over all. The table is read where it lies and is not part of this package.

    python benchmarks/published_runs.py --table ../shared/data/published/train.csv
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median

from sixnd.errors import SixndError
from sixnd.models.architecture import Architecture, Attention, FeedForward, Layer
from sixnd.planning.account import account

TABLE = Path(__file__).parents[2] / "shared/data/published/train.csv"
RECOMPUTE = {"none": "none", "full": "full"}
ZERO = {"zero3": "zero3", "fsdp": "zero3", "fsdp2(zero3)": "zero3", "zero1": "zero1", "ddp": "ddp", "zero2": "zero2"}


@dataclass(frozen=True)
class Run:
    """One published run beside our account of it."""

    source: str
    machine: str
    model: str
    devices: int
    measured_seconds: float
    ideal_seconds: float
    estimated_seconds: float
    measured_gib: float | None
    reserved_gib: float


def number(row: dict[str, str], key: str) -> float | None:
    """A cell as a number, or nothing."""
    try:
        return float(row[key])
    except (KeyError, ValueError):
        return None


def architecture(row: dict[str, str]) -> Architecture:
    """The model a row describes; gated models are taken as Llama's style, the others as GPT's."""
    d_model, heads = int(float(row["d_model"])), int(float(row["n_heads"]))
    kv = int(number(row, "n_kv_heads") or heads)
    d_head = int(number(row, "head_dim") or d_model // heads)
    gated = (number(row, "gated") or 0) == 1
    ff = FeedForward(int(float(row["d_ff"])), gated, "silu" if gated else "gelu", not gated)
    attention = Attention(heads, kv, d_head, d_head, qkv_bias=not gated, out_bias=not gated)
    layers = (Layer(attention, ff),) * int(float(row["n_layers"]))
    seq = int(float(row["seq_len"]))
    return Architecture(
        row["model"], "published", d_model, int(float(row["vocab"])), layers, seq, norm="rms" if gated else "layer",
        positions="rotary" if gated else "learned", tied=(number(row, "tied") or 0) == 1,
    )  # fmt: skip


def usable(row: dict[str, str]) -> bool:
    """Rows that this issue's plans can express: dense, data-parallel, bf16, with a throughput."""
    needed = (
        "n_layers",
        "d_model",
        "n_heads",
        "d_ff",
        "vocab",
        "seq_len",
        "micro_batch_per_gpu",
        "tokens_per_s_per_gpu",
    )
    return (
        row["status"] == "ok"
        and row["dtype"] == "bf16"
        and all(number(row, key) for key in needed)
        and all((number(row, key) or 1) == 1 for key in ("tp", "pp", "cp", "ep"))
        and not number(row, "moe_experts")
        and row["task"] == "pretrain"
        and row["recompute"] in RECOMPUTE
        and row["zero_fsdp"] in ZERO
    )


def compare(row: dict[str, str]) -> Run:
    """Account for one row."""
    model = architecture(row)
    devices, seq = int(float(row["n_accelerators"])), model.max_positions
    batch = int(float(row["micro_batch_per_gpu"]))
    answer = account(
        model, on=f"{devices}x{row['accelerator']}", batch=batch, seq=seq, recompute=RECOMPUTE[row["recompute"]],
        accumulation=int(number(row, "grad_accum") or 1), shard=ZERO[row["zero_fsdp"]] if devices > 1 else None,
        precision="bf16-master", advise=False,
    )  # fmt: skip
    tokens = answer.workload.tokens_per_step / devices
    return Run(
        row["source"], answer.workload.on, row["model"], devices, tokens / float(row["tokens_per_s_per_gpu"]),
        answer.time.ideal_seconds, answer.time.seconds, number(row, "peak_memory_GiB"),
        answer.memory.reserved_bytes / 2**30,
    )  # fmt: skip


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--toml", action="store_true", help="print the records of planning/experience.toml")
    parser.add_argument("--rows", action="store_true", help="print every run")
    options = parser.parse_args()
    if not options.table.exists():
        print(f"published_runs: no table at {options.table}; give --table", file=sys.stderr)
        return 0
    runs, refused = [], 0
    with options.table.open() as file:
        for row in filter(usable, csv.DictReader(file)):
            try:
                runs.append(compare(row))
            except SixndError:
                refused += 1
    where = f"{date.today()} {platform.machine()} Python {platform.python_version()}"
    print(f"{where}: {len(runs)} runs, {refused} not expressible")
    groups: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[(run.source, run.machine)].append(run)
        if options.rows:
            ratio = run.measured_seconds / run.estimated_seconds
            print(f"  {run.source} {run.model} {run.devices}x{run.machine}: measured/estimated {ratio:.2f}")
    print(f"{'source and machine':<52}{'runs':>5}{'measured/ideal':>16}{'measured/estimated':>20}")
    for (source, machine), group in sorted(groups.items()):
        print_row(f"{source} {machine}", group)
    print_row("all", runs)
    if options.toml:
        print_toml(runs)
    memory = [run.reserved_gib / run.measured_gib for run in runs if run.measured_gib]
    if memory:
        print(f"memory: predicted reserved / published, {len(memory)} runs, median {median(memory):.2f}")
    return 0


def print_row(name: str, runs: list[Run]) -> None:
    """One line of medians."""
    ideal = median(run.measured_seconds / run.ideal_seconds for run in runs)
    estimated = median(run.measured_seconds / run.estimated_seconds for run in runs)
    print(f"{name:<52}{len(runs):>5}{ideal:>16.2f}{estimated:>20.2f}")


def print_toml(runs: list[Run]) -> None:
    """The medians by machine, as the package keeps them."""
    machines: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        machines[run.machine].append(run)
        machines["any"].append(run)
    for machine, group in sorted(machines.items()):
        ratios = sorted(run.measured_seconds / run.estimated_seconds for run in group)
        sources = ", ".join(sorted({run.source for run in group}))
        low, high = ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
        print(f"[{machine}]\nratio = {median(ratios):.2f}\nlow = {low:.2f}\nhigh = {high:.2f}\nruns = {len(group)}")
        print(f'source = "{sources}"\ndate = "{date.today()}"\n')


if __name__ == "__main__":
    sys.exit(main())
