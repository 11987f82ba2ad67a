"""Does a report print the same bytes in a pipe, colours only on a terminal, and nothing that acts?"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sixnd.reporting.report import Report
from sixnd.reporting.terminal import print_report, render

SOURCE = Path(__file__).parents[2] / "src"
ESCAPE = "\x1b"

PLAIN = """\
✓ Training tiny on h100 fits: 60.0 GiB of 79.6 GiB.

Memory
  category       bytes   share
  ────────────────────────────
  parameters  15.0 GiB  25.0 %  ████████
  optimizer   45.0 GiB  75.0 %  ████████████████████████
  peak during forward head.loss

operations
  path                FLOPs
  ─────────────────────────
  layers.mlp.up  30.8 TFLOP
  head                    -

Assumed
  · precision bf16-master

Not counted
  · gradient clipping
"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def printed(report, monkeypatch):
    """What a terminal receives under an environment."""

    def printed(**environment):
        for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", **environment}.items():
            monkeypatch.setenv(name, value)
        stream = Terminal()
        print_report(report, stream=stream)
        return stream.getvalue()

    return printed


def test_the_text_is_this(report):
    assert render(report) == PLAIN


def test_a_pipe_gets_plain_text_whatever_the_width(report, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    print_report(report)
    assert capsys.readouterr().out == PLAIN


def test_a_terminal_gets_colour(printed):
    shown = printed()
    assert f"{ESCAPE}[1;32m✓" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == PLAIN


def test_no_color_is_heard(printed):
    assert printed(NO_COLOR="1") == PLAIN


def test_a_console_may_be_given(report):
    console = Console(file=io.StringIO(), width=100)
    print_report(report, console)
    assert console.file.getvalue() == PLAIN


@pytest.mark.parametrize("ok, mark", [(True, "✓ "), (False, "✗ "), (None, "")])
def test_the_verdict_bears_its_mark(ok, mark):
    assert render(Report("", "So it is.", ok=ok)) == f"{mark}So it is.\n"


@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_stay_within_the_width(report, width):
    long = Report("", "words " * 60, ok=False, tables=report.tables, notes=("note " * 50,), uncounted=("x" * 300,))
    lines = render(long, width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.count("x") for line in lines[-4:]) == 300
    assert all(line == line.rstrip() for line in lines)


def test_an_empty_report_prints(empty):
    assert render(empty) == "\nNothing\n  none\n"


def test_what_would_act_is_written_out(hostile):
    shown = render(hostile)
    assert ESCAPE not in shown
    assert "\u202e" not in shown
    assert "\\x1b[31mred" in re.sub(r"\n\s*", "", shown)


@pytest.mark.parametrize("encoding, mark", [("ascii", "+ "), ("cp1252", "+ "), ("utf-8", "✓ ")])
def test_a_stream_that_cannot_carry_a_sign_gets_another(report, encoding, mark):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    print_report(report, stream=stream)
    stream.flush()
    assert stream.buffer.getvalue().decode(encoding).startswith(mark + "Training tiny")


def test_a_piped_report_imports_neither_rich_nor_matplotlib():
    program = (
        "import sys; from sixnd.reporting.report import Report; from sixnd.reporting.terminal import print_report;"
        "print_report(Report('', 'Yes.')); print(sorted({'rich', 'matplotlib', 'numpy'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "Yes.\n[]\n"
