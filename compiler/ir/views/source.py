"""The source of a view: a node of the graph, or a node that a lowering translates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import onnx_ir as ir

from compiler.ir import dtypes
from compiler.ir.graph import constant_of

__all__ = ["Listed", "Source", "V", "View", "floats_at", "floats_of", "ints_at", "ints_of", "resolved"]

V = TypeVar("V")
"""A value: of the graph for a pass, of the plan for a lowering."""
V_co = TypeVar("V_co", covariant=True)
N = TypeVar("N", int, float)
T = TypeVar("T")
Self = TypeVar("Self", bound="View[Any]")
# The classes below have methods named `int` and `float`.
Int: TypeAlias = int
Float: TypeAlias = float
_Kind = ir.AttributeType
_REQUIRED: Any = object()


class Source(Protocol[V_co]):
    """The interface of views to a node. A lowering's node implements it, and tracks the attributes that are read."""

    domain: str
    op_type: str

    def optional(self, index: Int) -> V_co | None:
        """Input `index`; `None` if it is absent."""

    def constant(self, index: Int) -> np.ndarray | None:
        """The elements of input `index`; `None` if it is not a constant."""

    def is_since(self, version: Int, attribute: str) -> bool:
        """Whether the node has this `version` or a newer one, where `attribute` is an input."""

    @overload
    def int(self, name: str) -> Int: ...
    @overload
    def int(self, name: str, default: T) -> Int | T: ...
    @overload
    def ints(self, name: str) -> list[Int]: ...
    @overload
    def ints(self, name: str, default: T) -> list[Int] | T: ...
    @overload
    def float(self, name: str) -> Float: ...
    @overload
    def float(self, name: str, default: T) -> Float | T: ...
    @overload
    def floats(self, name: str) -> list[Float]: ...
    @overload
    def floats(self, name: str, default: T) -> list[Float] | T: ...
    @overload
    def string(self, name: str) -> str: ...
    @overload
    def string(self, name: str, default: T) -> str | T: ...
    def flag(self, name: str, default: bool) -> bool:
        """An integer attribute that is 0 or 1."""

    def dtype_attr(self, name: str) -> str:
        """An attribute with an element type, as a logical dtype."""


class _UnreadableError(Exception):
    """An attribute is missing or has the wrong type."""


class _GraphNode:
    """A node of the graph as a source. Its inputs are the graph's values."""

    def __init__(self, node: ir.Node, version: Int | None) -> None:
        self.domain, self.op_type = node.domain, node.op_type
        self._node, self._version = node, version
        self.unread = set(node.attributes)

    def optional(self, index: Int) -> ir.Value | None:
        return self._node.inputs[index] if index < len(self._node.inputs) else None

    def constant(self, index: Int) -> np.ndarray | None:
        return constant_of(self.optional(index))

    def is_since(self, version: Int, attribute: str) -> bool:
        return attribute not in self._node.attributes if self._version is None else self._version >= version

    def int(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._attribute(name, _Kind.INT, default)

    def ints(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._attribute(name, _Kind.INTS, default, list)

    def float(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._attribute(name, _Kind.FLOAT, default)

    def floats(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._attribute(name, _Kind.FLOATS, default, list)

    def string(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._attribute(name, _Kind.STRING, default)

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.int(name, default))

    def dtype_attr(self, name: str) -> str:
        number = self.int(name)
        try:
            return dtypes.from_ir(ir.DataType(number))
        except (TypeError, ValueError) as error:
            raise _UnreadableError(name) from error

    def _attribute(self, name: str, kind: _Kind, default: Any, convert: Callable[[Any], Any] | None = None) -> Any:
        self.unread.discard(name)
        attribute = self._node.attributes.get(name)
        if attribute is None and default is not _REQUIRED:
            return default
        if attribute is None or attribute.type != kind:
            raise _UnreadableError(name)
        return convert(attribute.value) if convert else attribute.value


class View(Generic[V]):
    """The base of views: the meaning of a node's inputs and attributes, independent of its opset."""

    operators: ClassVar[tuple[tuple[str, str], ...]]
    """The domain and name of each operator that the view reads."""

    @classmethod
    @abstractmethod
    def read(cls, node: Source[V]) -> View[V]:
        """The view of a node of one of `operators`.

        Raises:
            CompileError: an attribute of a lowering's node is missing or has the wrong type.
        """

    @classmethod
    def of(cls: type[Self], node: ir.Node | None, version: int | None = None, *, complete: bool = False) -> Self | None:
        """The view of a node of the graph.

        Without a `version` of the operator, the node's attributes determine it. The result is `None` without a node,
        for a node of another operator, and for a node whose attributes are missing or have the wrong type. If the view
        must be `complete`, because a pass drops the node, it is also `None` if the node has other attributes.
        """
        if node is None or (node.domain, node.op_type) not in cls.operators:
            return None
        try:
            source = _GraphNode(node, version)
            view: Any = cls.read(source)
        except _UnreadableError:
            return None
        return view if isinstance(view, cls) and not (complete and source.unread) else None


@dataclass(frozen=True)
class Listed(Generic[V, N]):
    """A list of numbers, from an attribute or from an input `value`; `known` are the numbers if they are constant."""

    value: V | None
    known: tuple[N, ...] | None

    @property
    def is_attribute(self) -> bool:
        """Whether the numbers come from an attribute, not from an input."""
        return self.value is None


def ints_of(node: Source[V], name: str, index: int, since: int, *, required: bool = False) -> Listed[V, int] | None:
    """The integers of attribute `name` before version `since`, and of input `index` from it on; `None` if absent."""
    if node.is_since(since, name):
        return ints_at(node, index)
    listed = node.ints(name) if required else node.ints(name, None)
    return None if listed is None else Listed(None, tuple(listed))


def ints_at(node: Source[V], index: int) -> Listed[V, int] | None:
    """The integers of input `index`; `None` if absent."""
    value, array = node.optional(index), node.constant(index)
    if value is None:
        return None
    return Listed(value, None if array is None else tuple(int(item) for item in array.ravel()))


def floats_of(node: Source[V], name: str, index: int, since: int, *, required: bool = False) -> Listed[V, float] | None:
    """The floats of attribute `name` before version `since`, and of input `index` from it on; `None` if absent."""
    if node.is_since(since, name):
        return floats_at(node, index)
    listed = node.floats(name) if required else node.floats(name, None)
    return None if listed is None else Listed(None, tuple(listed))


def floats_at(node: Source[V], index: int) -> Listed[V, float] | None:
    """The floats of input `index`; `None` if absent."""
    value, array = node.optional(index), node.constant(index)
    if value is None:
        return None
    return Listed(value, None if array is None else tuple(float(item) for item in array.ravel()))


def resolved(axis: int, rank: int) -> int | None:
    """The axis as a nonnegative number; `None` if a tensor of this rank does not have the axis."""
    return axis % rank if -rank <= axis < rank else None
