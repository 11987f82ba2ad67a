"""Is view or copy answered as torch does it, and are the copies inside a torch.einsum found?"""

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixnd.errors import PatternError
from sixnd.notation.layout import Strided, contiguous, einsum_copies, move, split
from sixnd.notation.parse import Line, names_of, parse_line, size_of

SIZES = dict(zip("bstdefghkcijnpqrw", (2, 3, 4, 8, 5, 6, 3, 2, 4, 3, 3, 16, 1, 4, 4, 5, 2), strict=True))
PLACES = ("contiguous", "transposed", "sliced", "expanded")

# view (V) or copy (C) of an operand in each of those places: einops 0.8.2 on torch 2.13, by the storage of the result
MOVES = {
    "b s d -> (b s) d": "VCVC",
    "b s d -> b (s d)": "VCCV",
    "b s d -> (b s d)": "VCCC",
    "b s d -> s b d": "VVVV",
    "b s d -> b 1 s d": "VVVV",
    "b s d -> (s b) d": "CCCC",
    "b 1 s d -> (b s) d": "VCVC",
    "(b s) d -> b s d": "VVVV",
    "(s b) d -> b s d": "VVVV",
    "b s (h k) -> b h s k": "VVVV",
    "b s (h k) -> (b h) s k": "CVCC",
    "b s (h k) -> b s k h": "VVVV",
    "b s h k -> b s (h k)": "VCCV",
    "b s h k -> (b h) s k": "CCCC",
    "b h s k -> b s (h k)": "CVCC",
    "b c (h p) (w q) -> b (h w) (p q c)": "CCCC",
    "b (h w) c -> b c h w": "VVVV",
    "b n s d -> (b n s) d": "VCVC",
    "i j -> j i": "VVVV",
    "i j -> (j i)": "CVCC",
    "i j -> (i j)": "VCCC",
    "i j -> r i j": "VVVV",
    "i j -> i j r": "VVVV",
    "i j -> i (j r)": "CCCC",
    "i j -> (r i) j": "CCCV",
    "i j -> (r n) i j": "VVVV",
    "i j -> r (i j)": "VCCC",
    "i -> (r w) i": "VVVV",
}

# elements of every aten.clone in a torch.einsum on contiguous operands, torch 2.13 without opt_einsum
COPIES: dict[str, tuple[int, ...]] = {
    "s d, d e -> s e": (),
    "b s d, d e -> b s e": (),
    "b s d, b t d -> b s t": (),
    "b s h k, b t h k -> b h s t": (48, 64),
    "b h s t, b t h k -> b s h k": (64,),
    "b s h k, h k d -> b s d": (),
    "b s d, h d k -> b h s k": (64,),
    "h k d, b s d -> b s h k": (),
    "d s, d e -> e s": (),
    "s d, e d -> e s": (),
    "b s d, b t d -> b": (),
    "b s d, b e s -> d e": (30,),
    "b s d, s b e -> d e": (30,),
    "s, d -> s d": (),
    "s d, s d -> s d": (),
    "s d, s d -> s": (),
    "i j, i j ->": (),
    "s d, d e, e f -> s f": (),
    "b g t, b t d, b t -> b g d": (192,),
    "b s d, b s e, b s -> d e": (),
    "s t, t d, d -> s": (),
    "b s h k, b t h k, b t h d -> b s h d": (48, 64, 128),
    "s d, d e, s e -> s e": (),
    "b s h, h k, b k s -> k b": (24,),
    "n s d, d n e -> e s n": (),
    "b h s, s h b -> b": (12,),
    "h b s, s k h, b -> k s": (24,),
}

Strides = tuple[int, ...]

