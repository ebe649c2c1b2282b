"""Computes weights that the model stores as direction and magnitude: `W = g · v / ‖v‖`.

`torch.nn.utils.weight_norm` (the hook and the parametrization, for any `dim`) and `spectral_norm` export as a constant
subgraph that contains a norm and a division, with Reshape, Transpose, Identity and Concat in between. The pass computes
the subgraph in double precision and rounds once, so that the folded weight is at least as exact as PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError
from compiler.ir import origin
from compiler.ir.graph import constant_of, graphs_of
from compiler.passes.fold_constants import constant_nodes
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Evaluate

__all__ = ["fold_weight_norm"]

_NORMS = ("ReduceL2", "Sqrt", "MatMul")
"""The operators of exported norms: a norm, the root of a sum of squares, or the `uᵀWv` of spectral_norm."""
_NARROW = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def fold_weight_norm(evaluate: Evaluate) -> Pass:
    """The pass that folds with `evaluate`."""

    def fold(model: ir.Model, report: PassReport) -> None:
        """Computes normalized weights in double precision."""
        for graph in list(graphs_of(model.graph)):
            constants = dict.fromkeys(constant_nodes(graph, model.opset_imports))
            for root in list(constants):
                cone = _cone(root, constants)
                if not _is_normalized_weight(root, cone, constants):
                    continue
                weight = _in_double(cone, root.outputs[0], evaluate, model.opset_imports)
                if isinstance(weight, str):
                    report.missed.append(Missed("weight_norm", origin.of(root), weight))
                    continue
                report.fired.append(Fired("weight_norm", origin.of(root)))
                _replace(graph, root, weight)

    return Pass(
        "fold_weight_norm", fold, result="weights computed", requires=frozenset({"sorted", "shapes", "stored weights"})
    )


def _cone(root: ir.Node, constants: Mapping[ir.Node, None]) -> list[ir.Node]:
    """The root and the nodes that it depends on, in order."""
    found, waiting = {root}, [root]
    while waiting:
        for node in waiting.pop().predecessors():
            if node in constants and node not in found:
                found.add(node)
                waiting.append(node)
    return [node for node in constants if node in found]


def _is_normalized_weight(root: ir.Node, cone: Sequence[ir.Node], constants: Mapping[ir.Node, None]) -> bool:
    """Whether the root is the last constant Mul or Div before a layer, and depends on a division by a norm."""
    if root.op_type not in ("Mul", "Div") or root.domain or root.outputs[0].dtype not in _NARROW:
        return False
    users = {use.node for use in root.outputs[0].uses()}
    if all(user in constants for user in users) and not root.outputs[0].is_graph_output():
        return False
    divisions = [node for node in cone if node.op_type == "Div" and node.domain == ""]
    return any(above.op_type in _NORMS for node in divisions for above in _above(node.inputs[1], constants))


def _above(value: ir.Value | None, constants: Mapping[ir.Node, None]) -> Iterator[ir.Node]:
    node = None if value is None else value.producer()
    if node is not None and node in constants:
        yield from _cone(node, constants)


def _in_double(
    cone: Sequence[ir.Node], result: ir.Value, evaluate: Evaluate, opsets: Mapping[str, int]
) -> np.ndarray | str:
    """The value of `result`, computed with all constants in double precision; or the reason why that fails."""
    twins: dict[ir.Value, ir.Value] = {}
    copies = [_copy_in_double(node, twins) for node in cone]
    try:
        (array,) = evaluate(copies, [twins[result]], opsets)
    except CompileError as error:
        return error.diagnostics[0].message
    if result.dtype is None or array.dtype != np.float64:
        return f"an operator always returns {array.dtype}"
    return array.astype(result.dtype.numpy())


def _copy_in_double(node: ir.Node, twins: dict[ir.Value, ir.Value]) -> ir.Node:
    inputs = [None if value is None else _in_double_constant(value, twins) for value in node.inputs]
    attributes = [_widened_target(attribute) for attribute in node.attributes.values()]
    if node.op_identifier() == ("", "Constant", ""):
        array = constant_of(node.outputs[0])
        attributes = attributes if array is None else [ir.AttrTensor("value", ir.tensor(_widened(array)))]
    copy = ir.Node("", node.op_type, inputs, attributes, num_outputs=len(node.outputs), version=node.version)
    copy.metadata_props.update(node.metadata_props)
    twins.update(zip(node.outputs, copy.outputs, strict=True))
    return copy


def _in_double_constant(value: ir.Value, twins: dict[ir.Value, ir.Value]) -> ir.Value:
    if value not in twins:
        array = constant_of(value)
        tensor = None if array is None else ir.tensor(_widened(array))
        twins[value] = ir.Value(name=value.name, const_value=tensor)
    return twins[value]


def _widened_target(attribute: ir.Attr) -> ir.Attr:
    """The target of a Cast in double precision, because a narrower type would round."""
    is_narrow = attribute.name == "to" and attribute.value in list(map(int, _NARROW))
    return ir.AttrInt64("to", ir.DataType.DOUBLE) if is_narrow else attribute


def _widened(array: np.ndarray) -> np.ndarray:
    is_narrow = array.dtype in [dtype.numpy() for dtype in _NARROW]
    return array.astype(np.float64) if is_narrow else array


def _replace(graph: ir.Graph, root: ir.Node, weight: np.ndarray) -> None:
    """Replaces the root with an initializer. `drop_dead_nodes` drops the nodes before it."""
    old = root.outputs[0]
    name, old.name = old.name, None
    tensor = ir.Tensor(weight, dtype=old.dtype)
    new = ir.Value(name=name, type=old.type, shape=ir.Shape(weight.shape), const_value=tensor)
    graph.register_initializer(new)
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(root, safe=True)
