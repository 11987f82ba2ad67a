"""The lecture's opening: how long, how large, how many bytes."""

from __future__ import annotations

from itertools import pairwise

from sixnd.formats import get_format, storage_bytes
from sixnd.lecture.claim import Claim, near
from sixnd.machines import parse_cluster, peak, resolve
from sixnd.models.config import load_architecture
from sixnd.plan import Plan
from sixnd.planning.napkin import Largest, largest_model, training_time
from sixnd.units import format_bytes, format_count, format_flop_per_second, format_flops, format_percent

WEEK_DAYS = 7


def training_days() -> Claim:
    """L01: 70B parameters on 15T tokens."""
    t = training_time(parse_cluster("1024xh100"), params=70 * 10**9, tokens=15 * 10**12, mfu=0.5)
    value = f"{format_flops(t.flops)}, {t.days:.1f} days at {format_flop_per_second(t.peak_flop_per_second)} dense"
    expected = "6.3e24 FLOP; 143.9 days at 989.5 TFLOP/s (the lecture truncates to 143)"
    ok = near(t.flops, 6.3e24) and round(t.days, 1) == 143.9
    return Claim("L01", "70B parameters, 15T tokens, 1024 H100 at MFU 0.5", expected, value, ok)


def largest() -> Claim:
    """L02: the largest model on eight H100s with AdamW, activations ignored, then counted."""
    found = _largest(1, 2048)
    rest = f"{format_count(found.params_with_activations)} with activations of 1 x 2048 tokens"
    value = f"{found.bytes_per_param:g} B/param, {format_count(found.params)}; {rest}"
    ok = near(found.bytes_per_param, 12) and near(found.params, 53.3e9, 2e-3)
    ok = ok and found.params_with_activations < found.params
    expected = "2+2+4+4 = 12 B/param, 8 x 80e9 B: 53.3B; less with activations"
    return Claim("L02", "largest model on 8 H100 with AdamW, precision bf16", expected, value, ok)


def _largest(batch: int, seq: int) -> Largest:
    plan = Plan(micro_batch=batch, seq=seq, precision="bf16", optimizer="adamw")
    return largest_model(parse_cluster("8xh100"), load_architecture("llama-3-8b"), plan)


def small_tensor() -> Claim:
    """L03: a 4 x 8 float32 tensor."""
    n = storage_bytes(get_format("float32"), 4 * 8)
    return Claim("L03", "a 4 x 8 float32 tensor", "128 bytes", f"{n} bytes", n == 128)


def large_tensor() -> Claim:
    """L04: one feed-forward matrix of GPT-3 in float32."""
    model = load_architecture("gpt3-175b")
    n = storage_bytes(get_format("float32"), model.d_model * model.layers[0].feed_forward.d_ff)
    value = f"{n:,} B = {format_bytes(n)}"
    return Claim(
        "L04", "one feed-forward matrix of GPT-3 in float32", "2,415,919,104 B = 2.25 GiB", value, n == 2415919104
    )


def dense_peak() -> Claim:
    """L11: a count is not a rate, and the data sheet's rate is with sparsity."""
    machine = resolve("h100")
    rate = peak(machine, "bf16").flop_per_second
    value = f"{format_flop_per_second(rate)} dense; {format_flop_per_second(2 * rate)} with 2:4 sparsity"
    ok = near(rate, 989.5e12, 2e-4) and near(2 * rate, 1979e12, 2e-4)
    return Claim("L11", "1979 TFLOP/s is with sparsity; dense is half", "989.5 TFLOP/s dense", value, ok)


def week() -> Claim:
    """L27: eight H100s for a week."""
    cluster = parse_cluster("8xh100")
    full = training_time(cluster, mfu=1.0, days=WEEK_DAYS)
    real = training_time(cluster, mfu=0.4, days=WEEK_DAYS, tokens=10**12)
    value = (
        f"{format_flops(full.flops)} at peak; at MFU {format_percent(real.mfu)} on 1T tokens "
        f"{format_count(real.params or 0)} parameters"
    )
    ok = near(full.flops, 8 * 7 * 86400 * 989.5e12, 1e-3)
    return Claim("L27", "eight H100s for a week", "8 x 7 x 86400 s x 989.5e12 = 4.79e21 FLOP at peak", value, ok)


def activations_counted() -> Claim:
    """T2: the 53B leaves activations out; what still fits with them."""
    by_seq = {seq: _largest(1, seq) for seq in (512, 2048, 8192)}
    sizes = [found.params_with_activations for found in by_seq.values()]
    words = ", ".join(f"{format_count(n)} at 1 x {seq}" for seq, n in zip(by_seq, sizes, strict=True))
    whole = by_seq[512].params
    ok = near(whole, 53.3e9, 2e-3) and all(more > less > 0 for more, less in pairwise([whole, *sizes]))
    expected = "less than 53.3B, and less with longer sequences"
    return Claim("T2", "the same question with activations, fragments and context counted", expected, words, ok)


ROWS = (training_days, largest, small_tensor, large_tensor, dense_peak, week, activations_counted)
