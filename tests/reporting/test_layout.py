"""Does a table fit its width, and is a number ever cut?"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd.reporting.layout import bar, cell_width, lay_out, wrap
from sixnd.reporting.report import Column, Table

PATHS = ("layers.feed_forward.down", "layers.attention.core", "optimizer.adamw")
WIDE = Table(
    "operations",
    (
        Column("operation"),
        Column("phase"),
        *(Column(name, "right") for name in ("FLOPs", "bytes", "intensity", "time")),
    ),
    tuple((path, "backward", "61.6 TFLOP", "25.0 GiB", "2294 FLOP/B", "77.8 ms") for path in PATHS),
    bars=(1.0, 0.5, 0.1),
)
PROSE = Table(
    "Explained",
    (Column("number"), Column("value", "right"), Column("formula"), Column("source")),
    (("peak", "147 GiB", "what is alive at the fullest moment " * 6, "the ledger " * 20),),
)


def text(table, width):
    return ["".join(span.text for span in line) for line in lay_out(table, width)]


def test_where_there_is_room_each_row_is_a_line_with_its_bar():
    lines = text(WIDE, 110)
    assert len(lines) == 2 + len(PATHS)
    assert [line.count("█") for line in lines[2:]] == [24, 12, 2]


def test_where_there_is_little_the_first_cell_wraps():
    lines = text(WIDE, 74)
    assert lines[2].startswith("layers.feed_forward. ")
    assert lines[3] == "down"
    assert max(map(len, lines)) <= 74


def test_where_there_is_less_the_first_cell_stands_above_its_row():
    lines = text(WIDE, 66)
    assert lines[3] == "layers.feed_forward.down"
    assert lines[4].split()[:9] == ["backward", "61.6", "TFLOP", "25.0", "GiB", "2294", "FLOP/B", "77.8", "ms"]


def test_where_there_is_too_little_nothing_is_cut():
    rows = [line for line in text(WIDE, 20) if "backward" in line]
    assert len(rows) == len(PATHS)
    assert all("61.6 TFLOP" in row and row.endswith("77.8 ms") for row in rows)


def test_a_right_aligned_cell_is_never_wrapped():
    table = Table("", (Column("of a step"), Column("rate", "right")), (("so many words", "102,918 tokens a second"),))
    assert any("102,918 tokens a second" in line for line in text(table, 12))


def test_tall_rows_become_paragraphs():
    lines = text(PROSE, 78)
    assert lines[0] == "peak"
    assert lines[1] == "  value    147 GiB"
    assert lines[2].startswith("  formula  what is alive")
    assert max(map(len, lines)) <= 78


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("table", [WIDE, PROSE], ids=lambda table: table.title)
def test_every_word_is_there_at_every_width(table, width):
    squeezed = re.sub(r"[\s─█▏▎▍▌▋▊▉]", "", "".join(text(table, width)))
    for row in table.rows:
        for cell in row:
            for word in cell.split():
                assert word in squeezed


def test_wide_characters_take_two_columns():
    lines = text(Table("", (Column("a"), Column("b", "right")), (("模型", "1"), ("xx", "2"))), 40)
    assert [cell_width(line) for line in lines[2:]] == [7, 7]


def test_without_headings_there_is_no_rule():
    assert text(Table("", (Column(""), Column("")), (("a", "b"),)), 40) == ["a  b"]


@given(st.text(alphabet="ab./_ 1%", max_size=60), st.integers(1, 40))
def test_wrapping_loses_nothing(words, width):
    assert "".join(wrap(words, width)).replace(" ", "") == words.replace(" ", "")


@pytest.mark.parametrize(
    "share, drawn", [(-1, ""), (0, ""), (0.05, "▍"), (0.5, "████"), (1, "████████"), (9, "████████")]
)
def test_a_bar_is_drawn_in_eighths(share, drawn):
    assert bar(share, 8) == drawn
