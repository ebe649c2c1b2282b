"""The interface of lowerings to an ONNX node, and the table of lowerings.

A lowering reads the attributes that it handles. An unread attribute is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import ml_dtypes
import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import dtypes, onnx_schema, origin
from compiler.ir.graph import array_of
from compiler.plan import PlanBuilder, Value

__all__ = ["LOWERINGS", "REMARKS", "Lowering", "Node", "lowers", "remark"]

Result = Value | tuple[Value, ...]
Function = Callable[["Node", PlanBuilder], Result]
T = TypeVar("T")
# The class below has methods named `int` and `float`.
Int: TypeAlias = int
Float: TypeAlias = float
Ints: TypeAlias = list[int]
Floats: TypeAlias = list[float]
_Kind = ir.AttributeType
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Lowering:
    """The function that lowers nodes of an operator, and the newest version that it supports."""

    function: Function
    newest: int


LOWERINGS: dict[tuple[str, str], Lowering] = {}
"""(domain, operator) → its lowering."""


def lowers(op_type: str, *, newest: int, domain: str = "") -> Callable[[Function], Function]:
    """Registers a lowering of an operator's versions up to `newest`, the newest version that it supports."""

    def register(function: Function) -> Function:
        if (domain, op_type) in LOWERINGS:
            raise ValueError(f"{op_type} of domain {domain!r} has two lowerings")
        LOWERINGS[domain, op_type] = Lowering(function, newest)
        return function

    return register


REMARKS: dict[str, str] = {}
"""Operator → a remark on results that the standard does not define, or that differ from onnxruntime's."""


def remark(op_type: str, text: str) -> None:
    """Registers a remark on an operator for `docs/operators.md`."""
    REMARKS[op_type] = text


