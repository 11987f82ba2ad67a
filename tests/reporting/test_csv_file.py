"""Is CSV one table, with plain numbers where there are any, and safe in a spreadsheet?"""

import csv
import io
from dataclasses import replace

import pytest

from sixnd.reporting import csv_file
from sixnd.reporting.report import Column, Report, Table


def read(text):
    return list(csv.reader(io.StringIO(text)))


def test_of_several_tables_it_is_the_operations_with_plain_numbers(report):
    assert csv_file.render(report) == "path,flops\nlayers.mlp.up,30786325577728\nhead,0\n"


def test_without_operations_it_is_the_first_table_as_shown(report):
    first = replace(report, tables=report.tables[:1])
    assert read(csv_file.render(first)) == [
        ["category", "bytes", "share"],
        ["parameters", "15.0 GiB", "25.0 %"],
        ["optimizer", "45.0 GiB", "75.0 %"],
    ]


def test_without_a_table_there_is_nothing():
    assert csv_file.render(Report("", "Yes.")) == ""


def test_records_may_differ_in_their_keys():
    table = Table("", (Column("a"),), (), records=({"a": 1}, {"b": 0.5, "a": None}))
    assert csv_file.render(Report("", "", tables=(table,))) == "a,b\n1,\n,0.5\n"


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", " =1", "\t=1"])
def test_a_formula_is_disarmed(cell):
    table = Table("", (Column("a"),), ((cell,),))
    assert read(csv_file.render(Report("", "", tables=(table,))))[1][0].startswith("'")


@pytest.mark.parametrize("cell", ["-", "-1.5", "+30.4%", "-1.5 GiB", "-2e-05", "a=b", "--shard", "1 - 2"])
def test_what_is_no_formula_is_left_alone(cell):
    table = Table("", (Column("a"),), ((cell,),))
    expected = cell if cell != "--shard" else "'--shard"
    assert read(csv_file.render(Report("", "", tables=(table,))))[1] == [expected]


def test_a_hostile_cell_stays_one_cell(hostile):
    rows = read(csv_file.render(hostile))
    assert [len(row) for row in rows] == [2, 2, 2]
    assert rows[0][1] == "'=1+1"
    assert rows[1][1].startswith("'=")
