"""Are the figures complete, legible, quick, the same each time, and safe in a page?"""

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sixnd.errors import MissingDependencyError, UsageError
from sixnd.ledger import CATEGORIES, Sample
from sixnd.reporting.figures import Point, Roof, memory_timeline, roofline, save, svg_text
from sixnd.reporting.figures.labels import Box, Label, arrange
from sixnd.reporting.figures.memory import MOST_BINS, bands, binned

SOURCE = Path(__file__).parents[2] / "src"
H100 = Roof("h100", 989.5e12, 3.35e12)
B200 = Roof("b200", 2.25e15, 8e12)
GIB = 2**30


def point(label, intensity, share, phase="forward"):
    attained = min(H100.peak_flop_per_second, intensity * H100.bytes_per_second)
    return Point(label, intensity, attained, share, phase)


POINTS = [
    point("layers.mlp.up", 2294, 0.2),
    point("layers.mlp.gate", 2294, 0.2, "backward"),
    point("layers.attention.core", 6584, 0.12),
    point("layers.attention.out", 1638, 0.1),
    point("layers.attention.v", 745, 0.05),
    point("optimizer.adamw", 0.5, 0.1, "optimizer"),
    point("layers.mlp.activation", 1.0, 0.03),
    point("head.loss", 0.4, 0.03),
    point("embedding.rows", 0.0, 0.17),
]


def step(n):
    """A step in which activations rise and fall, with one moment at its middle that is fuller by far."""
    half, last = n // 2, n - 1
    for i in range(n):
        activations = min(i, n - i) * GIB // 1000 + (9 * GIB if i == half else 0)
        levels = {"parameters": 15 * GIB, "optimizer": 30 * GIB, "activations": activations}
        phase = "optimizer" if i == last else "forward" if i <= half else "backward"
        yield Sample(f"op{i}", phase, tuple(levels.get(category, 0) for category in CATEGORIES))


def texts(figure):
    """What is written in a figure."""
    return [text.strip() for text in ElementTree.fromstring(svg_text(figure)).itertext() if text.strip()]


DRAWN = {
    "roofline": lambda: roofline([H100, B200], POINTS, "Roofline of tiny"),
    "timeline": lambda: memory_timeline(step(2000), 80 * GIB, "Memory of tiny"),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("suffix, start", [(".svg", b"<?xml"), (".PNG", b"\x89PNG"), (".pdf", b"%PDF")])
def test_a_figure_is_saved_by_its_suffix_and_is_the_same_each_time(tmp_path, name, suffix, start):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    save(DRAWN[name](), first)
    save(DRAWN[name](), second)
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["a.jpg", "svg", "a"])
def test_another_suffix_is_refused_with_those_there_are(tmp_path, name):
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.pdf"):
        save(DRAWN["roofline"](), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", DRAWN)
def test_the_users_settings_change_nothing_and_are_not_changed(name):
    import matplotlib

    expected = svg_text(DRAWN[name]())
    with matplotlib.rc_context({"font.size": 31, "lines.linewidth": 9, "svg.hashsalt": "mine", "axes.grid": True}):
        assert svg_text(DRAWN[name]()) == expected
        assert matplotlib.rcParams["font.size"] == 31


@pytest.mark.parametrize("name", DRAWN)
def test_in_a_page_a_figure_is_named_scalable_and_takes_the_pages_colours(name):
    svg = ElementTree.fromstring(svg_text(DRAWN[name]()))
    assert svg.get("role") == "img"
    assert svg.get("aria-label").endswith("of tiny")
    assert svg.get("viewBox")
    assert svg.get("width") is None
    text = svg_text(DRAWN[name]())
    assert text.startswith("<svg ")
    assert "var(--ink, #1f2328)" in text
    assert "<metadata" not in text


def test_ids_of_two_figures_do_not_meet():
    def ids(title):
        svg = svg_text(roofline([H100], POINTS, title))
        return {element.get("id") for element in ElementTree.fromstring(svg).iter()} - {None}

    assert ids("one")
    assert ids("one").isdisjoint(ids("two"))


HARM = "<script>alert('x')</script> $\\frac{1}{2}$ & \"y\" \x1b[31m"


def test_hostile_names_are_only_text():
    figures = [
        roofline([Roof(HARM, 1e12, 1e12)], [Point(HARM, 9, 1e12, 1.0, HARM)], HARM),
        memory_timeline([Sample(HARM, "forward", (GIB,) * len(CATEGORIES))], GIB, HARM),
    ]
    for figure in figures:
        svg = svg_text(figure)
        assert "<script" not in svg
        assert "\x1b" not in svg
        assert any("$\\frac{1}{2}$" in text for text in texts(figure))


def test_a_roofline_says_peaks_ridges_and_what_is_left_out():
    written = texts(DRAWN["roofline"]())
    assert {"h100", "b200", "forward", "backward", "optimizer", "intensity (FLOP/byte)"} <= set(written)
    assert "ridge 295 FLOP/B" in written
    assert "layers.mlp.up, gate 40.0 %" in written
    assert any("1 operations, 17.0 % of the time" in text for text in written)


@pytest.mark.parametrize("machines", [[H100], [H100, B200], [Roof(f"m{i}", 1e15 - i * 1e13, 3e12) for i in range(6)]])
@pytest.mark.parametrize("name", ["roofline", "timeline"])
def test_no_text_covers_another_or_leaves_the_page(machines, name):
    figure = roofline(machines, POINTS, "Roofline") if name == "roofline" else DRAWN["timeline"]()
    renderer = figure.canvas.get_renderer()
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in [*figure.texts, *figure.axes[0].texts]
        if text.get_text()
    ]
    for name, box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, name
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, name
    assert [(a, b) for (a, x), (b, y) in combinations(boxes, 2) if x.overlaps(y)] == []


