"""Fuses operators between DequantizeLinear and QuantizeLinear into operators that compute on the 8-bit integers.

`QuantizeLinear(f(DequantizeLinear(x), …))` becomes one operator on 8-bit integers, called codes. Integer sums of
products are exact: products whose sums may exceed 32 bits stay in float. The operator rounds its result once.
Convolutions and means read images with the channels last; adjacent transposes around them cancel.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import constant_of, graph_of, nodes_of, sole_user
from compiler.rewrite.quantized.elementwise import average, look_up, moved, pair
from compiler.rewrite.quantized.params import Target, bounded, target_of
from compiler.rewrite.quantized.products import convolution, product, qlinear
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Evaluate, Rewriter, drop_dead, insert, replace_uses

__all__ = ["fuse_quantization"]

Fuse = Callable[[ir.Node, Target, Rewriter], ir.Value | str]
"""A function that computes the codes of a node's result, or returns the reason why it cannot."""

_FUSES: dict[str, Fuse] = {
    "Conv": convolution,
    "MatMul": product,
    "Gemm": product,
    "Add": pair,
    "Mul": pair,
    "GlobalAveragePool": average,
}
"""The rewrites of operators whose results are codes."""
_TO_FLOATS = {"Conv": convolution, "MatMul": product, "Gemm": product}
"""The rewrites of operators whose results are floats."""


def fuse_quantization(evaluate: Evaluate) -> Pass:
    """The pass, which computes tables with `evaluate`."""

    def fuse(model: ir.Model, report: PassReport) -> None:
        """Fuses operators before a QuantizeLinear, then products with float results."""
        _quantize_constants(model, evaluate)
        for node in list(nodes_of(model)):
            if node.op_identifier() == ("", "QuantizeLinear", "") and (target := target_of(node)) is not None:
                _fuse(target, evaluate, model, report)
            elif node.domain == "" and node.op_type in ("QLinearConv", "QLinearMatMul"):
                new = Rewriter(graph_of(node))
                _replace(node, [], qlinear(node, new), new, report)
        for node in list(nodes_of(model)):
            if node.domain == "" and node.op_type in _TO_FLOATS and node.graph is not None:
                new = Rewriter(node.graph)
                _replace(node, [], _TO_FLOATS[node.op_type](node, None, new), new, report)

    return Pass(
        "fuse_quantization", fuse, result="steps fused", requires=frozenset({"sorted", "shapes", "stored weights"})
    )


def _quantize_constants(model: ir.Model, evaluate: Evaluate) -> None:
    """Computes the codes of weights that the model stores as floats, as after quantization-aware training."""
    for node in list(nodes_of(model)):
        if node.op_identifier() != ("", "QuantizeLinear", "") or any(
            constant_of(value) is None for value in node.inputs
        ):
            continue
        new = Rewriter(graph_of(node))
        codes = new.constant(evaluate([node], node.outputs, model.opset_imports)[0], "codes")
        insert(graph_of(node), node, new)
        replace_uses(node.outputs[0], codes)
        graph_of(node).remove(node, safe=True)


def _fuse(target: Target, evaluate: Evaluate, model: ir.Model, report: PassReport) -> None:
    """Replaces a QuantizeLinear and the operator before it."""
    value, limited, nodes = bounded(target)
    node = None if value is None else value.producer()
    fuse = None if node is None or node.domain else _FUSES.get(node.op_type)
    new = Rewriter(graph_of(target.node))
    if node is None or value is None or fuse is None:
        opsets = model.opset_imports
        found = moved(target, new, evaluate, opsets) or look_up(target, new, evaluate, opsets)
        if found is not None:
            _replace(target.node, found[1], found[0], new, report)
    elif sole_user(value) is None:
        report.missed.append(Missed("fuse_quantization", origin.of(node), f"{value.name!r} is also needed as floats"))
    else:
        _replace(target.node, [node, *nodes], fuse(node, limited, new), new, report)


def _replace(old: ir.Node, nodes: list[ir.Node], result: ir.Value | str, new: Rewriter, report: PassReport) -> None:
    """Replaces the nodes `[*nodes, old]` with `result`; reports a miss if `result` is a reason."""
    if isinstance(result, str):
        report.missed.append(Missed("fuse_quantization", origin.of(nodes[0] if nodes else old), result))
        return
    graph, given = graph_of(old), [value for value in old.inputs if value is not None]
    origin.inherit(new.nodes, [*nodes, old])
    insert(graph, old, new)
    report.fired.append(Fired("FuseQuantization", origin.of(old)))
    replace_uses(old.outputs[0], result)
    graph.remove(old, safe=True)
    drop_dead(graph, given)
