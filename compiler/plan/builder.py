"""Builds a plan step by step.

The types of results come from the runtime's `infer`, so that the rules for dtypes and ranks exist once.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from compiler import _runtime
from compiler.ir import dtypes
from compiler.ir.origin import Origin
from compiler.plan import decode, ops
from compiler.plan.encode import Op, canonical
from compiler.plan.types import described, shapeless, tensor, tensor_type

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["LimitError", "Nested", "PlanBuilder", "RefusedError", "Value"]

_LARGEST_KEY = 1 << 16
"""The most bytes of constants in a key of a cache."""


class RefusedError(Exception):
    """An op refuses its inputs. `for_shapes`: it would accept other shapes and constants of the same dtypes."""

    def __init__(self, message: str, *, for_shapes: bool = False) -> None:
        self.for_shapes = for_shapes
        super().__init__(message)


class LimitError(RefusedError):
    """An op exceeds a limit that all kernels have by design. `help` gives an alternative."""

    def __init__(self, message: str, help: str) -> None:
        self.help = help
        super().__init__(message)


@dataclass(eq=False)
class Value:
    """A value of a plan under construction."""

    type: ops.AnyType
    owner: PlanBuilder = field(repr=False)
    name: str = ""
    constant: np.ndarray | None = None
    weight: np.ndarray | None = None
    """The elements of a constant that a session may replace, so that nothing else in the plan may depend on them."""

    @property
    def is_stored(self) -> bool:
        """Whether the plan stores the elements, and no step computes them."""
        return self.constant is not None or self.weight is not None

    @property
    def dtype(self) -> str:
        """The logical element type; empty for a sequence."""
        kind = tensor_type(self.type)
        return "" if kind is None else kind.dtype

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The dimensions: numbers, symbols, and `None` for unknown ones; `None` if the rank is unknown."""
        kind = tensor_type(self.type)
        return None if kind is None or kind.shape is None else tuple(kind.shape)

    @property
    def rank(self) -> int | None:
        """The number of dimensions; `None` if unknown."""
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        return described(self.type)


@dataclass
class Nested:
    """A nested graph as a block. Its inputs are the graph's inputs, then `captures`: the outer values that it reads."""

    builder: PlanBuilder
    outputs: list[Value]

    @property
    def captures(self) -> list[Value]:
        """The outer values that the block reads, in the order of its last inputs."""
        return list(self.builder.captured)

    def block(self, captures: Sequence[Value] | None = None) -> ops.Block:
        """The block.

        If several blocks share a step's inputs, `captures` are the outer values in the order of these inputs.
        """
        for outer in captures or ():
            self.builder.capture(outer)
        order = self.captures if captures is None else list(captures)
        return self.builder.finish(self.outputs, [self.builder.captured[outer] for outer in order])


@dataclass
class _Step:
    op: Op
    inputs: list[Value | None]
    outputs: list[Value]
    origin: Origin


@dataclass
class Pool:
    """Constants and origins, which all blocks of a plan share."""

    constants: list[np.ndarray] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    """The names of weights, and the indices of their constants."""
    _origins: dict[Origin, int] = field(default_factory=dict)
    _index: dict[Any, int] = field(default_factory=dict)

    def constant(self, array: np.ndarray) -> int:
        """The index of a constant. Equal small constants and identical large ones share an index."""
        small = array.nbytes <= 4096 and array.dtype != object
        key = (array.dtype, array.shape, array.tobytes()) if small else id(array)
        if key not in self._index:
            self._index[key] = len(self.constants)
            self.constants.append(array)
        return self._index[key]

    def weight(self, name: str, array: np.ndarray) -> int:
        """The index of a weight, which it shares with no other constant."""
        if name not in self.weights:
            self.weights[name] = len(self.constants)
            self.constants.append(array)
        return self.weights[name]

    def stored(self, value: Value) -> int:
        """The index of the constant of a value that the plan stores."""
        if value.weight is not None:
            return self.weight(value.name, value.weight)
        assert value.constant is not None
        return self.constant(value.constant)

    def origin(self, origin: Origin) -> int:
        """The index of an origin. Equal origins share an index."""
        if origin not in self._origins:
            self._origins[origin] = len(self.origins)
            self.origins.append(origin)
        return self._origins[origin]


