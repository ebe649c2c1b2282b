"""Attention, RotaryEmbedding."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_SCORES: tuple[ops.AttentionScores, ...] = ("Product", "Capped", "Masked", "Softmax")
_GUARDS: dict[str, ops.AttentionGuard] = {"nothing": "Nothing", "undefined": "Undefined"}

remark(
    "MultiHeadAttention",
    "A node reads its past even if it does not return the present. In onnxruntime, the results of such a node are "
    "undefined: onnxruntime reads the past only if the node has the output present. The same is true of Attention and "
    "GroupQueryAttention of com.microsoft.",
)


@lowers("Attention", newest=25)
@lowers("Attention", newest=1, domain=PLAN_DOMAIN)
def attention(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Attention`, computed in float32 or wider; `softmax_precision` may request a type as wide as the inputs.

    The operator of `candle.plan` has one more attribute: `guard`, see `ops.AttentionGuard`.
    """
    node.precision("softmax_precision", node.input(0))
    mode = node.int("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(_SCORES):
        node.refuse("CC0202", f"Attention has no qk_matmul_output_mode {mode}")
    heads, kv_heads = _heads(node)
    softcap = node.float("softcap", 0.0)
    op = ops.Attention(
        is_causal=node.flag("is_causal", False),
        scores=_SCORES[mode],
        heads=heads,
        kv_heads=kv_heads,
        left_window=_window(node, "left_window_size"),
        right_window=_window(node, "right_window_size"),
        scale=node.float("scale", None),
        softcap=softcap if softcap else None,
        guard=_GUARDS[node.string("guard")] if node.domain else "Unseeing",
    )
    if _is_appended(node, op):
        return _appended(node, build, op)
    wanted = max((index + 1 for index in range(4) if node.uses_output(index)), default=1)
    return build(op, node.input(0), node.input(1), node.input(2), *map(node.optional, range(3, 7)), outputs=wanted)


def _is_appended(node: Node, op: ops.Attention) -> bool:
    """Whether the past and the new keys may be joined first, by a Concat that can write into a state in place.

    Only the dimensions tell how many queries and new keys there are. If the numbers differ, a query has another place.
    """
    given = [node.optional(index) is not None for index in (4, 5, 6)]
    if given != [True, True, False] or op.kv_heads is not None or node.uses_output(3):
        return False
    shapes = [node.input(index).shape for index in (0, 1)]
    query, key = (None if shape is None or len(shape) != 4 else shape[2] for shape in shapes)
    return not _has_places(op) or (query is not None and query == key)


def _appended(node: Node, build: PlanBuilder, op: ops.Attention) -> tuple[Value, ...]:
    """Attention to the past and the new keys. The queries are at the last places, which only masks need to know."""
    key, value = (build(ops.Concat(axis=2), node.input(past), node.input(new)) for past, new in ((4, 1), (5, 2)))
    inputs = [node.input(0), key, value, node.optional(3)]
    if _has_places(op):
        batch, total = build(ops.Shape(start=0, end=1), key), build(ops.Shape(start=2, end=3), key)
        inputs += [None, None, build(ops.Expand(), total, batch)]
    return build(op, *inputs), key, value


def _has_places(op: ops.Attention) -> bool:
    """Whether the place of a query decides which keys it sees."""
    return op.is_causal or op.left_window is not None or op.right_window is not None


def _heads(node: Node) -> tuple[int | None, int | None]:
    """The numbers of heads, which only inputs without a dimension of heads need."""
    heads, kv_heads = node.int("q_num_heads", 0), node.int("kv_num_heads", 0)
    rank = node.input(0).rank
    if rank == 4 or (rank is None and not heads):
        return None, None
    if heads < 1 or kv_heads < 1:
        node.refuse("CC0202", "Attention on inputs of three dimensions needs q_num_heads and kv_num_heads")
    return heads, kv_heads


def _window(node: Node, name: str) -> int | None:
    size = node.int(name, -1) if node.version >= 25 else -1
    if size < -1:
        node.refuse("CC0202", f"{name} {size} is neither a size nor -1")
    return None if size == -1 else size


@lowers("RotaryEmbedding", newest=23)
@lowers("RotaryEmbedding", newest=1, domain=PLAN_DOMAIN)
def rotary_embedding(node: Node, build: PlanBuilder) -> Value:
    """`RotaryEmbedding`. The tables of the operator of `candle.plan` may have one batch."""
    x, heads = node.input(0), node.int("num_heads", 0)
    folded = x.rank == 3 or (x.rank is None and heads > 0)
    if folded and heads < 1:
        node.refuse("CC0202", "RotaryEmbedding on an input of three dimensions needs num_heads")
    op = ops.RotaryEmbedding(
        interleaved=node.flag("interleaved", False),
        heads=heads if folded else None,
        rotary_dim=node.int("rotary_embedding_dim", 0) or None,
    )
    return build(op, x, node.input(1), node.input(2), node.optional(3))
