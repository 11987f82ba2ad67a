"""Is a line read as einops reads it, and is everything else refused in one sentence?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixnd.errors import PatternError
from sixnd.notation.parse import Line, expand, format_term, name_integers, names_of, parse_line, size_of

LINES = {
    "b s d, d k -> b s k": Line(
        ((("b",), ("s",), ("d",)), (("d",), ("k",))),
        (("b",), ("s",), ("k",)),
    ),
    "b (h k) -> b h k": Line(((("b",), ("h", "k")),), (("b",), ("h",), ("k",))),
    "i j ->": Line(((("i",), ("j",)),), ()),
    "-> r": Line(((),), (("r",),)),
    "a 1 () b -> a b 1": Line(((("a",), (), (), ("b",)),), (("a",), ("b",), ())),
    "a (1 b) -> a b": Line(((("a",), ("b",)),), (("a",), ("b",))),
    "... d -> ...": Line(((("...",), ("d",)),), (("...",),)),
    "(... d)->… d": Line(((("...", "d"),),), (("...",), ("d",))),
    "h w -> (h 2) (w 2)": Line(((("h",), ("w",)),), (("h", "2"), ("w", "2"))),
    "b ... -> b (...)": Line(((("b",), ("...",)),), (("b",), ("...", ""))),
    "größe _x d_model2->d_model2": Line(((("größe",), ("_x",), ("d_model2",)),), (("d_model2",),)),
}

REFUSED = {
    "a b": "exactly one '->'",
    "a -> b -> c": "exactly one '->'",
    "a -> b, c": "comma after",
    "(a b -> a b": "'(' without ')'",
    "a b) -> a b": "')' without '('",
    "((a) b) -> a b": "parentheses inside parentheses",
    "a a -> a": "'a' stands twice",
    "a (b a) -> a b": "'a' stands twice",
    "a -> a a": "'a' stands twice",
    "... ... -> ...": "'...' stands twice",
    "a-b -> a": "cannot read '-b'",
    "a.b -> a": "cannot read '.b'",
    "a* -> a": "cannot read '*'",
    "a" * 5000 + " -> a": "longer than",
}


@pytest.mark.parametrize("text", LINES)
def test_reads(text: str) -> None:
    assert parse_line(text) == LINES[text]


@pytest.mark.parametrize("text", LINES)
def test_writes_what_it_reads(text: str) -> None:
    assert parse_line(str(LINES[text])) == LINES[text]


@pytest.mark.parametrize("text, why", REFUSED.items(), ids=lambda text: text[:20])
def test_refuses(text: str, why: str) -> None:
    with pytest.raises(PatternError) as refusal:
        parse_line(text)
    assert why in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_an_operand_may_repeat_a_name_only_where_asked() -> None:
    assert parse_line("i i ->", diagonals=True).inputs == ((("i",), ("i",)),)
    for text in ("i -> i i", "... ... -> ..."):
        with pytest.raises(PatternError, match="stands twice"):
            parse_line(text, diagonals=True)


@pytest.mark.parametrize(
    "text, sizes, written, named",
    [
        ("... d -> ...", (2, 5), "_0 _1 d -> _0 _1", {"_0": 2, "_1": 5}),
        ("b ... -> b (...)", (2, 5), "b _0 _1 -> b (_0 _1)", {"_0": 2, "_1": 5}),
        ("... d -> d ...", (), "d -> d", {}),
        ("_1 ... -> ... _1", (2, 5), "_1 __0 __1 -> __0 __1 _1", {"__0": 2, "__1": 5}),
    ],
)
def test_an_ellipsis_is_written_out(text: str, sizes: tuple[int, ...], written: str, named: dict[str, int]) -> None:
    line, got = expand(parse_line(text), sizes)
    assert (str(line), got) == (written, named)


def test_every_integer_is_a_dim_of_its_own() -> None:
    line, sizes = name_integers(parse_line("2 2 b -> b (2 3)"))
    assert len({name for term in (*line.inputs, line.output) for name in names_of(term)}) == 5
    assert sorted(sizes.values()) == [2, 2, 2, 3]


def test_a_folded_dim_has_the_product_of_its_sizes() -> None:
    assert size_of(("h", "2", "k"), {"h": 3, "k": 5}) == 30
    assert size_of((), {}) == 1
    with pytest.raises(PatternError, match=r"no size for 'hidden'.*did you mean 'hiden'"):
        size_of(("hidden",), {"hiden": 3})


NAME = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)


@st.composite
def terms(draw: st.DrawFn) -> str:
    names = draw(st.lists(NAME, unique=True, max_size=6))
    dims = []
    while names:
        folded = draw(st.integers(1, len(names)))
        dims.append(tuple(names[:folded]))
        names = names[folded:]
    return format_term(tuple(dims))


@given(inputs=st.lists(terms(), min_size=1, max_size=4), output=terms())
def test_what_is_written_is_read_back(inputs: list[str], output: str) -> None:
    text = ", ".join(inputs) + " -> " + output
    assert str(parse_line(text)) == text


@given(st.text("ab12 ,()->._…", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_line_or_a_pattern_error(text: str) -> None:
    try:
        line = parse_line(text)
    except PatternError:
        return
    assert parse_line(str(line)) == line
