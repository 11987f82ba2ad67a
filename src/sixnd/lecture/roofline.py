"""The lecture on intensity: what is bound by memory and what by compute."""

from __future__ import annotations

from math import inf

from sixnd.errors import UsageError
from sixnd.formats import get_format, storage_bytes
from sixnd.lecture.claim import Claim, near
from sixnd.machines import Machine, all_machines, attainable_flop_per_second, resolve, ridge, roofline_seconds
from sixnd.notation.cost import contraction, contraction_flops
from sixnd.notation.kinds import GELU, RELU, Work
from sixnd.planning.account import account
from sixnd.planning.estimate import work_flops
from sixnd.units import format_bytes, format_intensity, format_percent, format_seconds

ELEMENTS = 10**6
SIDE = 1024


def accelerator_intensity() -> Claim:
    """L14: the ridge of an H100."""
    value = ridge(resolve("h100"), "bf16")
    return Claim("L14", "H100: 989.5e12 / 3.35e12", "295 FLOP/byte", format_intensity(value), round(value) == 295)


def _elementwise(work: Work) -> tuple[float, int, int]:
    flops = work_flops(work) * ELEMENTS
    n_bytes = 2 * storage_bytes(get_format("bfloat16"), ELEMENTS)
    return flops / n_bytes, flops, n_bytes


def relu() -> Claim:
    """L15: ReLU on a million bf16 values."""
    intensity, flops, n_bytes = _elementwise(RELU.forward)
    time = roofline_seconds(flops, n_bytes, resolve("h100"), "bf16")
    ok = near(intensity, 0.25) and time.bound == "memory"
    ok = ok and near(time.memory_seconds, 1.2e-6, 0.01) and near(time.compute_seconds, 1e-9, 0.02)
    bytes_take, arithmetic_takes = format_seconds(time.memory_seconds), format_seconds(time.compute_seconds)
    value = f"intensity {intensity:g}; {bytes_take} of bytes, {arithmetic_takes} of arithmetic: {time.bound}-bound"
    expected = "intensity 0.25; about 1.2 us of bytes, about 1 ns of arithmetic: memory-bound"
    return Claim("L15", "ReLU on 1M bf16 values: 2N read, 2N written", expected, value, ok)


def gelu() -> Claim:
    """L16: GELU costs the same time as ReLU."""
    intensity, flops, n_bytes = _elementwise(GELU.forward)
    machine = resolve("h100")
    time = roofline_seconds(flops, n_bytes, machine, "bf16")
    other = roofline_seconds(*_elementwise(RELU.forward)[1:], machine, "bf16")
    ok = near(intensity, 5) and time.bound == "memory" and time.seconds == other.seconds
    both = f"{format_seconds(time.seconds)}, ReLU {format_seconds(other.seconds)}"
    value = f"intensity {intensity:g}: {time.bound}-bound, {both}"
    expected = "intensity 5: still memory-bound, the time of ReLU"
    return Claim("L16", "GELU, about 20 operations an element", expected, value, ok)


def products() -> Claim:
    """L17: dot product, matrix-vector, matrix-matrix."""
    dot, vector, matrix = _products(SIDE)
    ok = near(dot, 0.5, 1e-3) and near(vector, 1, 5e-3) and near(matrix, SIDE / 3)
    value = f"{dot:.2f}; {vector:.2f}; {matrix:.0f}"
    return Claim(
        "L17", "dot product; matrix-vector; matrix-matrix, N = 1024, bf16", "0.5; about 1; N/3 = 341", value, ok
    )


def _products(n: int) -> tuple[float, ...]:
    """Intensities of a dot product, a matrix times a vector, a matrix times a matrix, all of side n."""
    lines = (
        ((("j",), ("j",)), ()),
        ((("i", "j"), ("j",)), ("i",)),
        ((("i", "j"), ("j", "k")), ("i", "k")),
    )
    found = []
    for terms, result in lines:
        flops = contraction_flops(contraction(terms, result), dict.fromkeys("ijk", n)).matrix
        elements = sum(n ** len(term) for term in (*terms, result))
        found.append(flops / storage_bytes(get_format("bfloat16"), elements))
    return tuple(found)


