"""Does what is said to fit really fit, when the options are given as they are written?"""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.planning.account import account
from sixnd.planning.remedies import MOST_REMEDIES, largest

NAMES = {"--accumulation": int, "--batch": int, "--seq": int}


def read_options(text):
    """The options of a remedy as keywords of `account`."""
    if text == "without --foreach":
        return {"foreach": False}
    words = text.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return {name.removeprefix("--"): NAMES.get(name, str)(value) for name, value in pairs}


MISFITS = {
    "8b on one": ("llama-3-8b", {}),
    "8b at 1.6 times the micro-batch": ("llama-3-8b", {"on": "8xh100", "batch": 24, "seq": 4096}),
    "70b on eight": ("llama-3-70b", {"on": "8xh100", "seq": 4096}),
    "70b with ddp": ("llama-3-70b", {"on": "64xh100", "seq": 2048, "shard": "ddp"}),
    "long": ("llama-3-8b", {"on": "8xh100", "seq": 131072}),
    "math attention": ("llama-3.2-1b", {"attention": "math", "batch": 8}),
    "math and foreach": ("gpt2-xl", {"attention": "math", "foreach": True, "batch": 24, "accumulation": 2}),
    "foreach": ("smollm2-1.7b", {"foreach": True, "seq": 128, "on": "v100", "precision": "fp16-master"}),
    "experts": ("mixtral-8x7b", {"on": "8xh100"}),
    "segments": ("llama-3-8b", {"recompute": "every:4"}),
    "full already": ("llama-3-8b", {"recompute": "full"}),
    "eight bits already": ("llama-3-8b", {"optimizer": "adam8bit"}),
    "prefill": ("llama-3-8b", {"phase": "prefill", "batch": 64}),
    "decode": ("llama-3-70b", {"phase": "decode"}),
    "decode of many": ("llama-3-8b", {"phase": "decode", "batch": 512, "on": "2xh100"}),
}


@pytest.mark.parametrize("model, options", MISFITS.values(), ids=MISFITS)
def test_every_remedy_fits_when_it_is_applied(model, options):
    result = account(model, **options)
    assert not result.memory.fits
    assert result.remedies
    assert result.room is None
    for remedy in result.remedies:
        mended = account(model, **{**options, **read_options(remedy.options)}, advise=False)
        assert mended.memory.fits, remedy
        assert mended.memory.device_bytes == remedy.device_bytes
        assert mended.workload.devices == remedy.devices
    assert result.remedies[0].change in result.verdict
    assert len(result.remedies) <= MOST_REMEDIES


@pytest.mark.parametrize("model, options", MISFITS.values(), ids=MISFITS)
def test_extra_flops_are_those_of_the_changed_step(model, options):
    result = account(model, **options)

    def each_token(found):
        total = found.flops.total - found.flops.optimizer.matrix - found.flops.optimizer.vector
        return total / (found.plan.micro_batch * found.plan.accumulation * found.plan.seq)

    for remedy in result.remedies:
        mended = account(model, **{**options, **read_options(remedy.options)}, advise=False)
        assert remedy.extra_flops == pytest.approx(each_token(mended) / each_token(result) - 1, abs=1e-9)


def test_a_smaller_micro_batch_trains_on_as_many_tokens():
    result = account("llama-3.2-1b", batch=64, seq=8192)
    (remedy,) = [r for r in result.remedies if "accumulated" in r.change]
    mended = account("llama-3.2-1b", **{"batch": 64, "seq": 8192, **read_options(remedy.options)}, advise=False)
    assert mended.workload.tokens_per_step == result.workload.tokens_per_step


def test_what_no_change_mends_has_no_remedies():
    result = account("deepseek-v3", on="t4", seq=10**6, precision="fp16-master", recompute="full")
    assert not result.memory.fits
    assert result.remedies == ()
    assert result.verdict.endswith("was found that makes it fit.")


def test_the_fused_optimizer_is_a_remedy():
    model, options = MISFITS["foreach"]
    assert "without --foreach" in [remedy.options for remedy in account(model, **options).remedies]


ROOMS = {
    "one": ("gpt2", {"seq": 512}),
    "sharded": ("llama-3-8b", {"on": "8xh100", "seq": 1024}),
    "recomputed": ("llama-3-8b", {"on": "8xh100", "seq": 2048, "recompute": "full"}),
    "decode": ("llama-3-8b", {"phase": "decode", "seq": 2048}),
    "windows": ("gpt-oss-20b", {"phase": "decode", "seq": 4096}),
    "experts": ("olmoe-1b-7b", {"on": "8xh100", "seq": 512}),
}


@pytest.mark.parametrize("model, options", ROOMS.values(), ids=ROOMS)
@pytest.mark.parametrize("which, flag", [("batch", "batch"), ("seq", "seq")])
def test_room_is_what_still_fits_and_little_more_does_not(model, options, which, flag):
    room = getattr(account(model, **options).room, which)

    def fits(n):
        return account(model, **{**options, flag: n}, advise=False).memory.fits

    assert fits(room)
    more = room + max(1, room // 64)
    if model == "gpt2" and which == "seq":
        assert room == 1024  # its table of positions ends there
    else:
        assert not fits(more)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_largest_finds_the_edge(edge, start, most):
    start, most = min(start, edge, most), max(start, most)
    asked = []

    def works(n):
        asked.append(n)
        return n <= edge

    found, exact = largest(works, start, most), min(edge, most)
    assert found <= exact
    assert exact - found <= max(0, found // 64)
    assert len(asked) < 60
    assert all(n <= most for n in asked)


@cache
def biggest_batch(on, seq):
    room = account("llama-3.2-1b", on=on, seq=seq).room
    return room.batch if room else 0


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([256, 512, 1024, 2048]))
def test_more_devices_or_shorter_sequences_leave_more_room(seq):
    assert biggest_batch("4xh100", seq) >= biggest_batch("h100", seq) >= biggest_batch("h100", 2 * seq)
