"""The attributes of a node, as lowerings and expansions read them. An unread attribute is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import dtypes, onnx_schema, origin
from compiler.ir.graph import array_of

__all__ = ["Attributes"]

T = TypeVar("T")
# The class below has methods named `int` and `float`.
Int: TypeAlias = int
Float: TypeAlias = float
Ints: TypeAlias = list[int]
Floats: TypeAlias = list[float]
_Kind = ir.AttributeType
_REQUIRED: Any = object()


class Attributes:
    """The attributes of an ONNX node. `check_all_read` refuses the node if one of them was not read."""

    def __init__(self, node: ir.Node, version: int) -> None:
        self.op_type, self.domain, self.name = node.op_type, node.domain, node.name or ""
        self.version = version
        self._node = node
        self._unread = set(node.attributes.data)

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
        return self._attribute(name, _Kind.TENSOR, default, self._array)

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

    def type_attr(self, name: str) -> ir.TypeAndShape | None:
        """An attribute with a type and a shape; `None` if it is absent."""
        kind: ir.TypeAndShape | None = self._attribute(name, _Kind.TYPE_PROTO, None)
        return kind

    def values(self) -> dict[str, tuple[_Kind, Any]]:
        """The kind and value of every attribute: a number, a string, an array, or a list of numbers or strings."""
        return {name: (each.type, self._value(name, each.type)) for name, each in self._node.attributes.items()}

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

    def _value(self, name: str, kind: _Kind) -> Any:
        if kind in (_Kind.INT, _Kind.FLOAT, _Kind.STRING):
            return self._attribute(name, kind, _REQUIRED)
        if kind in (_Kind.INTS, _Kind.FLOATS, _Kind.STRINGS):
            return self._attribute(name, kind, _REQUIRED, list)
        if kind != _Kind.TENSOR:
            takes = "numbers, strings, lists of these, and tensors"
            self.refuse("CC0209", f"{self.op_type}'s attribute {name} is {kind.name}: custom operators take {takes}")
        return self.tensor(name)

    def _array(self, tensor: ir.TensorProtocol) -> np.ndarray:
        array = array_of(tensor)
        try:
            dtypes.name_of(array)
        except TypeError as error:
            self.refuse("CC0202", f"{self.op_type} has a tensor as an attribute: {error}")
        return array

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
