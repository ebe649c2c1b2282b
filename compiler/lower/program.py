"""Translates graphs of elementwise functions into programs for an accumulator and slots.

If a value has only one reader, the program computes it just before this reader. It saves a value in a slot if the value
is read again, or if the other operand of its reader is computed after it. A slot is free after its last read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.ir.graph import PLAN_DOMAIN, constant_of
from compiler.ir.views.clip import ClipView
from compiler.lower import binary, unary
from compiler.lower.node import Node
from compiler.plan import Value, ops
from compiler.plan.fields import values_of

__all__ = ["SLOTS", "is_elementwise", "program_of", "takes_epilogue", "with_epilogue"]

SLOTS = 16
"""The number of slots of a program, besides the accumulator: the runtime's `Program::SLOTS`."""
_MOST_INPUTS = 6
"""The limit of inputs of one node. More would make programs too long."""
_WITH_EPILOGUE = frozenset(
    ["Conv", "ConvTranspose", "Gemm", "MatMul", "MatMulNBits", "QuantizedMatMul", "RoundedMatMul"]
)
_COMMUTATIVE = frozenset(["Add", "Mul"])
"""Functions whose operands may change places. A saved operand becomes the first one, because the accumulator often
still holds it, and then needs no load."""
_NOT_FLOAT = frozenset(["BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "ShiftLeft", "ShiftRight"])

Operand = ops.AnyOperand


def is_elementwise(node: ir.Node) -> bool:
    """Whether a program can compute the node, if its tensors are float32, or boolean results of float32."""
    if node.domain != "" or len(node.outputs) != 1 or not 1 <= len(node.inputs) <= _MOST_INPUTS:
        return False
    if node.op_type == "Clip":
        return node.inputs[0] is not None and _bounds(node) is not None
    if None in node.inputs:
        return False
    if node.op_type == "Where" or node.op_type in binary.CHAINS:
        return not node.attributes
    function = _function_of(node)
    return function is not None and function not in _NOT_FLOAT and _is_finite(function)


def _function_of(node: ir.Node) -> ops.AnyUnaryFunction | ops.BinaryFunction | None:
    """The function that a node of one or two inputs computes; `None` if it is no such node, or is invalid."""
    view = Node(node, (None,) * len(node.inputs), node.version or 0)
    function: ops.AnyUnaryFunction | ops.BinaryFunction | None
    try:
        function = unary.function_of(view) if len(node.inputs) == 1 else binary.function_of(view)
        view.check_all_read()
    except CompileError:
        return None
    return function


def program_of(graph: ir.Graph, places: Sequence[int], *, has_result: bool) -> ops.Program:
    """The program of a graph of elementwise nodes; `places` are the indices of the graph's inputs in the step's.

    With `has_result`, the graph's first input is the operator's result, which the accumulator holds at the start, and
    `places` are the indices of the others.

    Raises:
        CompileError: a node is not elementwise, or the program needs too many slots.
    """
    inputs = list(graph.inputs)
    result = inputs.pop(0) if has_result else None
    leaves: dict[ir.Value, Operand] = {
        value: ops.Operand.Input(place) for value, place in zip(inputs, places, strict=True)
    }
    for value in graph.initializers.values():
        array = constant_of(value)
        if array is None or array.size != 1:
            raise ValueError(f"{value.name} is not a number")
        leaves[value] = ops.Operand.Constant(float(array.reshape(())))
    return _Writer(graph, leaves, result).write()


def takes_epilogue(node: ir.Node) -> bool:
    """Whether the node's operator can run a program on its result."""
    return node.domain in ("", PLAN_DOMAIN) and node.op_type in _WITH_EPILOGUE


def with_epilogue(node: Node, own: int) -> tuple[ops.Program | None, list[Value | None]]:
    """The program of a node's `epilogue`, if any, and the step's inputs: the operator's `own` and the program's."""
    first = node.int("operands", None) if node.domain == PLAN_DOMAIN else None
    if first is None:
        return None, list(node.inputs)
    operands = [node.input(index) for index in range(first, len(node.inputs))]
    program = program_of(node.graph("epilogue"), range(own, own + len(operands)), has_result=True)
    return program, [*(node.optional(index) if index < first else None for index in range(own)), *operands]


class _Writer:
    """Writes the instructions of one program."""

    def __init__(self, graph: ir.Graph, leaves: Mapping[ir.Value, Operand], result: ir.Value | None) -> None:
        self.leaves, self.result = leaves, result
        self.output = graph.outputs[0]
        self.code: list[ops.AnyInstruction] = []
        self.free = list(range(SLOTS))[::-1]
        self.slots: dict[ir.Value, int] = {}
        self.reads_left: dict[ir.Value, int] = {self.output: 1}
        for node in graph:
            for value in _operands(node):
                self.reads_left[value] = self.reads_left.get(value, 0) + 1

    def write(self) -> ops.Program:
        """The program of the whole graph."""
        if self.result is not None:
            self.save(self.result)
        self.compute(self.output)
        return ops.Program(code=_without_unread(_without_reloads(self.code)))

    def compute(self, value: ir.Value) -> None:
        """Puts a value into the accumulator, and saves it if it is read again."""
        if self.is_available(value):
            self.code.append(ops.Instruction.Load(self.read(value)))
            return
        node = value.producer()
        if node is None:
            raise ValueError(f"{value.name} has no producer")
        self.apply(node)
        self.reads_left[value] -= 1
        if self.reads_left[value]:
            self.save(value)

    def apply(self, node: ir.Node) -> None:
        """Puts a node's result into the accumulator."""
        if node.op_type == "Where":
            self.select(*_operands(node))
            return
        if node.op_type == "Clip":
            self.compute(_operands(node)[0])
            self.clip(node)
            return
        if node.op_type in binary.CHAINS:
            self.chain(binary.CHAINS[node.op_type], _operands(node))
            return
        function = _function_of(node)
        if function is None:
            raise CompileError([Diagnostic("CC0201", f"{node.op_type} is not elementwise", origin.of(node))])
        x, *others = _operands(node)
        if others:
            self.join(cast(ops.BinaryFunction, function), x, *others)
            return
        self.compute(x)
        self.code.append(ops.Instruction.Unary(cast(ops.AnyUnaryFunction, function)))

    def join(self, function: ops.BinaryFunction, x: ir.Value, y: ir.Value) -> None:
        """Puts `function(x, y)` into the accumulator."""
        if function == "Pow" and self.leaves.get(y) == ops.Operand.Constant(2.0):
            self.compute(x)
            self.code.append(ops.Instruction.Unary("Square"))
            return
        if function in _COMMUTATIVE and x in self.leaves and y in self.slots:
            x, y = y, x
        if not self.is_available(x) and self.is_available(y):
            self.compute(x)
            self.code.append(ops.Instruction.Binary(function, self.read(y)))
            return
        if not self.is_available(y):
            if not self.is_available(x):
                self.hold(x)
            self.compute(y)
            self.code.append(ops.Instruction.Reverse(function, self.read(x)))
            return
        self.compute(x)
        self.code.append(ops.Instruction.Binary(function, self.read(y)))

    def chain(self, function: ops.BinaryFunction, values: Sequence[ir.Value]) -> None:
        """Combines the values two by two, from first to last."""
        for value in values[1:]:
            if not self.is_available(value):
                self.hold(value)
        self.compute(values[0])
        self.code += [ops.Instruction.Binary(function, self.read(value)) for value in values[1:]]

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> None:
        """Puts `yes` where the condition is true, else `no`, into the accumulator."""
        for value in (yes, no):
            if not self.is_available(value):
                self.hold(value)
        self.compute(condition)
        self.code.append(ops.Instruction.Select(self.read(yes), self.read(no)))

    def clip(self, node: ir.Node) -> None:
        """Bounds the accumulator."""
        bounds = _bounds(node)
        if bounds is None:
            raise CompileError([Diagnostic("CC0201", "the bounds of Clip are unknown", origin.of(node))])
        low, high = bounds
        if math.isfinite(low) and math.isfinite(high):
            self.code.append(ops.Instruction.Unary(ops.UnaryFunction.Clip(min=low, max=high)))
        elif math.isfinite(low):
            self.code.append(ops.Instruction.Binary("Max", ops.Operand.Constant(low)))
        elif math.isfinite(high):
            self.code.append(ops.Instruction.Binary("Min", ops.Operand.Constant(high)))

    def hold(self, value: ir.Value) -> None:
        """Computes a value and saves it for its reader."""
        self.reads_left[value] += 1
        self.compute(value)

    def is_available(self, value: ir.Value) -> bool:
        """Whether the value is available as an operand."""
        return value in self.leaves or value in self.slots

    def read(self, value: ir.Value) -> Operand:
        """The operand for a value. Frees a slot after its last read."""
        if value in self.leaves:
            return self.leaves[value]
        slot = self.slots[value]
        self.reads_left[value] -= 1
        if not self.reads_left[value]:
            del self.slots[value]
            self.free.append(slot)
        return ops.Operand.Saved(slot)

    def save(self, value: ir.Value) -> None:
        """Saves the accumulator, which holds the value."""
        if not self.free:
            raise CompileError([Diagnostic("CC0502", f"an elementwise program needs more than {SLOTS} slots")])
        self.slots[value] = self.free.pop()
        self.code.append(ops.Instruction.Save(self.slots[value]))


def _operands(node: ir.Node) -> list[ir.Value]:
    """The inputs that the node reads element by element, which exclude Clip's bounds."""
    given = [value for value in node.inputs if value is not None]
    return given[:1] if node.op_type == "Clip" else given


def _bounds(node: ir.Node) -> tuple[float, float] | None:
    """The bounds of Clip; `None` if one is unknown."""
    view = ClipView[ir.Value].of(node, complete=True)
    if view is None:
        return None
    pairs = (view.low, -math.inf), (view.high, math.inf)
    low, high = (default if bound is None else bound.number for bound, default in pairs)
    computed = [bound.number for bound in (view.low, view.high) if bound is not None and bound.value is not None]
    if low is None or high is None or not all(number is not None and math.isfinite(number) for number in computed):
        return None
    return low, high


def _is_finite(function: ops.AnyUnaryFunction | ops.BinaryFunction) -> bool:
    return all(math.isfinite(number) for number in values_of(function) if isinstance(number, float))


def _without_reloads(code: Sequence[ops.AnyInstruction]) -> list[ops.AnyInstruction]:
    """Removes loads of values that the accumulator still holds."""
    kept: list[ops.AnyInstruction] = []
    for step in code:
        before = kept[-1] if kept else None
        reloads = isinstance(before, ops.Instruction.Save) and step == ops.Instruction.Load(
            ops.Operand.Saved(before.value)
        )
        if not reloads:
            kept.append(step)
    return kept


def _without_unread(code: Sequence[ops.AnyInstruction]) -> list[ops.AnyInstruction]:
    """Removes saves that no instruction reads before the next save to the same slot."""
    kept: list[ops.AnyInstruction] = []
    awaited: set[int] = set()
    for step in reversed(code):
        if isinstance(step, ops.Instruction.Save):
            if step.value not in awaited:
                continue
            awaited.discard(step.value)
        awaited |= {item.value for item in values_of(step) if isinstance(item, ops.Operand.Saved)}
        kept.append(step)
    return kept[::-1]
