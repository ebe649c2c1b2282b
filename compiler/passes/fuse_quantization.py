"""Operators between DequantizeLinear and QuantizeLinear, computed on the 8-bit codes themselves.

`QuantizeLinear(f(DequantizeLinear(x), …))` becomes one operator on codes. Sums of products are exact; the result is
rounded, once. Convolutions and means take images with their channels last; the transposes around them meet and cancel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from compiler import origin
from compiler.graph import nodes_of, sole_user
from compiler.passes.codes import Target, bounded, target_of
from compiler.passes.fold_constants import Evaluate
from compiler.passes.quantized_elementwise import average, look_up, moved, pair
from compiler.passes.quantized_products import convolution, product
from compiler.passes.report import Fired, Missed, Pass, Report
from compiler.passes.rule import Rewriter, hand_over, insert

__all__ = ["fuse_quantization"]

Fuse = Callable[[ir.Node, Target, Rewriter], ir.Value | str]
"""Makes the codes of a node's result; or says why it cannot."""

_FUSES: dict[str, Fuse] = {
    "Conv": convolution,
    "MatMul": product,
    "Gemm": product,
    "Add": pair,
    "Mul": pair,
    "GlobalAveragePool": average,
}
"""Operators whose results' codes are computed from the operands' codes, and how."""


def fuse_quantization(evaluate: Evaluate) -> Pass:
    """The pass, which computes tables with `evaluate`."""

    def fuse(model: ir.Model, report: Report) -> None:
        """Fuses what ends in each QuantizeLinear."""
        for node in list(nodes_of(model)):
            if node.op_identifier() == ("", "QuantizeLinear", "") and (target := target_of(node)) is not None:
                _fuse(target, evaluate, model, report)

    return Pass("fuse_quantization", fuse, requires=frozenset({"sorted", "shapes"}))


def _fuse(target: Target, evaluate: Evaluate, model: ir.Model, report: Report) -> None:
    """Replaces a QuantizeLinear and what it quantises."""
    graph = target.node.graph
    if graph is None:
        return
    value, limited, nodes = bounded(target)
    node = None if value is None else value.producer()
    fuse = None if node is None or node.domain else _FUSES.get(node.op_type)
    new = Rewriter(graph)
    result: ir.Value | str | None
    if node is not None and fuse is not None:
        alone = value is not None and sole_user(value) is not None
        result = fuse(node, limited, new) if alone else "its result is needed as it is too"
        nodes = [node, *nodes]
        if isinstance(result, str):
            report.missed.append(Missed("fuse_quantization", origin.of(node), result))
            return
    else:
        found = moved(target, new) or look_up(target, new, evaluate, model.opset_imports)
        if found is None:
            return
        result, nodes = found
    old = target.node
    origin.inherit(new.nodes, [*nodes, old])
    insert(graph, old, new)
    report.fired.append(Fired("FuseQuantization", origin.of(old)))
    hand_over(old.outputs[0], result)
    graph.remove(old, safe=True)
    _drop(nodes)


def _drop(nodes: list[ir.Node]) -> None:
    """Drops those of the nodes that nobody reads any more, the last first."""
    for node in sorted(nodes, key=lambda node: -_position(node)):
        if node.graph is not None and not any(value.uses() or value.is_graph_output() for value in node.outputs):
            node.graph.remove(node, safe=True)


def _position(node: ir.Node) -> float:
    """How far behind in its graph the node is."""
    return np.inf if node.graph is None else next(i for i, each in enumerate(node.graph) if each is node)
