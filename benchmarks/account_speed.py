"""How fast is an account, as a whole process and inside one; and how do others compare in the same run?

CPU seconds of whole processes, interleaved, medians. Rivals run in interpreters that have them installed:

    python benchmarks/account_speed.py --accelerate VENV/bin/python --llm-analysis VENV/bin/python
"""

from __future__ import annotations

import argparse
import platform
import resource
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date
from statistics import median

from sixnd.models.config import load_architecture
from sixnd.planning.account import account

MODEL = "opt-6.7b"
ACCELERATE = """
from accelerate import init_empty_weights
from accelerate.utils import calculate_maximum_sizes
from transformers import AutoModelForCausalLM, OPTConfig
config = OPTConfig(hidden_size=4096, ffn_dim=16384, num_hidden_layers=32, num_attention_heads=32,
                   word_embed_proj_dim=4096, max_position_embeddings=2048)
with init_empty_weights():
    model = AutoModelForCausalLM.from_config(config)
total, largest = calculate_maximum_sizes(model)
print(total, largest)
"""
LLM_ANALYSIS = """
from llm_analysis.analysis import train
train(model_name="facebook_opt-6.7b", gpu_name="a100-sxm-80gb", batch_size_per_gpu=1, seq_len=2048, dp_size=8,
      total_num_tokens=10**9, flops_efficiency=0.5, log_level="ERROR")
"""


def cpu_seconds(command: list[str]) -> float:
    """CPU seconds, user and system, that a process and its children take."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} failed: {done.stderr[-300:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole_processes(options: argparse.Namespace) -> None:
    """Interleave the commands and print each one's median CPU time."""
    sixnd = [sys.executable, "-m", "sixnd.app.cli"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "sixnd --help": [*sixnd, "--help"],
        "sixnd account llama-3.1-405b --json": [*sixnd, "account", "llama-3.1-405b", "--json"],
        f"sixnd account {MODEL} --on 8xa100": [*sixnd, "account", MODEL, "--on", "8xa100"],
    }
    if options.accelerate:
        commands[f"accelerate, maximum sizes of {MODEL}"] = [options.accelerate, "-c", ACCELERATE]
    if options.llm_analysis:
        commands[f"llm-analysis, train {MODEL}"] = [options.llm_analysis, "-c", LLM_ANALYSIS]
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            times[name].append(cpu_seconds(command))
    for name, found in times.items():
        print(f"  {name:<44}{median(found) * 1e3:>8.0f} ms CPU   {min(found) * 1e3:>6.0f} least")


def one_account(layers: int, seq: int) -> float:
    """CPU milliseconds of an account that nothing has cached: every call has another sequence length."""
    like = load_architecture("llama-3.1-405b")
    model = replace(like, layers=like.layers[:1] * layers)
    account(model, seq=seq, advise=False)
    found = []
    for step in range(1, 12):
        started = time.process_time()
        account(model, seq=seq + step, advise=False)
        found.append((time.process_time() - started) * 1e3)
    return median(found)


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--accelerate", help="an interpreter with accelerate and transformers")
    parser.add_argument("--llm-analysis", help="an interpreter with llm-analysis")
    options = parser.parse_args()
    print(f"{date.today()} {platform.processor() or platform.machine()} Python {platform.python_version()}")
    print("whole processes, median CPU time:")
    whole_processes(options)
    print("inside a process, one account without advice:")
    for layers in (1, 8, 126, 1000):
        print(f"  {layers:>5} layers like Llama 3.1 405B's {one_account(layers, 2048):>8.2f} ms CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
