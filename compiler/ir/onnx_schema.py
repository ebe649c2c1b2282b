"""The ONNX standard's facts about operators, from `onnx.defs`.

Three facts are listed here, because only the standard's prose states them: `ELEMENTWISE`, `MOVES` and `is_commutative`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import infer_node_outputs

__all__ = [
    "ELEMENTWISE",
    "MOVES",
    "NEWEST",
    "OLDEST",
    "Input",
    "attributes_of",
    "contradiction",
    "default_of",
    "defaults",
    "function_body",
    "function_operators",
    "inputs_of",
    "is_commutative",
    "is_deterministic",
    "newest_version",
    "required_inputs",
    "schema",
    "since_version",
]

OLDEST = 1
"""The oldest supported opset of the standard domain."""
NEWEST: int = onnx.defs.onnx_opset_version()
"""The newest opset of the standard domain that the onnx package knows."""

_COMMUTATIVE = frozenset(["Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean"])
_COMMUTATIVE |= {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}

_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu
    Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN
    LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""
ELEMENTWISE = tuple(_ELEMENTWISE.split())
"""Elementwise operators with one result, whose inputs broadcast as in NumPy. Source: the standard's prose."""

_MOVES = """
    Concat DepthToSpace Expand Flatten Gather GatherElements GatherND MaxPool Reshape Slice SpaceToDepth Squeeze Tile
    Transpose Unsqueeze
"""
MOVES = tuple(_MOVES.split())
"""Operators that only move elements of the first input, or, for Concat, of all inputs."""


