"""Does Markdown show exactly what the report says?"""

import pytest

from sixnd.reporting import markdown

GOLDEN = """\
## Account of tiny

**✓ Training tiny on h100 fits: 60.0 GiB of 79.6 GiB.**

### Memory

| category | bytes | share |
| :--- | ---: | ---: |
| parameters | 15.0 GiB | 25.0 % |
| optimizer | 45.0 GiB | 75.0 % |

peak during forward head.loss

### operations

| path | FLOPs |
| :--- | ---: |
| layers.mlp.up | 30.8 TFLOP |
| head | - |

**Assumed**

- precision bf16-master

**Not counted**

- gradient clipping
"""


def test_the_text_is_this(report):
    assert markdown.render(report) == GOLDEN


@pytest.mark.parametrize(
    "text, escaped",
    [
        ("a|b", r"a\|b"),
        ("d_model", "d_model"),
        ("__init__", r"\_\_init\_\_"),
        ("2 * 3 * 4", r"2 \* 3 \* 4"),
        ("`x` $y$ ~z~", r"\`x\` \$y\$ \~z\~"),
        ("# head", r"\# head"),
        ("1. one", r"1\. one"),
        ("- dash", r"\- dash"),
        ("-", "-"),
        ("--shard zero3", "--shard zero3"),
        ("16.5 GiB", "16.5 GiB"),
        ("two\nlines", "two lines"),
        ("&lt;", r"\&lt;"),
    ],
)
def test_what_markdown_would_act_on_is_escaped(text, escaped):
    assert markdown.escape(text) == escaped


def test_hostile_text_stays_in_its_cell(hostile):
    text = markdown.render(hostile)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {row.replace(r"\|", "").count("|") for row in rows} == {3}
    assert "<script" not in text.replace(r"\<", "")
    assert "\x1b" not in text


def test_an_empty_table_says_so(empty):
    assert "### Nothing\n\nnone\n" in markdown.render(empty)