class PlanBuilder:
    """The steps of one block. Call it with an op and its inputs; the result is the op's output."""

    def __init__(self, lower_graph: Callable[[ir.Graph, PlanBuilder], list[Value]], parent: PlanBuilder | None = None):
        self.origin = Origin()
        self.values: dict[ir.Value, Value] = {}
        self.captured: dict[Value, Value] = {}
        self.inputs: list[Value] = []
        self.pool: Pool = parent.pool if parent else Pool()
        self._lower_graph, self._parent = lower_graph, parent
        self._steps: list[_Step] = []

    @overload
    def __call__(self, op: Op, *inputs: Value | None) -> Value: ...
    @overload
    def __call__(self, op: Op, *inputs: Value | None, outputs: int) -> tuple[Value, ...]: ...
    def __call__(self, op: Op, *inputs: Value | None, outputs: int | None = None) -> Value | tuple[Value, ...]:
        """Add a step. Return its one output, or a tuple if the caller gives the number of outputs.

        Raises:
            RefusedError: the op does not accept the inputs, or a plan cannot hold an attribute.
        """
        given = [None if value is None else self._own(value) for value in inputs]
        while given and given[-1] is None:
            given.pop()
        kinds = _infer(op, given, 1 if outputs is None else outputs, is_nested=self._parent is not None)
        results = [Value(kind, self) for kind in kinds]
        self._steps.append(_Step(op, given, results, self.origin))
        return results[0] if outputs is None else tuple(results)

    def refine(self, result: Value, kind: ops.AnyType) -> None:
        """Give a result of a step a more exact type than the inferred one.

        Raises:
            RefusedError: the step's op does not give such a result.
        """
        if kind == result.type:
            return
        result.type = kind
        maker = next((step for step in reversed(self._steps) if result in step.outputs), None)
        if maker is not None:
            _check(maker.op, maker.inputs, maker.outputs)

    def constant(self, array: np.ndarray) -> Value:
        """Adds a constant. Its type is one of NumPy or `ml_dtypes`; strings are object arrays."""
        return Value(tensor(dtypes.name_of(array), array.shape), self, constant=array)

    def weight(self, name: str, array: np.ndarray) -> Value:
        """Adds a constant that a session may replace. For the lowering of its readers, it is not constant."""
        return Value(tensor(dtypes.name_of(array), array.shape), self, name, weight=array)

    def input(self, name: str, kind: ops.AnyType) -> Value:
        """Adds an input of the block."""
        value = Value(kind, self, name)
        self.inputs.append(value)
        return value

    def value_of(self, value: ir.Value) -> Value | None:
        """The plan's value for a value of the graph, also from an enclosing block; `None` if there is none."""
        if value in self.values or self._parent is None:
            return self.values.get(value)
        outer = self._parent.value_of(value)
        return None if outer is None else self._own(outer)

    def inner(self) -> PlanBuilder:
        """A builder of a block inside this one."""
        builder = PlanBuilder(self._lower_graph, self)
        builder.origin = self.origin
        return builder

    def nested(self, graph: ir.Graph, inputs: Sequence[ops.AnyType]) -> Nested:
        """Lowers a nested graph with inputs of the given types."""
        builder = self.inner()
        for value, kind in zip(graph.inputs, inputs, strict=True):
            builder.values[value] = builder.input(value.name or "", kind)
        return Nested(builder, [builder._own(value) for value in self._lower_graph(graph, builder)])

    def capture(self, outer: Value) -> Value:
        """The input of this block that holds a value of the enclosing block."""
        if outer not in self.captured:
            self.captured[outer] = Value(outer.type, self, outer.name)
        return self.captured[outer]

    def _own(self, value: Value) -> Value:
        """The value itself; for a value of an enclosing block, the input of this block that holds it."""
        if value.owner is self or value.is_stored:
            return value
        return value if self._parent is None else self.capture(self._parent._own(value))

    def finish(self, outputs: Sequence[Value], captures: Sequence[Value] = ()) -> ops.Block:
        """The block without unused steps and constants."""
        results = [self._own(value) for value in outputs]
        steps = self._live_steps(results)
        ids: dict[Value, int] = {}
        inputs = [_number(ids, value) for value in (*self.inputs, *captures)]
        written = [self._write(step, ids, used) for step, used in steps]
        returned = [_number(ids, value) for value in results]
        constants = [
            ops.ConstantValue(value=index, constant=self.pool.stored(value))
            for value, index in ids.items()
            if value.is_stored
        ]
        values = [ops.ValueInfo(name=value.name, type=value.type) for value in ids]
        return ops.Block(constants=constants, inputs=inputs, outputs=returned, steps=written, values=values)

    def _live_steps(self, outputs: Sequence[Value]) -> list[tuple[_Step, set[Value]]]:
        used: set[Value] = set(outputs)
        live = []
        for step in reversed(self._steps):
            if any(value in used for value in step.outputs):
                used.update(value for value in step.inputs if value is not None)
                live.append(step)
        return [(step, used) for step in reversed(live)]

    def _write(self, step: _Step, ids: dict[Value, int], used: set[Value]) -> ops.Step:
        inputs = [None if value is None else _number(ids, value) for value in step.inputs]
        outputs = [_number(ids, value) if value in used else None for value in step.outputs]
        return ops.Step(op=step.op, inputs=inputs, outputs=outputs, origin=self.pool.origin(step.origin))