@functools.cache
def schema(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """The operator as an opset defines it; `None` if the opset has no such operator."""
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


def since_version(domain: str, op_type: str, opset: int) -> int | None:
    """The operator's version at `opset`; `None` if the opset has no such operator."""
    found = schema(domain, op_type, opset)
    return None if found is None else found.since_version


@functools.cache
def newest_version(domain: str, op_type: str) -> int | None:
    """The newest version of an operator; `None` for an unknown operator."""
    try:
        return onnx.defs.get_schema(op_type, domain).since_version
    except onnx.defs.SchemaError:
        return None


@functools.cache
def attributes_of(domain: str, op_type: str) -> frozenset[str]:
    """The names of the attributes that the newest version of an operator has; none for an unknown operator."""
    newest = newest_version(domain, op_type)
    found = None if newest is None else schema(domain, op_type, newest)
    return frozenset() if found is None else frozenset(found.attributes)


@functools.cache
def required_inputs(domain: str, op_type: str, opset: int) -> tuple[tuple[int, str], ...]:
    """The index and name of each required input of an operator; none for an unknown operator.

    An input that a later version made optional is not required, because exporters already omit it (`roi` of Resize-11).
    """
    found = schema(domain, op_type, opset)
    if found is None:
        return ()
    latest = onnx.defs.get_schema(found.name, found.domain).inputs
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    pairs = zip(found.inputs, (*latest, *[None] * len(found.inputs)), strict=False)
    return tuple(
        (index, each.name)
        for index, (each, now) in enumerate(pairs)
        if each.option == single and (now is None or now.option == single)
    )


@dataclass(frozen=True)
class Input:
    """An input of an operator: its name and its allowed types, such as `float32` or `sequence of int64`.

    Inputs with the same type variable `variable` have the same type. It is empty for an input without a variable.
    """

    name: str
    types: frozenset[str]
    variable: str


@functools.cache
def inputs_of(domain: str, op_type: str, opset: int, count: int) -> list[Input]:
    """The first `count` inputs of an operator; an empty list for an unknown operator."""
    found = schema(domain, op_type, opset)
    described = [] if found is None else list(found.inputs)
    if described and described[-1].option == OpSchema.FormalParameterOption.Variadic:
        described += [described[-1]] * (count - len(described))
    return [
        Input(each.name, frozenset(map(_type_text, each.types)), each.type_str if each.is_homogeneous else "")
        for each in described[:count]
    ]


def _type_text(text: str) -> str:
    """`seq(tensor(float))` → `sequence of float32`."""
    words = text.replace("seq(", "sequence of ").replace("optional(", "optional ").replace("tensor(", "").rstrip(")")
    return re.sub(r"\b(float|double)$", lambda found: {"float": "float32", "double": "float64"}[found[0]], words)


def contradiction(node: onnx.NodeProto, opset: int, input_types: Sequence[onnx.TypeProto | None]) -> str | None:
    """The error of the standard's shape inference for the inputs and attributes of a node; `None` without an error."""
    found = schema(node.domain, node.op_type, opset)
    if found is None:
        return None
    pairs = zip(node.input, input_types, strict=False)
    types = {name: kind for name, kind in pairs if name and kind is not None}
    try:
        infer_node_outputs(found, node, types, opset_imports=[helper.make_opsetid(node.domain, opset)])
    except onnx.shape_inference.InferenceError as error:
        return str(error).rpartition("] ")[2]
    except (ValidationError, KeyError, RuntimeError, TypeError, ValueError):  # types are wrong, or too little is known
        return None
    return None


@functools.lru_cache(maxsize=1 << 12)
def is_deterministic(domain: str, op_type: str, opset: int) -> bool:
    """Whether the same inputs always give the same outputs; true for operators that the standard does not define.

    A Dropout may be in training mode, but the schemas call it deterministic.
    """
    if (domain, op_type) == ("", "Dropout"):
        return False
    found = schema(domain, op_type, opset)
    return found is None or not found.non_deterministic  # type: ignore[attr-defined]


def is_commutative(domain: str, op_type: str) -> bool:
    """Whether the operator is commutative. Source: the standard's formulas."""
    return domain == "" and op_type in _COMMUTATIVE


def default_of(domain: str, op_type: str, opset: int, attribute: str) -> object:
    """The default value of an attribute; `None` if it has none."""
    found = schema(domain, op_type, opset)
    if found is None or attribute not in found.attributes:
        return None
    default = found.attributes[attribute].default_value
    return onnx.helper.get_attribute_value(default) if default.name else None


def defaults(domain: str, op_type: str, opset: int) -> list[onnx.AttributeProto]:
    """The attributes of an operator with default values."""
    found = schema(domain, op_type, opset)
    attributes = [] if found is None else found.attributes.values()
    return [_named(attribute) for attribute in attributes if attribute.default_value.name]


def _named(attribute: OpSchema.Attribute) -> onnx.AttributeProto:
    default = onnx.AttributeProto()
    default.CopyFrom(attribute.default_value)
    default.name = attribute.name
    return default


def function_operators() -> Iterator[tuple[str, str, int]]:
    """The domain, name and newest version of every operator with a function body in the standard."""
    schemas: Sequence[Any] = onnx.defs.get_all_schemas()
    for each in schemas:
        if (each.has_function or each.has_context_dependent_function) and not each.deprecated:
            yield each.domain, each.name, each.since_version


def function_body(
    node: onnx.NodeProto, opset: int, input_types: Sequence[onnx.TypeProto | None]
) -> onnx.FunctionProto | None:
    """A copy of the standard's function body of the node's operator at `opset`; `None` without one.

    Some bodies depend on the attributes and the types of the inputs. Without types, these operators have no body.
    """
    found: Any = schema(node.domain, node.op_type, opset)
    if found is None:
        return None
    if found.has_function:
        data = _newest(found.get_function_with_opset_version, found.function_opset_versions, opset)
    elif found.has_context_dependent_function and input_types:
        types = [b"" if kind is None else kind.SerializeToString() for kind in input_types]
        versions = found.context_dependent_function_opset_versions

        def build(version: int) -> bytes:
            body: bytes = found.get_context_dependent_function_with_opset_version(
                version, node.SerializeToString(), types
            )
            return body

        data = _newest(build, versions, opset)
    else:
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _newest(build: Callable[[int], bytes], versions: Sequence[int], opset: int) -> bytes:
    usable = [version for version in versions if version <= opset] or list(versions[:1])
    return build(max(usable)) if usable else b""
