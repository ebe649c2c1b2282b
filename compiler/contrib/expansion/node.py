"""The interface of expansions to a node, and the registry of the imported expansions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from compiler.attributes import Attributes
from compiler.contrib.expansion.body import Body
from compiler.ir.graph import constant_of, rank

__all__ = ["EXPANSIONS", "MICROSOFT", "Function", "Node", "expands"]

MICROSOFT = "com.microsoft"
"""The domain of most of onnxruntime's own operators."""

Function = Callable[["Node", Body], "ir.Value | Sequence[ir.Value | None]"]
Int: TypeAlias = int  # the class `Node` has a method named `int`

EXPANSIONS: dict[tuple[str, str], Function] = {}
"""(domain, operator) → the function that expands its nodes, for the operators of the imported families.

Operators of these domains have only version 1.
"""


def expands(op_type: str, *, domain: str = MICROSOFT) -> Callable[[Function], Function]:
    """Registers the expansion of an operator."""

    def register(function: Function) -> Function:
        if (domain, op_type) in EXPANSIONS:
            raise ValueError(f"{op_type} of domain {domain!r} has two expansions")
        EXPANSIONS[domain, op_type] = function
        return function

    return register


class Node(Attributes):
    """A node with its inputs, whose types are known as far as shape inference knows them.

    An unread input is an error, as an unread attribute is.
    """

    def __init__(self, node: ir.Node) -> None:
        super().__init__(node, 1)
        self.inputs = node.inputs
        self._unread_inputs = {index for index, value in enumerate(node.inputs) if value is not None}

    def optional(self, index: Int) -> ir.Value | None:
        """Input `index`; `None` if it is absent."""
        self._unread_inputs.discard(index)
        return self.inputs[index] if index < len(self.inputs) else None

    def ignore(self, *indices: Int) -> None:
        """Marks inputs as read that have no effect in this node."""
        self._unread_inputs.difference_update(indices)

    def check_all_read(self) -> None:
        """Refuses the node if an attribute or an input was not read."""
        super().check_all_read()
        for index in sorted(self._unread_inputs):
            self.refuse("CC0205", f"input {index} of {self.op_type} is not supported")

    def input(self, index: Int) -> ir.Value:
        """Input `index`; refuses the node if the input is absent."""
        value = self.optional(index)
        if value is None:
            self.refuse("CC0205", f"input {index} of {self.op_type} is missing")
        return value

    def constant(self, index: Int) -> np.ndarray | None:
        """The elements of input `index`; `None` if it is not a constant."""
        return constant_of(self.optional(index))

    def uses_output(self, index: Int) -> bool:
        """Whether output `index` has a reader."""
        outputs = self._node.outputs
        return index < len(outputs) and (bool(outputs[index].uses()) or outputs[index].is_graph_output())

    def dtype(self, index: Int, name: str, *allowed: ir.DataType) -> ir.DataType:
        """The element type of an input with this name; refuses the node if it is unknown or not allowed."""
        dtype = self.input(index).dtype
        if dtype is None or (allowed and dtype not in allowed):
            found = "unknown" if dtype is None else dtype.name.lower()
            self.refuse("CC0205", f"{self.op_type}'s input {name} has the element type {found}")
        return dtype

    def rank(self, index: Int, name: str, *allowed: Int) -> Int:
        """The rank of an input with this name; refuses the node if it is unknown or not allowed."""
        found = rank(self.input(index))
        if found is None:
            self.refuse("CC0205", f"the rank of {self.op_type}'s input {name} is not known")
        if allowed and found not in allowed:
            expected = " or ".join(map(str, allowed))
            self.refuse("CC0210", f"{self.op_type}'s input {name} has {found} dimensions, not {expected}")
        return found

    def check_rank(self, index: Int, name: str, *allowed: Int) -> None:
        """Refuses the node if the rank of an input with this name is known, and not allowed."""
        if rank(self.input(index)) is not None:
            self.rank(index, name, *allowed)

    def known_size(self, index: Int, axis: Int) -> Int | None:
        """The size of an input's axis; `None` if it is not known."""
        shape = self.input(index).shape
        size = None if shape is None or not -shape.rank() <= axis < shape.rank() else shape[axis]
        return size if isinstance(size, int) else None

    def size(self, index: Int, name: str, axis: Int) -> Int:
        """The size of an axis of an input with this name; refuses the node if it is not known."""
        size = self.known_size(index, axis)
        if size is None:
            self.refuse("CC0205", f"{self.op_type} needs a known size of axis {axis} of its input {name}")
        return size

    def check_sizes(self, index: Int, name: str, sizes: Mapping[Int, object]) -> None:
        """Refuses the node if an axis of an input with this name has another size, as far as both are known."""
        for axis, size in sizes.items():
            found = self.known_size(index, axis)
            if isinstance(size, int) and found not in (None, size):
                self.refuse("CC0210", f"axis {axis} of {self.op_type}'s input {name} is {found}, not {size}")

    def split_size(self, index: Int, name: str, axis: Int, count: Int) -> Int:
        """The size of an axis divided by `count`; refuses the node if it is no positive multiple of `count`."""
        size = self.size(index, name, axis)
        if size < count or size % count:
            self.refuse(
                "CC0210",
                f"axis {axis} of {self.op_type}'s input {name} has the size {size}, which is no multiple of {count}",
            )
        return size // count

    def positive(self, name: str) -> Int:
        """An integer attribute that must be positive."""
        value = self.int(name)
        if value < 1:
            self.refuse("CC0202", f"{self.op_type}'s attribute {name} is {value}, which is not positive")
        return value

    def choice(self, name: str, *allowed: Int) -> Int:
        """An integer attribute with one of the supported values, the default first; refuses the node for another."""
        value = self.int(name, allowed[0])
        if value not in allowed:
            expected = " or ".join(map(str, allowed))
            self.refuse("CC0202", f"{self.op_type}'s attribute {name} is {value}; only {expected} is supported")
        return value

    def refuse_input(self, index: Int, name: str) -> None:
        """Refuses the node if it has this input, which is not supported."""
        if self.optional(index) is not None:
            self.refuse("CC0205", f"{self.op_type}'s input {name} is not supported")
