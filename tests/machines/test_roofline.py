"""Are the lecture's numbers right, and is the estimate what its formula says?"""

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd.errors import InputError, UnitError, UsageError
from sixnd.machines import (
    attainable_flop_per_second,
    bounded_seconds,
    estimated_seconds,
    peak,
    resolve,
    ridge,
    roofline_seconds,
    vector_peak,
    with_peak,
)

H100 = resolve("h100")


def test_l14_accelerator_intensity_of_an_h100():
    assert ridge(H100, "bf16") == pytest.approx(989.5e12 / 3.35e12)
    assert round(ridge(H100, "bf16")) == 295


def test_l15_relu_is_bound_by_memory():
    n = 10**6
    relu = roofline_seconds(n, 2 * n + 2 * n, H100, "bf16")
    assert relu.seconds == relu.memory_seconds == pytest.approx(1.19e-6, rel=0.01)
    assert relu.compute_seconds == pytest.approx(1.01e-9, rel=0.01)
    assert relu.bound == "memory"


def test_l16_gelu_costs_what_relu_costs():
    n = 10**6
    gelu, relu = (roofline_seconds(flops * n, 4 * n, H100, "bf16") for flops in (20, 1))
    assert 20 * n / (4 * n) == 5
    assert gelu.bound == "memory"
    assert gelu.seconds == relu.seconds


@pytest.mark.parametrize(
    ("flops", "n_bytes", "intensity", "bound"),
    [
        (2 * 1024 - 1, 2 * (1024 + 1024 + 1), 0.5, "memory"),
        (2 * 1024**2 - 1024, 2 * (1024**2 + 1024 + 1024), 1, "memory"),
        (2 * 1024**3, 2 * 3 * 1024**2, 1024 / 3, "compute"),
    ],
    ids=["dot product", "matrix-vector", "matrix-matrix"],
)
def test_l17_intensities(flops, n_bytes, intensity, bound):
    assert flops / n_bytes == pytest.approx(intensity, rel=0.005)
    assert roofline_seconds(flops, n_bytes, H100, "bf16").bound == bound


@given(flops=st.integers(0, 10**20), n_bytes=st.integers(0, 10**16))
def test_the_roofline_is_the_larger_of_two_and_the_estimate_is_never_below_it(flops, n_bytes):
    ideal, estimate = (ask(flops, n_bytes, H100, "bf16") for ask in (roofline_seconds, estimated_seconds))
    assert ideal.seconds == max(ideal.compute_seconds, ideal.memory_seconds)
    assert ideal.bound == ("compute" if ideal.compute_seconds >= ideal.memory_seconds else "memory")
    assert estimate.seconds > ideal.seconds


def test_the_attainable_rate_bends_at_the_ridge():
    bend = ridge(H100, "fp8")
    top = H100.peak_flop_per_second["fp8"]
    assert attainable_flop_per_second(bend, H100, "fp8") == pytest.approx(top)
    assert attainable_flop_per_second(bend / 2, H100, "fp8") == pytest.approx(top / 2)
    assert attainable_flop_per_second(bend * 2, H100, "fp8") == top
    assert attainable_flop_per_second(0, H100, "fp8") == 0


def test_the_estimate_is_its_formula():
    efficiency = H100.efficiency
    compute = 1e15 / (989.5e12 * efficiency.matmul["bf16"].value)
    memory = 1e9 / (3.35e12 * efficiency.bandwidth.value)
    estimate = estimated_seconds(10**15, 10**9, H100, "bf16", n_kernels=3)
    assert estimate.compute_seconds == pytest.approx(compute)
    assert estimate.memory_seconds == pytest.approx(memory)
    assert estimate.seconds == pytest.approx(3 * efficiency.launch_seconds.value + compute)
    assert estimate.bound == "compute"
    assert estimated_seconds(1, 1, H100, "bf16").bound == "overhead"
    assert bounded_seconds(1, 8, 1.0, 2.0, 0.5).seconds == 4.5


def test_asking_is_cheap_beside_anything_else():
    work = timeit.timeit(lambda: roofline_seconds(10**12, 10**9, H100, "bf16"), number=2000)
    yardstick = timeit.timeit(lambda: sorted(range(500), key=lambda x: -x), number=2000)
    assert work < yardstick


@pytest.mark.parametrize(
    ("machine", "format", "engine"),
    [
        ("h100", "bf16", "bf16"),
        ("h100", "bfloat16", "bf16"),
        ("h100", "float32", "fp32"),
        ("h100", "e4m3", "fp8"),
        ("h100", "mxfp8", "fp8"),
        ("b200", "nvfp4", "fp4"),
        ("b200", "mxfp6-e3m2", "fp8"),
        ("v100", "tf32", "fp32"),
        ("a100", "int8", "int8"),
    ],
)
def test_a_format_has_an_engine(machine, format, engine):
    found = peak(resolve(machine), format)
    assert found.engine == engine
    assert found.flop_per_second == resolve(machine).peak_flop_per_second[engine]
    assert bool(found.note) == (format == "tf32")


@pytest.mark.parametrize(
    ("machine", "format", "words"),
    [
        ("v100", "bf16", "v100-sxm2-32gb has no bf16 engine: it has fp64, fp32, fp16"),
        ("a100", "fp8", "has no fp8 engine"),
        ("h100", "nvfp4", "has no fp4 engine"),
        ("tpu-v5e", "fp32", "has no fp32 engine: it has bf16, int8"),
        ("h100", "int4", "is for storage"),
    ],
)
def test_a_format_without_an_engine_is_an_error_that_says_what_there_is(machine, format, words):
    for ask in (peak, ridge, lambda machine, format: roofline_seconds(1, 1, machine, format)):
        with pytest.raises(InputError) as caught:
            ask(resolve(machine), format)
        assert words in str(caught.value)


def test_a_format_that_does_not_exist():
    with pytest.raises(UsageError, match="bf17"):
        peak(H100, "bf17")


def test_the_vector_engine():
    assert vector_peak(H100).engine == "vector"
    assert "not recorded" in vector_peak(resolve("tpu-v5e")).note


def test_another_peak():
    faster = with_peak(H100, "2300TFLOP/s")
    assert faster.peak_flop_per_second["bf16"] == 2.3e15
    assert faster.peak_flop_per_second["fp8"] == H100.peak_flop_per_second["fp8"]
    assert faster.efficiency.matmul == H100.efficiency.matmul
    assert "given by the user" in faster.notes
    assert H100.peak_flop_per_second["bf16"] == 989.5e12
    fourbit = with_peak(H100, 4e15, "nvfp4")
    assert fourbit.peak_flop_per_second["fp4"] == 4e15
    assert estimated_seconds(10**18, 1, fourbit, "nvfp4").seconds > 10**18 / 4e15
    with pytest.raises(UnitError):
        with_peak(H100, "fast")
