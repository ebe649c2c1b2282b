"""The interface of lowerings to an ONNX node, and the table of lowerings.

A lowering reads the attributes that it handles. An unread attribute is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import ml_dtypes
import numpy as np
import onnx_ir as ir

from compiler.attributes import Attributes
from compiler.ir import dtypes
from compiler.plan import PlanBuilder, Value

__all__ = ["LOWERINGS", "REMARKS", "Lowering", "Node", "lowers", "remark"]

Result = Value | tuple[Value, ...]
Function = Callable[["Node", PlanBuilder], Result]
Int: TypeAlias = int  # the class `Node` has a method named `int`


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


class Node(Attributes):
    """An ONNX node with its inputs as plan values."""

    def __init__(self, node: ir.Node, inputs: tuple[Value | None, ...], version: int) -> None:
        super().__init__(node, version)
        self.inputs = inputs
        self.outputs = len(node.outputs)

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


def _mantissa_bits(dtype: str) -> int:
    """The number of bits of a floating-point type's mantissa; 0 for any other type."""
    kind = dtypes.numpy_dtype(dtype)
    if kind.kind != "f" and "float" not in dtype:
        return 0
    return int(ml_dtypes.finfo(kind).nmant)  # type: ignore[no-untyped-call]