def roof() -> Claim:
    """L18: slope and roof meet at the ridge, on every machine of the catalogue."""
    machines = all_machines()
    good = sum(_meets(machine, name) for machine in machines for name in machine.peak_flop_per_second)
    curves = sum(len(machine.peak_flop_per_second) for machine in machines)
    value = f"{good} of {curves} curves of {len(machines)} accelerators"
    expected = "bandwidth slope up to the ridge, compute roof from there"
    return Claim("L18", "roofline: one curve for each accelerator and format", expected, value, good == curves)


def _meets(machine: Machine, name: str) -> bool:
    at, peak = ridge(machine, name), machine.peak_flop_per_second[name]
    below = attainable_flop_per_second(at / 2, machine, name)
    return near(below, peak / 2) and near(attainable_flop_per_second(2 * at, machine, name), peak)


def phases() -> Claim:
    """L19: both phases of one model under one roofline."""
    train = account("llama-3-8b", seq=4096, advise=False)
    decode = account("llama-3-8b", seq=4096, phase="decode", advise=False)
    ok = train.time.bound.compute > 0.5 and decode.time.bound.memory > 0.5
    intensities = [sum(o.flops for o in a.operations) / sum(o.bytes for o in a.operations) for a in (train, decode)]
    ok = ok and intensities[1] < ridge(resolve("h100"), "bf16") < intensities[0]
    value = (
        f"training {format_percent(train.time.bound.compute)} compute-bound at {format_intensity(intensities[0])}, "
        f"decoding {format_percent(decode.time.bound.memory)} memory-bound at {format_intensity(intensities[1])}"
    )
    expected = "training compute-bound (matrix-matrix), decoding memory-bound (matrix-vector)"
    return Claim("L19", "decoding is matrix-vector, training matrix-matrix (Llama 3 8B)", expected, value, ok)


def host_link() -> Claim:
    """L29: tensors made on the CPU must be moved."""
    answer = account("llama-3-8b", on="8xh100", seq=8192, advise=False)
    machine = answer.cluster.machine
    tokens = answer.workload.tokens_per_step // answer.workload.devices
    n_bytes = 2 * storage_bytes(get_format("int64"), tokens)  # the tokens, and the tokens to predict
    link = machine.host_link_bytes_per_second or inf
    step, batch = answer.time.seconds, n_bytes / link
    weights = storage_bytes(get_format("bfloat16"), answer.model.params.total) / link
    overlapped, in_turn = max(step, batch), step + batch
    ok = 0 < batch < 1e-3 * step and overlapped == step and in_turn < 1.001 * step and weights > 1000 * batch
    value = (
        f"a batch of tokens, {format_bytes(n_bytes)} from pinned memory in {format_seconds(batch)}: beside a step of "
        f"{format_seconds(step)} it adds nothing overlapped and {(in_turn / step - 1) * 1e6:.1f} ppm in turn; "
        f"the weights would take {format_seconds(weights)}"
    )
    expected = "bytes / host link, against the step's computation; overlapped or not"
    return Claim("L29", "tensors are made on the CPU and must be moved", expected, value, ok)


def low_bits() -> Claim:
    """L30: weights of few bits are for inference."""
    rates, sizes = {}, {}
    for name in ("bf16", "int8", "int4", "int2", "ternary", "binary"):
        answer = account("llama-3-8b", phase="decode", seq=1024, precision=name, advise=False)
        rates[name], sizes[name] = 1 / answer.time.ideal_seconds, answer.memory.parameters_bytes
    speeds = list(rates.values())
    ok = speeds == sorted(speeds) and list(sizes.values()) == sorted(sizes.values(), reverse=True)
    ok = ok and speeds[-1] > 10 * speeds[0]
    ok = ok and [name for name in rates if _trains(name)] == ["bf16"]
    value = "; ".join(f"{name} {format_bytes(sizes[name])}, {rates[name]:,.0f} tokens/s" for name in rates)
    expected = "fewer bytes and faster decoding with every step down; refused for training"
    return Claim("L30", "one- and two-bit models are for inference (Llama 3 8B, ideal)", expected, value, ok)


def _trains(precision: str) -> bool:
    """Whether a training step can be asked for with this policy."""
    try:
        account("llama-3-8b", seq=1024, precision=precision, advise=False)
    except UsageError:
        return False
    return True


ROWS = (accelerator_intensity, relu, gelu, products, roof, phases, host_link, low_bits)
