"""Converts operators of opset 1 whose attributes or inputs changed before opset 7 to the form of opset 7.

Source: the first version of each operator on https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import constant_of, nodes_of, opset_of
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert

__all__ = ["raise_first_versions"]

_MODERN = 7
"""An opset with a later version of each of these operators."""


def _raise_first_versions(model: ir.Model, report: PassReport) -> None:
    """Converts first versions of operators to the form of opset 7."""
    opset = model.opset_imports.get("", _MODERN)
    for node in list(nodes_of(model)):
        if node.op_type not in _FORMS or node.domain != "":
            continue
        if onnx_schema.since_version("", node.op_type, opset_of(node, opset)) != 1:
            continue
        problem = _FORMS[node.op_type](node)
        if problem is not None:
            help = "export with opset 7 or newer"
            report.refused.append(Diagnostic("CC0202", f"{node.op_type}-1: {problem}", origin.of(node), help))
        node.version = _MODERN
        report.fired.append(Fired("raise", origin.of(node)))


def _cast(node: ir.Node) -> str | None:
    """Version 1 names the type in a string."""
    name = node.attributes["to"].as_string().upper()
    if name not in ir.DataType.__members__:
        return f"the type {name} does not exist"
    node.attributes["to"] = ir.AttrInt64("to", ir.DataType[name])
    return None


def _concat(node: ir.Node) -> None:
    """Version 1 has the default axis 1."""
    node.attributes.setdefault("axis", ir.AttrInt64("axis", 1))


def _lp_pool(node: ir.Node) -> str | None:
    """Version 1 has a float exponent."""
    exponent = node.attributes["p"].as_float() if "p" in node.attributes else 2.0
    if not exponent.is_integer():
        return f"the exponent {exponent} is not an integer"
    node.attributes["p"] = ir.AttrInt64("p", int(exponent))
    return None


def _pad(node: ir.Node) -> None:
    """Version 1 calls the pads `paddings`."""
    node.attributes["pads"] = ir.AttrInt64s("pads", node.attributes.pop("paddings").as_ints())


def _reshape(node: ir.Node) -> str | None:
    """Version 1 has the shape as an attribute."""
    node.attributes.pop("consumed_inputs", None)
    shape = node.attributes.pop("shape", None)
    if shape is None or node.graph is None:
        return "the attribute shape is missing"
    new = Rewriter(node.graph)
    target = new.constant(np.array(shape.as_ints(), np.int64), "shape")
    insert(node.graph, node, new)
    node.resize_inputs(2)
    node.replace_input_with(1, target)
    return None


def _split(node: ir.Node) -> str | None:
    """Version 1 may have the sizes as an input, of the type of the data."""
    if len(node.inputs) == 2 and node.inputs[1] is not None:
        sizes = constant_of(node.inputs[1])
        if sizes is None:
            return "the sizes of the parts are not constant"
        node.attributes["split"] = ir.AttrInt64s("split", sizes.astype(np.int64).tolist())
    node.resize_inputs(1)
    return None


def _tile(node: ir.Node) -> str | None:
    """Version 1 repeats along one axis; the axis and the count are inputs of the type of the data."""
    return "copies along one axis are not supported"


def _upsample(node: ir.Node) -> None:
    """Version 1 has one attribute for each of the two scales of an image."""
    height, width = (node.attributes.pop(f"{name}_scale").as_float() for name in ("height", "width"))
    node.attributes["scales"] = ir.AttrFloat32s("scales", [1.0, 1.0, height, width])


_FORMS: dict[str, Callable[[ir.Node], str | None]] = {
    "Cast": _cast,
    "Concat": _concat,
    "GlobalLpPool": _lp_pool,
    "LpPool": _lp_pool,
    "Pad": _pad,
    "Reshape": _reshape,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _upsample,
}

raise_first_versions = Pass(
    "raise_first_versions",
    _raise_first_versions,
    result="nodes upgraded",
    requires=frozenset({"sorted"}),
    needed=True,
)