def _number(ids: dict[Value, int], value: Value) -> int:
    return ids.setdefault(value, len(ids))


def _infer(op: Op, inputs: Sequence[Value | None], outputs: int, *, is_nested: bool) -> list[ops.AnyType]:
    text, types = _text_of(op), _types_of(inputs)
    # A step of a nested graph may never run, so it is not refused for an index out of range, for example.
    constants = _constants_of(text, inputs, is_checked=not is_nested)
    is_small = sum(map(len, filter(None, constants))) <= _LARGEST_KEY
    infer = _infer_text if is_small else _infer_text.__wrapped__
    try:
        return infer(text, canonical(types), constants, outputs)
    except LimitError:
        raise
    except RefusedError as error:
        raise RefusedError(str(error), for_shapes=_takes_other_shapes(text, types, outputs)) from None


def _check(op: Op, inputs: Sequence[Value | None], outputs: Sequence[Value]) -> None:
    text = _text_of(op)
    _check_text(text, canonical(_types_of(inputs)), _constants_of(text, inputs), canonical(_types_of(outputs)))


def _text_of(op: Op) -> str:
    try:
        return canonical(op)
    except ValueError as error:
        raise RefusedError(f"an attribute of {type(op).__name__} is infinite or not a number") from error


def _types_of(values: Sequence[Value | None]) -> list[ops.AnyType | None]:
    return [None if value is None else value.type for value in values]


def _constants_of(op: str, inputs: Sequence[Value | None], *, is_checked: bool = False) -> tuple[bytes | None, ...]:
    """The bytes of the constants that the op reads as axes, sizes or the like; with `is_checked`, also of indices."""
    constants: list[bytes | None] = [None] * len(inputs)
    checked = _checked_inputs(op, len(inputs)) if is_checked else []
    for index in (*_number_inputs(op, len(inputs)), *checked):
        value = inputs[index]
        if value is not None and value.constant is not None and value.dtype != "string":
            constants[index] = value.constant.tobytes()
    return tuple(constants)


@functools.lru_cache(maxsize=4096)
def _number_inputs(op: str, count: int) -> list[int]:
    with _refusals():
        return _runtime.number_inputs(op, count)


@functools.lru_cache(maxsize=4096)
def _checked_inputs(op: str, count: int) -> list[int]:
    with _refusals():
        return _runtime.checked_inputs(op, count)


def _takes_other_shapes(op: str, types: Sequence[ops.AnyType | None], outputs: int) -> bool:
    others = canonical([None if kind is None else shapeless(kind) for kind in types])
    try:
        _infer_text(op, others, (None,) * len(types), outputs)
    except RefusedError:
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _infer_text(op: str, types: str, constants: tuple[bytes | None, ...], outputs: int) -> list[ops.AnyType]:
    with _refusals():
        return [decode.type_from(kind) for kind in json.loads(_runtime.infer(op, types, constants, outputs))]


@functools.lru_cache(maxsize=4096)
def _check_text(op: str, types: str, constants: tuple[bytes | None, ...], outputs: str) -> None:
    with _refusals():
        _runtime.check(op, types, constants, outputs)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except _runtime.LimitError as error:
        raise LimitError(*error.args) from None
    except _runtime.OpError as error:
        raise RefusedError(str(error), for_shapes=True) from None
