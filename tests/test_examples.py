"""Do the commands in README.md and docs/ print what the pages say?

A `console` fence holds commands (`$ sixnd ...`) and their output. A line that is just `...` stands for any lines. To
write the pages anew from what the commands print, run this file with SIXND_WRITE_EXAMPLES=1; how many lines of each
output a page shows is the number it shows now, or in `SHOWN`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from sixnd.app.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"```console\n(.*?)```", re.DOTALL)
SHOWN = {"account": 40, "time": 12, "largest": 10, "einops": 16, "machines": 24}


def run(command: str) -> str:
    """What one command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(shlex.split(command)[1:])
    return out.getvalue()


def examples(text: str) -> list[tuple[str, str]]:
    """The commands of a page with the output that it shows."""
    found = []
    for fence in FENCE.findall(text):
        for part in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether the shown output is the printed one, `...` standing for any lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in shown.splitlines())
    return re.fullmatch(pattern, printed) is not None


def shortened(command: str, output: str, printed: str) -> str:
    """The first lines of an output, as many as the page shows."""
    lines = output.splitlines()
    keep = len(lines) - 1 if len(lines) > 1 and lines[-1] == "..." else SHOWN[command.split()[1]]
    whole = printed.splitlines()
    cut = whole[:keep]
    while cut and not cut[-1]:
        cut.pop()
    return "\n".join([*cut, *(["..."] if len(whole) > len(cut) else [])]) + "\n"


CASES = [(page, *example) for page in PAGES for example in examples(page.read_text())]


@pytest.mark.parametrize(("page", "command", "output"), CASES, ids=[f"{p.name}: {c}" for p, c, _ in CASES])
def test_a_page_shows_what_its_commands_print(page: Path, command: str, output: str) -> None:
    printed = run(command)
    if os.environ.get("SIXND_WRITE_EXAMPLES"):
        text = page.read_text()
        page.write_text(text.replace(f"$ {command}\n{output}", f"$ {command}\n{shortened(command, output, printed)}"))
        return
    assert output.strip() != "...", "the page shows nothing of it"
    assert matches(output, printed)


def test_an_untrue_page_is_noticed() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a\n...\nx\n", "a\nb\nc\nd\n")
    assert not matches("a\n", "a\nb\n")
