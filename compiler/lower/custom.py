"""Custom operators: steps that the program computes with its own functions."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from compiler.attributes import Attributes
from compiler.custom import CustomOp, registered
from compiler.ir.dtypes import NAMES
from compiler.ir.symbols import shown
from compiler.lower.node import Node
from compiler.plan import PlanBuilder, TensorInfo, Value, ops
from compiler.plan.encode import plain
from compiler.plan.types import described, tensor, tensor_type, type_of

__all__ = ["custom_types", "lower_custom"]

_KINDS: dict[ir.AttributeType, Any] = {
    ir.AttributeType.INT: ops.Attribute.Int,
    ir.AttributeType.FLOAT: ops.Attribute.Float,
    ir.AttributeType.STRING: ops.Attribute.String,
    ir.AttributeType.INTS: ops.Attribute.Ints,
    ir.AttributeType.FLOATS: ops.Attribute.Floats,
    ir.AttributeType.STRINGS: ops.Attribute.Strings,
}
"""The kinds of attributes in a plan. A tensor is an input of the step instead."""


def lower_custom(node: Node, build: PlanBuilder, op: CustomOp) -> tuple[Value, ...]:
    """A step of an operator that the program has registered."""
    inputs = _given(node.inputs)
    types = _types(op, node, [None if value is None else (value.name, value.type) for value in inputs], node.outputs)
    values = node.values()
    tensors = {name: value for name, (kind, value) in values.items() if kind not in _KINDS}
    attributes = {name: _KINDS[kind](value) for name, (kind, value) in values.items() if kind in _KINDS}
    step = ops.Custom(
        attributes=attributes, domain=node.domain, name=node.op_type, tensors=list(tensors), types=list(types)
    )
    return build(step, *inputs, *(build.constant(array) for array in tensors.values()), outputs=len(types))


def custom_types(node: ir.Node) -> Sequence[ops.Type.Tensor]:
    """The types of the outputs of a custom operator; empty if it is none, or if the type of an input is unknown.

    Raises:
        CompileError: the operator's rule fails or returns no types, or there is an attribute that a plan cannot hold.
    """
    op = registered(node.domain, node.op_type)
    if op is None:
        return []
    inputs: list[tuple[str, ops.AnyType] | None] = []
    for value in _given(node.inputs):
        try:
            kind = None if value is None else type_of(value)
        except TypeError:
            return []
        if value is not None and kind is None:
            return []
        inputs.append(None if value is None or kind is None else (value.name or "", kind))
    return _types(op, Attributes(node, 1), inputs, len(node.outputs))


def _given(inputs: Sequence[Any]) -> list[Any]:
    """The inputs without absent ones at the end, which a plan omits."""
    given = list(inputs)
    while given and given[-1] is None:
        given.pop()
    return given


def _types(
    op: CustomOp, node: Attributes, inputs: Sequence[tuple[str, ops.AnyType] | None], outputs: int
) -> list[ops.Type.Tensor]:
    """The types that the operator's rule returns for inputs with these names and types."""
    attributes = {name: value for name, (_, value) in node.values().items()}
    infos = [None if each is None else TensorInfo.from_json(each[0], plain(each[1])) for each in inputs]
    kinds = [tensor_type(each[1]) for each in inputs if each is not None]
    dims = [dim for kind in kinds if kind is not None for dim in kind.shape or ()]
    symbols = {shown(dim): dim for dim in dims if isinstance(dim, str)}
    given = ", ".join("nothing" if each is None else described(each[1]) for each in inputs)
    try:
        found = op.types(*infos, **attributes)
    except Exception as error:
        node.refuse("CC0209", f"the rule for the types of {op.name}({given}) raised {type(error).__name__}: {error}")
    try:
        types = [_type(each, symbols) for each in (found if isinstance(found, list) else [found])]
    except (TypeError, ValueError) as error:
        node.refuse("CC0209", f"the rule for the types of {op.name}({given}) returned {found!r}: {error}")
    if len(types) < outputs:
        node.refuse("CC0209", f"{op.name} has {len(types)} outputs by the rule for its types, and the node {outputs}")
    return types


def _type(output: Any, symbols: Mapping[str, str]) -> ops.Type.Tensor:
    """A type of a rule. `symbols` are those of the inputs.

    Raises:
        TypeError, ValueError: it is no type of a tensor.
    """
    if isinstance(output, TensorInfo):
        if output.kind != "tensor":
            raise ValueError("an output is a tensor")
        output = (output.dtype, output.shape)
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError('expected a pair of a dtype and a shape, as ("float32", (2, None)), or a list of pairs')
    dtype, shape = output
    if not isinstance(dtype, str) or dtype not in NAMES | {"string"}:
        raise ValueError(f"expected the name of a dtype, such as float32, found {dtype!r}")
    return tensor(dtype, None if shape is None else [_size(dim, symbols) for dim in shape])


def _size(dim: Any, symbols: Mapping[str, str]) -> int | str | None:
    if dim is None:
        return None
    if isinstance(dim, str):
        if dim not in symbols:
            raise ValueError(f"no input has the symbol {dim!r}: use None for a size that is unknown before a run")
        return symbols[dim]
    size = operator.index(dim)
    if isinstance(dim, bool) or size < 0:
        raise ValueError(f"{dim!r} is no size")
    return size
