"""Is the damage report right? Against plain numpy, and against published errors on normal values."""

from math import inf, sqrt

import numpy as np
import pytest

from sixnd.errors import UsageError
from sixnd.formats import best_formats, damage, get_format, quantize, tensor_bits
from sixnd.formats.rounding import CHUNK
from sixnd.formats.tally import Tally, candidates

# relative RMS error, underflow share and largest error of 2^20 standard normal values, seed 0; the research notes, A5
PUBLISHED = {
    "float16": (0.00020758643715555684, 0.0, 0.0019297599792480469),
    "bfloat16": (0.0016627331212898814, 0.0, 0.015615463256835938),
    "e4m3": (0.026522235291012018, 0.0007925033569335938, 0.2498455047607422),
    "e5m2": (0.05284592689572151, 5.7220458984375e-06, 0.49411725997924805),
    "e3m2": (0.0533646522905595, 0.024950027465820312, 0.49411725997924805),
    "e2m3": (0.038405817202837186, 0.04980945587158203, 0.2498455047607422),
    "e2m1": (0.15224367388393706, 0.19713211059570312, 0.9981603622436523),
    "mxfp8": (0.02936253848210177, 5.7220458984375e-06, 0.4874124526977539),
    "mxfp8-e5m2": (0.053987616845279904, 0.0, 0.49411725997924805),
    "mxfp6-e3m2": (0.053988431697695384, 0.0027313232421875, 0.49411725997924805),
    "mxfp6-e2m3": (0.028364913390655052, 0.02207469940185547, 0.2498455047607422),
    "mxfp4": (0.11499027801348016, 0.08828258514404297, 0.9981603622436523),
    "nvfp4": (0.0950153289338447, 0.06823253631591797, 0.6307430267333984),
    "int8-tensor": (0.011345541281340842, 0.015654563903808594, 0.01967787742614746),
}


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(0).standard_normal(2**20).astype(np.float32).reshape(1024, 1024)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_errors(normal, name):
    relative, underflow, largest = PUBLISHED[name]
    found = damage(normal, name)
    assert found.relative_rms_error == pytest.approx(relative, rel=1e-7)
    assert found.underflow_share == underflow
    assert found.largest_error == pytest.approx(largest, rel=1e-5)
    assert found.sqnr_db == pytest.approx(-20 * np.log10(relative), rel=1e-7)


@pytest.mark.parametrize("name", ["e4m3", "mxfp4", "nvfp4", "nvfp4-2d", "int8-channel", "bfloat16", "ternary-tensor"])
@pytest.mark.parametrize("shape", [(300,), (33, 70), (2, 20, 45), (2, CHUNK + 70)])
def test_the_sums_are_those_of_numpy(name, shape):
    x = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    x.reshape(-1)[::7] = 0
    y = quantize(x, name).astype(np.float64)
    found = damage(x, name)
    error, exact = y - x, x.astype(np.float64)
    assert found.relative_rms_error == pytest.approx(sqrt((error**2).sum() / (exact**2).sum()), rel=1e-12)
    assert found.underflow_share == np.mean((y == 0) & (x != 0))
    assert found.zero_share == np.mean(x == 0)
    assert found.largest_error == np.abs(error).max()
    assert found.bits_per_value == tensor_bits(get_format(name), shape) / x.size
    assert found.n_values == x.size
    worst = found.worst_block
    rows = slice(worst.column, worst.column + worst.n_values)
    row_error, row = error.reshape(-1, shape[-1])[worst.row, rows], exact.reshape(-1, shape[-1])[worst.row, rows]
    assert worst.relative_rms_error == pytest.approx(sqrt((row_error**2).sum() / (row**2).sum()), rel=1e-12)


def test_the_worst_block_is_found():
    x = np.ones((40, 64), np.float32)
    x[17, 40:43] = [1000.0, 3.0, 2.0]  # its neighbours are flushed
    found = damage(x, "mxfp4").worst_block
    assert (found.row, found.column, found.n_values) == (17, 32, 32)
    assert damage(np.ones((4, 64)), "mxfp4").worst_block is None


@pytest.mark.parametrize(
    ("values", "name", "share"),
    [
        ([1.0, 464.0, 465.0, -1e9, np.inf], "e4m3", 3 / 5),
        ([65519.0, 65520.0], "float16", 1 / 2),
        ([-128.0, -128.5, -128.6, 127.4, 127.5], "int8", 2 / 5),
        ([1000.0, 8.0, 900.0, 800.0], "mxfp4", 2 / 4),
        ([1000.0, 8.0, 900.0, 800.0], "mxfp4-ceil", 0.0),
        ([1000.0, 8.0, 900.0, 800.0], "nvfp4", 0.0),
        ([1000.0, 8.0], "int8-tensor", 0.0),
    ],
)
def test_saturated(values, name, share):
    assert damage(values, name).saturated_share == share


def test_nothing_lost_is_said_so():
    found = damage(np.zeros((2, 3)), "mxfp4")
    assert (found.relative_rms_error, found.sqnr_db, found.zero_share, found.worst_block) == (0.0, inf, 1.0, None)
    assert damage([1.0, 0.5], "e2m1").sqnr_db == inf


def test_infinities_are_saturated_and_not_in_the_error():
    found = damage([1.0, np.inf, 1.1], "e4m3")
    assert found.saturated_share == 1 / 3
    assert found.relative_rms_error == damage([1.0, 1.1], "e4m3").relative_rms_error


def test_tensors_add_up():
    random = np.random.default_rng(8)
    tensors = [random.standard_normal((5, 64)).astype(np.float32), random.standard_normal((3, 64)).astype(np.float32)]
    tally = Tally("mxfp4")
    for tensor in tensors:
        tally.add(tensor, tensor.shape)
    together = damage(np.concatenate(tensors), "mxfp4")
    assert tally.damage().relative_rms_error == pytest.approx(together.relative_rms_error, rel=1e-12)
    assert tally.damage().underflow_share == together.underflow_share


@pytest.mark.parametrize("name", ["e8m0", "int8-mx"])
def test_scales_and_elements_store_no_tensor(name):
    with pytest.raises(UsageError, match="no tensor is stored in it"):
        damage([1.0], name)


def test_nothing_is_no_damage():
    with pytest.raises(UsageError, match="no values"):
        Tally("e4m3").damage()


def test_the_best_under_a_budget(normal):
    for most in (2.5, 4.1, 4.6, 6.3, 8.0):
        ranked = best_formats(normal[:64], most)
        errors = [found.relative_rms_error for found in ranked]
        assert errors == sorted(errors)
        assert all(found.bits_per_value <= most for found in ranked)
    assert best_formats(normal[:64], 4.6, names=("nvfp4", "mxfp4", "e4m3"))[0].format == "nvfp4"
    assert "nvfp4" not in {found.format for found in best_formats(normal[:64], 4.5)}  # the tensor's own scale
    with pytest.raises(UsageError, match=r"no format stores values of shape \(1,\) in 1 bits"):
        best_formats([1.0], 1)


def test_padding_counts_against_the_budget():
    narrow = np.random.default_rng(9).standard_normal((100, 40))
    assert "mxfp4" not in {found.format for found in best_formats(narrow, 4.5)}
    assert "mxfp4" in {found.format for found in best_formats(narrow, 6.8)}


def test_candidates_are_formats_that_exist():
    names = [format.name for format in candidates(64)]
    assert len(names) == len(set(names))
    assert {"float32", "e4m3", "mxfp4-even", "int8-tensor", "nvfp4-2d"} <= set(names)
    assert not {"int8", "uint8-tensor", "e8m0", "int64"} & set(names)
