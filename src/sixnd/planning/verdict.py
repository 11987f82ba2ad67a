"""The first line of an account: the answer, in one sentence."""

from __future__ import annotations

from sixnd.planning.answers import Account, MemoryPart
from sixnd.units import format_bytes, format_percent, format_seconds

NARROW = 0.91


def verdict(account: Account) -> str:
    """Say whether it fits, with how much to spare, and how long a step takes; or what is the smallest change."""
    memory, work, time = account.memory, account.workload, account.time
    where = f"{work.devices}x{work.on}" if work.devices > 1 else work.on
    what = {"train": "Training", "prefill": "Prefill of", "decode": "Decoding with"}[work.phase]
    needs = f"{format_bytes(memory.device_bytes)} of {format_bytes(memory.capacity_bytes)}"
    each = " each" if work.devices > 1 else ""
    if memory.fits:
        mfu = f", MFU {format_percent(time.mfu)}" if work.phase != "decode" else ""
        published = f"; {format_seconds(time.published.seconds)} as published runs went" if time.published else ""
        return (
            f"{what} {account.model.name} on {where} {_fits(memory)}: {needs}{each}. "
            f"Estimated {format_seconds(time.seconds)} a step, {time.tokens_per_second:,.0f} tokens/s{mfu}{published}."
        )
    head = f"{what} {account.model.name} on {where} does not fit: it needs {needs}{each}."
    if not account.remedies:
        serve = "" if work.phase == "train" else " Splitting one copy over several devices is not accounted for yet."
        return f"{head} No change of this plan was found that makes it fit.{serve}"
    first = account.remedies[0]
    return f"{head} Smallest change: {first.change} ({first.options})."


def _fits(memory: MemoryPart) -> str:
    """The same flags have differed by 9 % between machines (torchtune#961), so less room than that is said."""
    return "fits, but narrowly" if memory.device_bytes > NARROW * memory.capacity_bytes else "fits"
