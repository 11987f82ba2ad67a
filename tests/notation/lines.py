"""Programs that these tests write for themselves, so that nothing of the models room is taken on trust."""

from sixnd.formats import get_format
from sixnd.ledger import Block, Ledger
from sixnd.notation import kinds
from sixnd.notation.derived import Derived
from sixnd.notation.program import Mask, Numerics, Program
from sixnd.notation.shard import Sharding
from sixnd.notation.step import Stage, backward_nodes, forward_nodes
from sixnd.plan import Recompute

FLOAT32, BFLOAT16, FLOAT16 = (get_format(name) for name in ("float32", "bfloat16", "float16"))
HALF = Numerics(BFLOAT16, BFLOAT16, BFLOAT16, BFLOAT16)
SINGLE = Numerics(FLOAT32, FLOAT32, FLOAT32, FLOAT32)
AUTOCAST = Numerics(FLOAT32, BFLOAT16, BFLOAT16, FLOAT32)

GPT_SIZES = {
    "batch": 4,
    "seq": 64,
    "query": 64,
    "key": 64,
    "d_model": 96,
    "heads": 12,
    "d_head": 8,
    "d_ff": 384,
}
MASK = Mask()


def same(dims):
    return f"{dims} -> {dims}"


def gpt_block(numerics=HALF, attention="math", mask=MASK):
    """The block of Korthikanti et al. 2022, figure 2: LayerNorm, attention with dropout, LayerNorm, GELU, dropout."""
    p = Program("block", numerics)
    rows, inner, scores = "batch seq d_model", "batch seq heads d_head", "batch heads query key"
    x = p.entry = p.input("x", rows, needs_grad=True)
    h = layer_norm(p, "norm1", x)
    q, k, v = (p.linear(name, f"{rows}, d_model heads d_head -> {inner}", h) for name in ("q", "k", "v"))
    p.region = "core"
    if attention == "flash":
        o = flash(p, q, k, v, mask)
    else:
        s = p.apply(
            kinds.CONTRACT,
            "scores",
            f"batch query heads d_head, batch key heads d_head -> {scores}",
            q,
            k,
            mask=mask,
        )
        w = p.apply(kinds.SOFTMAX, "softmax", same(scores), s)
        w = p.apply(kinds.DROPOUT, "softmax.dropout", same(scores), w)
        o = p.apply(
            kinds.CONTRACT,
            "values",
            f"{scores}, batch key heads d_head -> batch query heads d_head",
            w,
            v,
            mask=mask,
        )
    p.region = ""
    o = p.linear("out", f"{inner}, heads d_head d_model -> {rows}", o)
    o = p.apply(kinds.DROPOUT, "dropout1", same(rows), o)
    x = p.apply(kinds.ADD, "sum1", f"{rows}, {rows} -> {rows}", o, x)
    h = layer_norm(p, "norm2", x)
    h = p.linear("up", f"{rows}, d_model d_ff -> batch seq d_ff", h)
    h = p.apply(kinds.GELU, "gelu", same("batch seq d_ff"), h)
    h = p.linear("down", f"batch seq d_ff, d_ff d_model -> {rows}", h)
    h = p.apply(kinds.DROPOUT, "dropout2", same(rows), h)
    p.exit = p.apply(kinds.ADD, "sum2", f"{rows}, {rows} -> {rows}", h, x)
    return p


def flash(p, q, k, v, mask):
    """Fused attention with one key head for each query head: the kind's own names are kv and group."""
    split = "batch seq heads d_head -> batch seq heads one d_head"
    q = p.apply(kinds.VIEW, "q.view", split, q)
    line = "batch query kv group d_head, batch key kv d_head, batch key kv d_value -> batch query kv group d_value"
    o = p.apply(kinds.ATTENTION, "core", line, q, k, v, mask=mask, work="batch kv group query key")
    return p.apply(kinds.VIEW, "core.view", "batch seq heads one d_head -> batch seq heads d_head", o)


def layer_norm(p, path, x, rows="batch seq d_model", dims="d_model"):
    weight, bias = p.parameter(f"{path}.weight", dims), p.parameter(f"{path}.bias", dims)
    return p.apply(kinds.LAYER_NORM, path, f"{rows}, {dims}, {dims} -> {rows}", x, weight, bias)


def mlp(depth=1, *, numerics=SINGLE, activation=None, needs_grad=True, path="mlp", exits=True):
    """`depth` matmuls of d x d, each followed by the activation if there is one."""
    p = Program(path, numerics)
    x = p.input("x", "batch d", needs_grad=needs_grad)
    p.entry = x
    for i in range(depth):
        x = p.linear(f"matmul{i}", "batch d, d k -> batch k", x)
        if activation is not None:
            x = p.apply(activation, f"activation{i}", same("batch k"), x)
    p.exit = x if exits else None
    return p


def squared_loss(numerics=SINGLE, dims="batch d", path="loss"):
    """A head that keeps its input and begins the backward."""
    p = Program(path, numerics)
    x = p.entry = p.input("x", dims, needs_grad=True)
    kind = kinds.Kind("square", kinds.Work(vector=2), kinds.Work(vector=1), keeps=("0",), starts_backward=True)
    p.apply(kind, "square", f"{dims} -> ", x, format=FLOAT32)
    return p


def derive(program, sizes, sharding=None, **more):
    return Derived(program, sizes, sharding or Sharding(), **more)


def ledger(*stages, recompute=None, resident=()):
    """Forward and backward of a chain; a stage is a `Derived`, or a pair with whether it may be recomputed."""
    chain = [stage if isinstance(stage, Stage) else Stage(stage) for stage in stages]
    policy = recompute or Recompute()
    return Ledger(forward_nodes(chain, policy) + backward_nodes(chain, policy), resident)


def ops(nodes):
    """Every distinct op of a ledger's nodes, in order."""
    for node in nodes:
        if isinstance(node, Block):
            yield from node.ops
        else:
            yield from ops(node.body)


def matrix_flops(derived, phase, *, masked=False):
    led = ledger(derived)
    cost = led.totals(lambda op: op.phase)[phase]
    return cost.masked_matrix_flops if masked else cost.matrix_flops


def kept_bytes(derived, *, statistics=False):
    """Bytes that forward leaves for backward."""
    return sum(spec.n_bytes for spec in derived.kept.values() if statistics or spec.role != "statistic")


def collectives(derived, phase=None):
    """(phase, name, axes, path, bytes) of every collective of one block, forward and backward, in order."""
    return [
        (op.phase, op.collective.name, op.collective.axes, op.path, op.collective.n_bytes)
        for op in ops(ledger(derived).body)
        if op.collective is not None and phase in (None, op.phase)
    ]