def test_a_roofline_needs_no_point_but_a_machine():
    assert "h100" in texts(roofline([H100]))
    with pytest.raises(ValueError, match="at least one machine"):
        roofline([])


def test_a_timeline_marks_the_peak_the_phases_and_the_capacity():
    written = texts(DRAWN["timeline"]())
    assert "peak 55.0 GiB in op1000 (forward)" in written
    assert {"forward", "backward", "optimizer", "capacity 80.0 GiB", "parameters", "15.0 GiB"} <= set(written)
    assert "gradients" not in written


@pytest.mark.parametrize("capacity, words", [(None, None), (40 * GIB, "capacity 40.0 GiB"), (900 * GIB, "far above")])
def test_a_capacity_may_be_none_too_small_or_far_above(capacity, words):
    written = " ".join(texts(memory_timeline(step(100), capacity, "Memory")))
    assert (words in written) if words else ("capacity" not in written)


def test_a_long_step_takes_no_more_room_than_a_short_one_and_keeps_its_peak():
    samples = list(step(20_000))
    long, short = (svg_text(memory_timeline(of, 80 * GIB, "Memory")) for of in (samples, step(MOST_BINS)))
    assert len(long) < 1.5 * len(short)
    kept = binned(samples)
    assert len(kept) == MOST_BINS
    assert max(sum(sample.levels) for _, sample in kept) == max(sum(sample.levels) for sample in samples)


def test_a_timeline_needs_an_operation():
    with pytest.raises(ValueError, match="at least one operation"):
        memory_timeline([], GIB, "Memory")


def test_bands_cover_the_step():
    found = bands(list(step(50)))
    assert [(band.phase, band.start, band.stop) for band in found] == [
        ("forward", 0, 26),
        ("backward", 26, 49),
        ("optimizer", 49, 50),
    ]


def test_labels_hang_as_a_staircase_off_every_mark():
    labels = [Label(x, 300, 4, 90, 12) for x in (40, 50, 60, 61)]
    marks = [Box(60, 270, 80, 290)]
    boxes = arrange(labels, marks, 0)
    assert [box.top for box in boxes] == sorted(box.top for box in boxes)
    assert not any(a.meets(b) for a, b in combinations([*boxes, *marks], 2))


def test_a_label_without_a_place_is_left_out():
    assert arrange([Label(10, 20, 3, 50, 30)], [], 0) == [None]


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'sixnd\[plot\]'"):
        roofline([H100])


def test_drawing_does_not_touch_pyplot(tmp_path):
    program = "import sys; from sixnd.reporting.figures import *; svg_text(roofline([Roof('a', 1, 1)])); "
    program += "print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE), "MPLCONFIGDIR": str(tmp_path)},
    )
    assert done.stdout == "False\n"