# line, sizes, strides of the operands: elements of every aten.clone, strides of the result's dims longer than 1
SCATTERED: tuple[tuple[str, dict[str, int], tuple[Strides, ...], tuple[int, ...], list[int]], ...] = (
    ("c d a b, d b, -> c a", {"a": 3, "b": 4, "c": 1, "d": 3}, ((36, 12, 4, 1), (0, 1), ()), (12, 36), [1]),
    (", b a, a b ->", {"a": 3, "b": 2}, ((), (3, 1), (1, 3)), (), []),
    ("a b d, d ->", {"a": 3, "b": 4, "d": 2}, ((2, 6, 1), (0,)), (), []),
    ("b a -> b", {"a": 4, "b": 2}, ((4, 1),), (), [1]),
    ("c b a, , c b -> a", {"a": 1, "b": 4, "c": 3}, ((0, 1, 1), (), (4, 1)), (12,), []),
    ("b a, c, c a ->", {"a": 4, "b": 2, "c": 3}, ((4, 1), (1,), (4, 1)), (12,), []),
    ("a c, b d c a -> b", {"a": 3, "b": 3, "c": 2, "d": 1}, ((0, 1), (0, 3, 3, 1)), (6, 18), [1]),
    (
        "d b, b c a e, d -> c e b",
        {"a": 1, "b": 1, "c": 2, "d": 2, "e": 2},
        ((1, 1), (4, 2, 2, 1), (1,)),
        (8,),
        [2, 1],
    ),
    ("c, a c, b -> c b", {"a": 1, "b": 4, "c": 2}, ((1,), (2, 1), (0,)), (), [4, 1]),
)


def placed(shape: tuple[int, ...], place: str) -> Strided:
    """A tensor of a shape: as it is, its last two dims exchanged in memory, half of wider rows, or its first dim 0."""
    row = contiguous(shape).strides
    if place == "transposed" and len(shape) > 1:
        return Strided(shape, (*row[:-2], 1, shape[-2]))
    if place == "sliced" and shape:
        return Strided(shape, (*(2 * stride for stride in row[:-1]), 1))
    if place == "expanded" and shape:
        return Strided(shape, (0, *row[1:]))
    return contiguous(shape)


def shape_of(line: Line, operand: int = 0) -> tuple[int, ...]:
    return tuple(size_of(dim, SIZES) for dim in line.inputs[operand])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", MOVES)
def test_view_or_copy(text: str, place: str) -> None:
    line = parse_line(text)
    moved = move(line, SIZES, placed(shape_of(line), place))
    assert moved.movement == {"V": "view", "C": "copy"}[MOVES[text][PLACES.index(place)]]
    assert moved.result.shape == tuple(size_of(dim, SIZES) for dim in line.output)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", MOVES)
def test_view_or_copy_on_torch(text: str, place: str) -> None:
    torch = pytest.importorskip("torch")
    einops = pytest.importorskip("einops")
    line = parse_line(text)
    source = placed(shape_of(line), place)
    operand = torch.empty_strided(source.shape, source.strides, device="meta")
    names = {name for term in (*line.inputs, line.output) for name in names_of(term)}
    verb = einops.repeat if names - set(names_of(line.inputs[0])) else einops.rearrange
    result = verb(operand, text, **{name: SIZES[name] for name in names})
    moved = move(line, SIZES, source)
    assert (moved.movement == "view") == (operand.untyped_storage()._cdata == result.untyped_storage()._cdata)
    stepped = [
        (a, b) for size, a, b in zip(result.shape, result.stride(), moved.result.strides, strict=True) if size > 1
    ]
    assert all(theirs == ours for theirs, ours in stepped)


def test_a_sum_is_computed_and_a_sum_over_nothing_is_not() -> None:
    assert move(parse_line("b s d -> b d"), SIZES).movement == "compute"
    assert move(parse_line("b n d -> b d"), SIZES).movement == "compute"
    assert move(parse_line("b 1 d -> b d"), SIZES).movement == "view"


def test_a_repeated_name_is_read_along_the_diagonal() -> None:
    tensor, names = split(parse_line("i j i -> i j", diagonals=True).inputs[0], {"i": 3, "j": 4})
    assert (tensor, names) == (Strided((3, 4), (13, 3)), ("i", "j"))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(PatternError, match="does not fit"):
        move(parse_line("a b -> b a"), {"a": 2, "b": 3}, contiguous([3, 2]))
    with pytest.raises(PatternError, match="no size for 'b'"):
        move(parse_line("a b -> b a"), {"a": 2})


