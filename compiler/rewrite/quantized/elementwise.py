"""Sums, products, means, functions and data movement on 8-bit codes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError
from compiler.ir import onnx_schema
from compiler.ir.graph import PLAN_DOMAIN, constant_of, sole_user
from compiler.rewrite.permutation import typed
from compiler.rewrite.quantized.params import QuantParams, Target, are_normal, quant_params_of, single_scale_params_of
from compiler.rewrite.quantized.products import channels_first, channels_last
from compiler.rewrite.rule import Evaluate, Rewriter

__all__ = ["average", "is_function", "look_up", "moved", "pair"]

Replacement = tuple[ir.Value, list[ir.Node]]
_PIXELS = (2**31 - 1) // 255
"""The largest number of codes whose sum is sure to fit 32 bits."""


def pair(node: ir.Node, target: Target, new: Rewriter) -> ir.Value | str:
    """`Add` and `Mul` of codes."""
    operands = [single_scale_params_of(value) for value in node.inputs]
    if None in operands:
        return "an operand is not dequantized from 8 bits"
    found = [codes for codes in operands if codes is not None]
    parameters = [array for codes in found for array in (codes.scale, codes.zero)]
    constants = [new.constant(array) for array in (*parameters, target.scale, target.zero)]
    result = new.op(
        "QLinearBinary",
        *(codes.value for codes in found),
        *constants,
        domain=PLAN_DOMAIN,
        version=1,
        function=node.op_type,
        low=target.low,
        high=target.high,
    )
    return typed(result, target.node.outputs[0].type, node.outputs[0].shape)


def average(node: ir.Node, target: Target, new: Rewriter) -> ir.Value | str:
    """`GlobalAveragePool` of codes."""
    x = single_scale_params_of(node.inputs[0])
    if x is None or x.value.shape is None or x.value.shape.rank() < 3:
        return "the input is not dequantized from 8 bits, or its rank is not known"
    limits = np.iinfo(target.zero.dtype)
    if (target.low, target.high) != (limits.min, limits.max):
        return "a Clip or Relu limits the result"
    with np.errstate(all="ignore"):
        scale = target.scale / x.scale
    if not are_normal(scale):
        return "the product of the scales exceeds float32"
    if math.prod(dim for dim in x.value.shape[2:] if isinstance(dim, int)) > _PIXELS:
        return "the sums may not fit 32 bits"
    constants = [new.constant(array) for array in (np.asarray(scale), x.zero, target.zero)]
    images = channels_last(x.value, new)
    result = new.op("QLinearGlobalAveragePool", images, *constants, domain=PLAN_DOMAIN, version=1)
    return channels_first(result, x.value, target.node.outputs[0].type, node.outputs[0].shape, new)


def moved(target: Target, new: Rewriter, evaluate: Evaluate, opsets: Mapping[str, int]) -> Replacement | None:
    """An operator that only moves or selects elements, on codes. Concat first converts inputs to the result's codes."""
    value = target.node.inputs[0]
    node = None if value is None else value.producer()
    if node is None or value is None or node.domain or len(node.outputs) != 1 or sole_user(value) is None:
        return None
    if node.op_type not in onnx_schema.MOVES:
        return None
    count = len(node.inputs) if node.op_type == "Concat" else 1
    codes = [each for each in map(single_scale_params_of, node.inputs[:count]) if each is not None]
    if len(codes) < count or (count == 1 and not target.same_as(codes[0])):
        return None
    tables = [
        None if target.same_as(each) else _table([each.node, target.node], each, evaluate, opsets) for each in codes
    ]
    if any(table is None and not target.same_as(each) for each, table in zip(codes, tables, strict=True)):
        return None
    kind = target.node.outputs[0].type
    given = [
        each.value if table is None else _looked_up(each, table, kind, new)
        for each, table in zip(codes, tables, strict=True)
    ]
    result = new.like(node, *given, *node.inputs[count:])
    return typed(result, kind, node.outputs[0].shape), [node]


def _looked_up(codes: QuantParams, table: np.ndarray, kind: ir.TypeProtocol | None, new: Rewriter) -> ir.Value:
    result = new.op("LookUp", codes.value, new.constant(table, "table"), domain=PLAN_DOMAIN, version=1)
    return typed(result, kind, codes.value.shape)


def look_up(target: Target, new: Rewriter, evaluate: Evaluate, opsets: Mapping[str, int]) -> Replacement | None:
    """A chain of elementwise functions of one quantized input, as a table with the result of each code."""
    value, chain = target.node.inputs[0], list[ir.Node]()
    while value is not None and (codes := quant_params_of(value)) is None:
        node = value.producer()
        if node is None or not is_function(node) or sole_user(value) is None:
            return None
        chain.append(node)
        value = node.inputs[0]
    codes = single_scale_params_of(value)
    if codes is None:
        return None
    if not chain and target.same_as(codes):
        return codes.value, []
    table = _table([codes.node, *reversed(chain), target.node], codes, evaluate, opsets)
    if table is None:
        return None
    return _looked_up(codes, table, target.node.outputs[0].type, new), chain


def is_function(node: ir.Node) -> bool:
    """Whether the node is an elementwise function of its first input, and its other inputs are single constants."""
    if node.domain or node.op_type not in onnx_schema.ELEMENTWISE or node.inputs[0] is None:
        return False
    others = [constant_of(value) for value in node.inputs[1:] if value is not None]
    return all(array is not None and array.size == 1 and array.ndim <= 1 for array in others)


def _table(
    nodes: list[ir.Node], codes: QuantParams, evaluate: Evaluate, opsets: Mapping[str, int]
) -> np.ndarray | None:
    """The result of the nodes for each code, by its bits; `None` if they fail."""
    every = ir.tensor(np.arange(256, dtype=np.uint8).view(codes.zero.dtype))
    value = ir.Value(name="codes", type=ir.TensorType(every.dtype), shape=ir.Shape([256]), const_value=every)
    copies = []
    for node in nodes:
        attributes = tuple(node.attributes.values())
        copy = ir.Node("", node.op_type, [value, *node.inputs[1:]], attributes, num_outputs=1, version=node.version)
        value = typed(copy.outputs[0], node.outputs[0].type, ir.Shape([256]))
        copies.append(copy)
    try:
        return evaluate(copies, [value], opsets)[0]
    except CompileError:
        return None
    finally:
        for copy in copies:
            for index in range(len(copy.inputs)):
                copy.replace_input_with(index, None)
