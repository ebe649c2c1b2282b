"""LinearAttention: attention whose keys and values are summed in a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""`update_rule` → whether the state decays, and whether the keys' former values are subtracted."""


@dataclass(frozen=True)
class _Sizes:
    """The sizes of the operands: H heads of the state, `[H, D, E]` for each row; `group` queries read a head."""

    batch: Size
    heads: int
    group: int
    depth: int
    width: int


@expands("LinearAttention")
def linear_attention(node: Node, new: Body) -> tuple[ir.Value, ir.Value]:
    """For each position: `S = exp(decay) · S + kᵀ · update` and `y = scale · q · S`.

    The update is `v`, or `beta · (v - k · S)` after the decay. Queries are `[B, T, Hq · D]`, keys `[B, T, Hk · D]`,
    values `[B, T, H · E]`, states `[B, H, D, E]`. Outputs: the result `[B, T, max(Hq, H) · E]`, the last state, which
    may have another type than the queries. Everything is computed in float32.
    """
    dtype = node.dtype(0, "query", FLOAT, *HALVES)
    node.int("chunk_size", 64)  # how many positions a kernel takes at a time
    node.choice("state_window", 0)
    rule = node.string("update_rule", "gated_delta")
    if rule not in _RULES:
        node.refuse("CC0202", f"LinearAttention has no update_rule {rule!r}", help=f"one of {', '.join(_RULES)}")
    decays, corrects = _RULES[rule]
    sizes, query_heads = _sizes(node, new)
    operands = [_queries(node, new, sizes, query_heads), _keys(node, new, sizes), _values(node, new, sizes)]
    node.ignore(4, 5)
    if decays:
        operands.append(_factors(node, new, 4, "decay", (sizes.heads, sizes.heads * sizes.depth), sizes))
    if corrects:
        operands.append(_factors(node, new, 5, "beta", (1, sizes.heads), sizes))
    axes = [1] * len(operands)
    body = _step(decays=decays, corrects=corrects)
    options: dict[str, Any] = {"num_scan_inputs": len(operands), "scan_input_axes": axes, "scan_output_axes": [1]}
    last, rows = new.op("Scan", _state(node, new, sizes), *operands, body=body, outputs=2, **options)
    scale = node.float("scale", 0.0) or sizes.depth**-0.5
    y = new.reshape(rows, 0, 0, sizes.heads * sizes.group * sizes.width)
    y = new.op("Mul", y, new.scalar(scale, FLOAT))
    held = dtype if node.optional(3) is None else node.dtype(3, "past_state", FLOAT, *HALVES)
    return new.cast(y, dtype, FLOAT), new.cast(last, held, FLOAT)


def _state(node: Node, new: Body, sizes: _Sizes) -> ir.Value:
    """The state `[B, H, D, E]`, zeros if the node has none."""
    state, shape = node.optional(3), (sizes.batch, sizes.heads, sizes.depth, sizes.width)
    if state is None:
        return new.op("Expand", new.scalar(0, FLOAT), new.sizes(*shape))
    node.rank(3, "past_state", 4)
    node.check_sizes(3, "past_state", dict(enumerate(shape)))
    return new.reshape(new.upcast(state), *shape)


def _sizes(node: Node, new: Body) -> tuple[_Sizes, int]:
    """The sizes, and the number of heads of the queries."""
    for index, name in enumerate(("query", "key", "value")):
        node.rank(index, name, 3)
    query_heads, heads = node.positive("q_num_heads"), node.positive("kv_num_heads")
    if query_heads % heads and heads % query_heads:
        node.refuse("CC0202", f"LinearAttention's {query_heads} heads of queries do not fit {heads} heads of values")
    depth, width = node.split_size(0, "query", 2, query_heads), node.split_size(2, "value", 2, heads)
    group = max(query_heads // heads, 1)
    return _Sizes(new.size(node.input(0), 0), heads, group, depth, width), query_heads


def _queries(node: Node, new: Body, sizes: _Sizes, heads: int) -> ir.Value:
    """The queries `[B, T, H, group, D]`. If there are fewer than H heads of queries, several heads share one."""
    if heads >= sizes.heads:
        return new.reshape(new.upcast(node.input(0)), sizes.batch, 0, sizes.heads, sizes.group, sizes.depth)
    return new.reshape(
        _repeated(new, new.upcast(node.input(0)), heads, sizes), sizes.batch, 0, sizes.heads, 1, sizes.depth
    )


def _keys(node: Node, new: Body, sizes: _Sizes) -> ir.Value:
    """The keys `[B, T, H, 1, D]`."""
    heads = node.size(1, "key", 2) // sizes.depth
    if heads < 1 or sizes.heads % heads:
        node.refuse("CC0210", f"LinearAttention's {heads} heads of keys do not fit {sizes.heads} heads of values")
    keys = new.upcast(node.input(1))
    keys = keys if heads == sizes.heads else _repeated(new, keys, heads, sizes)
    return new.reshape(keys, sizes.batch, 0, sizes.heads, 1, sizes.depth)


def _repeated(new: Body, value: ir.Value, heads: int, sizes: _Sizes) -> ir.Value:
    """`[B, T, heads · D]` → `[B, T, heads, H / heads, D]`."""
    apart = new.reshape(value, 0, 0, heads, 1, sizes.depth)
    return new.op("Expand", apart, new.numbers(1, 1, 1, sizes.heads // heads, 1))


def _values(node: Node, new: Body, sizes: _Sizes) -> ir.Value:
    """The values `[B, T, H, 1, E]`."""
    return new.reshape(new.upcast(node.input(2)), sizes.batch, 0, sizes.heads, 1, sizes.width)


def _factors(node: Node, new: Body, index: int, name: str, widths: tuple[int, int], sizes: _Sizes) -> ir.Value:
    """The factors of an input with one of these widths: `[B, T, 1 or H, 1 or D, 1]`."""
    width = node.size(index, name, 2)
    if width not in widths:
        node.refuse(
            "CC0210", f"LinearAttention's input {name} has the width {width}, neither {widths[0]} nor {widths[1]}"
        )
    heads = min(width, sizes.heads)
    factors = new.reshape(new.upcast(node.input(index)), sizes.batch, 0, heads, width // heads, 1)
    return new.op("Exp", factors) if name == "decay" else factors


def _step(*, decays: bool, corrects: bool) -> ir.Graph:
    """The body of the scan: the state and the operands of a position → the next state and the rows of the result."""
    names = ["state", "query", "key", "value", *["decay"] * decays, *["beta"] * corrects]
    given = {name: ir.Value(name=name, type=ir.TensorType(FLOAT)) for name in names}
    new = Body(None)
    state, key, update = given["state"], given["key"], given["value"]
    if decays:
        state = new.op("Mul", state, given["decay"])
    if corrects:
        update = new.op("Mul", given["beta"], new.op("Sub", update, new.op("MatMul", key, state)))
    state = new.op("Add", state, new.op("MatMul", new.transpose(key, 0, 1, 3, 2), update))
    rows = new.op("MatMul", given["query"], state)
    return new.graph([state, rows], list(given.values()), "step")