class Node:
    """An ONNX node with its inputs as plan values."""

    def __init__(self, node: ir.Node, inputs: tuple[Value | None, ...], version: int) -> None:
        self.op_type, self.domain, self.name = node.op_type, node.domain, node.name or ""
        self.version = version
        self.inputs = inputs
        self.outputs = len(node.outputs)
        self._node = node
        self._unread = set(node.attributes)

    def input(self, index: Int) -> Value:
        """Input `index`; refuses the node if the input is absent."""
        value = self.optional(index)
        if value is None:
            self.refuse("CC0205", f"input {index} of {self.op_type} is missing")
        return value

    def optional(self, index: Int) -> Value | None:
        """Input `index`; `None` if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def has_input(self, index: Int) -> bool:
        """Whether input `index` is present."""
        return self.optional(index) is not None

    def constant(self, index: Int) -> np.ndarray | None:
        """The elements of input `index`; `None` if it is not a constant."""
        value = self.optional(index)
        return None if value is None else value.constant

    def is_since(self, version: Int, attribute: str) -> bool:
        """Whether the node has this `version` or a newer one, where `attribute` is an input and must not be read."""
        return self.version >= version

    def uses_output(self, index: Int) -> bool:
        """Whether output `index` has a reader."""
        if index >= self.outputs:
            return False
        value = self._node.outputs[index]
        return bool(value.uses()) or value.is_graph_output()

    def output_name(self, index: Int = 0) -> str:
        """The name of output `index`, which no other value of its graph has."""
        return self._node.outputs[index].name or ""

    def output_rank(self, index: Int = 0) -> int | None:
        """The rank of output `index` in the graph; `None` if unknown."""
        shape = self._node.outputs[index].shape
        return None if shape is None else shape.rank()

    def output_dtype(self, index: Int = 0) -> str | None:
        """The dtype of output `index` in the graph; `None` if unknown."""
        dtype = self._node.outputs[index].dtype
        return None if dtype is None else dtypes.from_ir(dtype)

    @overload
    def int(self, name: str) -> Int: ...
    @overload
    def int(self, name: str, default: T) -> Int | T: ...
    def int(self, name: str, default: Any = _REQUIRED) -> Any:
        """An integer attribute."""
        return self._attribute(name, _Kind.INT, default)

    def flag(self, name: str, default: bool) -> bool:
        """An integer attribute that is 0 or 1."""
        value = self.int(name, int(default))
        if value not in (0, 1):
            self.refuse("CC0202", f"{self.op_type}'s attribute {name} is 0 or 1, not {value}")
        return bool(value)

    @overload
    def ints(self, name: str) -> Ints: ...
    @overload
    def ints(self, name: str, default: T) -> Ints | T: ...
    def ints(self, name: str, default: Any = _REQUIRED) -> Any:
        """A list of integers."""
        return self._attribute(name, _Kind.INTS, default, list)

    @overload
    def float(self, name: str) -> Float: ...
    @overload
    def float(self, name: str, default: T) -> Float | T: ...
    def float(self, name: str, default: Any = _REQUIRED) -> Any:
        """A floating-point attribute."""
        return self._attribute(name, _Kind.FLOAT, default)

    @overload
    def floats(self, name: str) -> Floats: ...
    @overload
    def floats(self, name: str, default: T) -> Floats | T: ...
    def floats(self, name: str, default: Any = _REQUIRED) -> Any:
        """A list of floating-point numbers."""
        return self._attribute(name, _Kind.FLOATS, default, list)

    @overload
    def string(self, name: str) -> str: ...
    @overload
    def string(self, name: str, default: T) -> str | T: ...
    def string(self, name: str, default: Any = _REQUIRED) -> Any:
        """A string attribute."""
        return self._attribute(name, _Kind.STRING, default)

    @overload
    def strings(self, name: str) -> list[str]: ...
    @overload
    def strings(self, name: str, default: T) -> list[str] | T: ...
    def strings(self, name: str, default: Any = _REQUIRED) -> Any:
        """A list of strings."""
        return self._attribute(name, _Kind.STRINGS, default, list)

    @overload
    def tensor(self, name: str) -> np.ndarray: ...
    @overload
    def tensor(self, name: str, default: T) -> np.ndarray | T: ...
    def tensor(self, name: str, default: Any = _REQUIRED) -> Any:
        """The elements of a tensor attribute."""
        return self._attribute(name, _Kind.TENSOR, default, array_of)

    def graph(self, name: str) -> ir.Graph:
        """A nested graph."""
        graph: ir.Graph = self._attribute(name, _Kind.GRAPH, _REQUIRED)
        return graph

    @overload
    def dtype_attr(self, name: str) -> str: ...
    @overload
    def dtype_attr(self, name: str, default: T) -> str | T: ...
    def dtype_attr(self, name: str, default: Any = _REQUIRED) -> Any:
        """An attribute with an element type, as a logical dtype."""
        return self._attribute(name, _Kind.INT, default, self._dtype)

    def precision(self, name: str, value: Value, default: str | None = None) -> str | None:
        """An attribute with the type to compute in.

        The runtime computes in the type of `value`, and at least in float32. With a wider type, the result would differ
        only by rounding. Refuses a type narrower than that of `value`, unless it is the default.
        """
        asked = self.dtype_attr(name, default)
        if asked is None or asked == default:
            return asked
        if _mantissa_bits(asked) < _mantissa_bits(value.dtype):
            self.refuse("CC0202", f"{self.op_type} of {value.dtype} cannot compute in {asked}, which {name} requires")
        return asked

    def type_attr(self, name: str) -> ir.TypeAndShape | None:
        """An attribute with a type and a shape; `None` if it is absent."""
        kind: ir.TypeAndShape | None = self._attribute(name, _Kind.TYPE_PROTO, None)
        return kind

    def refuse(self, code: str, message: str, *, help: str = "") -> NoReturn:
        """Refuses the node.

        Raises:
            CompileError: always, with a diagnostic that names the node.
        """
        raise CompileError([Diagnostic(code, message, origin.of(self._node), help)])

    def check_all_read(self) -> None:
        """Refuses the node if an attribute was not read, unless it has its default value."""
        left = {name for name in self._unread if not self._is_default(name)}
        if left:
            names = ", ".join(sorted(left))
            self.refuse("CC0203", f"{self.op_type}-{self.version} does not support the attribute {names}")

    def _attribute(self, name: str, kind: _Kind, default: Any, convert: Callable[[Any], Any] | None = None) -> Any:
        self._unread.discard(name)
        attribute = self._node.attributes.get(name)
        if attribute is None:
            if default is _REQUIRED:
                self.refuse("CC0202", f"{self.op_type} needs the attribute {name}")
            return default
        if attribute.type != kind and not (
            kind == _Kind.FLOATS and attribute.type == _Kind.INTS and not attribute.value
        ):
            self.refuse("CC0202", f"{self.op_type}'s attribute {name} is {attribute.type.name}, not {kind.name}")
        return convert(attribute.value) if convert else attribute.value

    def _dtype(self, number: Any) -> str:
        try:
            return dtypes.from_ir(ir.DataType(number))
        except (TypeError, ValueError) as error:
            self.refuse("CC0202", f"{self.op_type} has the element type {number}: {error}")

    def _is_default(self, name: str) -> bool:
        value = self._node.attributes[name].value
        default = onnx_schema.default_of(self.domain, self.op_type, self.version, name)
        default = default.decode() if isinstance(default, bytes) else default
        return default is not None and value == default


def _mantissa_bits(dtype: str) -> int:
    """The number of bits of a floating-point type's mantissa; 0 for any other type."""
    kind = dtypes.numpy_dtype(dtype)
    if kind.kind != "f" and "float" not in dtype:
        return 0
    return int(ml_dtypes.finfo(kind).nmant)  # type: ignore[no-untyped-call]