@pytest.mark.parametrize("text", COPIES)
def test_hidden_copies(text: str) -> None:
    assert einsum_copies(parse_line(text), SIZES).copied_elements == COPIES[text]


@pytest.mark.parametrize("case", SCATTERED, ids=lambda case: case[0])
def test_hidden_copies_of_scattered_operands(
    case: tuple[str, dict[str, int], tuple[Strides, ...], tuple[int, ...], list[int]],
) -> None:
    text, sizes, strides, copied, result_strides = case
    line = parse_line(text)
    shapes = (tuple(size_of(dim, sizes) for dim in term) for term in line.inputs)
    lowered = einsum_copies(line, sizes, sources=list(map(Strided, shapes, strides)))
    assert lowered.copied_elements == copied
    pairs = zip(lowered.result.shape, lowered.result.strides, strict=True)
    assert [stride for size, stride in pairs if size > 1] == result_strides


def test_a_folded_result_is_copied_where_bmm_leaves_it_scattered() -> None:
    sizes = {"b": 2, "s": 3, "h": 4, "d": 5, "k": 6}
    assert einsum_copies(parse_line("b s d, d h k -> b s (h k)"), sizes).copied_elements == ()
    scattered = einsum_copies(parse_line("b s d, b d h -> s (b h)"), sizes)
    assert scattered.copied_elements == (2 * 3 * 4,)
    assert scattered.result == contiguous([3, 8])


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, dict[str, int], list[Strided]]:
    """An equation over single letters, its sizes, and operands that lie in memory in all sorts of ways."""
    letters = "abcdef"
    terms = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(letters), unique=True, max_size=5))
        if names and draw(st.integers(0, 9)) == 0:
            names.insert(draw(st.integers(0, len(names))), draw(st.sampled_from(names)))
        terms.append(names)
    used = sorted({name for term in terms for name in term})
    output = draw(st.permutations([name for name in used if draw(st.integers(0, 4)) > 1]))
    sizes = {name: draw(st.sampled_from((1, 2, 3, 4, 5))) for name in used}
    sources = []
    for term in terms:
        shape = tuple(sizes[name] for name in term)
        if draw(st.booleans()):
            sources.append(placed(shape, draw(st.sampled_from(PLACES))))
            continue
        order = draw(st.permutations(range(len(shape))))
        within = contiguous([shape[dim] for dim in order]).strides
        sources.append(Strided(shape, tuple(within[order.index(dim)] for dim in range(len(shape)))))
    return ", ".join(map(" ".join, terms)) + " -> " + " ".join(output), sizes, sources


@given(questions())
@settings(max_examples=400, deadline=None)
def test_hidden_copies_on_torch(question: tuple[str, dict[str, int], list[Strided]]) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Clones(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[int] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            result = func(*args, **(kwargs or {}))
            if func.overloadpacket is torch.ops.aten.clone:
                self.seen.append(result.numel())
            return result

    text, sizes, sources = question
    line = parse_line(text, diagonals=True)
    lowered = einsum_copies(line, sizes, sorted(set(sizes) - set(names_of(line.output))), sources)
    operands = []
    for source in sources:
        reach = 1 + sum((size - 1) * stride for size, stride in zip(source.shape, source.strides, strict=True))
        operands.append(torch.zeros(reach).as_strided(source.shape, source.strides))
    with torch.backends.opt_einsum.flags(enabled=False), Clones() as clones:
        result = torch.einsum(text.replace(" ", ""), *operands)
    assert list(lowered.copied_elements) == clones.seen
    assert prod(lowered.result.shape) == result.numel()
    pairs = zip(result.shape, result.stride(), lowered.result.strides, strict=True)
    assert all(theirs == ours for size, theirs, ours in pairs if size > 1)
