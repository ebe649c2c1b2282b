"""If, Loop and Scan: nested graphs become blocks. The steps pass them the outer values that they read (captures)."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from compiler.errors import CompileError
from compiler.ir.views.scan import ScanView
from compiler.lower.node import Node, lowers
from compiler.plan import Nested, PlanBuilder, Value, ops, tensor
from compiler.plan.types import joined, shapeless, type_of

_INT64 = tensor("int64", [])
_BOOL = tensor("bool", [])


@lowers("If", newest=25)
def if_(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`If`. Both branches take the captures of both."""
    then_graph, else_graph = node.graph("then_branch"), node.graph("else_branch")
    branches = [_branch(node, then_graph, else_graph, build), _branch(node, else_graph, then_graph, build)]
    captures = list(dict.fromkeys(value for branch in branches for value in branch.captures))
    then, other = (branch.block(captures) for branch in branches)
    return build(ops.If(then_branch=then, else_branch=other), node.input(0), *captures, outputs=node.outputs)


def _branch(node: Node, graph: ir.Graph, other: ir.Graph, build: PlanBuilder) -> Nested:
    """A branch. If its shapes make it always fail, the error occurs in a run that takes it, not at compile time.

    The results of the other branch have the types that such a branch lacks.
    """
    if graph.inputs:
        node.refuse("CC0205", f"a branch of If must have no inputs, but has {len(graph.inputs)}")
    try:
        return build.nested(graph, [])
    except CompileError as error:
        if len(graph.outputs) != len(other.outputs):
            raise
        types = [type_of(one) or type_of(two) for one, two in zip(graph.outputs, other.outputs, strict=True)]
        known = [shapeless(kind) for kind in types if kind is not None]
        codes = {each.code for each in error.diagnostics}
        if len(known) < len(types) or codes != {"CC0210"}:
            raise
        inner = build.inner()
        message = "; ".join(each.message for each in error.diagnostics)
        return Nested(inner, list(inner(ops.Raise(message=message, types=known), outputs=len(known))))


@lowers("Loop", newest=25)
def loop(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Loop`. The body is lowered with types that hold in every iteration."""
    graph = node.graph("body")
    carried = [node.input(index) for index in range(2, len(node.inputs))]
    body = _stable(node, graph, build, [_INT64, _BOOL], carried, [], first_output=1)
    step = ops.Loop(body=body.block(), carried=len(carried))
    inputs = (node.optional(0), node.optional(1), *carried, *body.captures)
    return build(step, *inputs, outputs=node.outputs)


@lowers("Scan", newest=25)
def scan(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Scan`. Version 8 scans each sequence of a batch."""
    if node.version < 9:
        return _scan_batch(node, build)
    graph = node.graph("body")
    values = [node.input(index) for index in range(len(node.inputs))]
    view = ScanView.read(node)
    count = _scan_inputs(node, view, len(values))
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    inputs = _scanned(node, "scan_input", count, view.input_axes, view.input_directions)
    results = len(graph.outputs) - len(states)
    outputs = _scanned(node, "scan_output", results, view.output_axes, view.output_directions)
    slices = [_slice_type(value, scan.axis) for value, scan in zip(scanned, inputs, strict=True)]
    body = _stable(node, graph, build, [], states, slices, first_output=0)
    step = ops.Scan(body=body.block(), inputs=inputs, outputs=outputs, states=len(states))
    return build(step, *values, *body.captures, outputs=node.outputs)


def _scan_batch(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """A scan over the batch. Each iteration scans one sequence, and carries no value to the next."""
    if node.has_input(0):
        node.refuse(
            "CC0204", "Scan-8 with lengths of its sequences is not supported", help="export with opset 9 or newer"
        )
    graph = node.graph("body")
    values = [node.input(index) for index in range(1, len(node.inputs))]
    view = ScanView.read(node)
    count = _scan_inputs(node, view, len(values))
    directions = view.input_directions or (0,) * count
    if len(directions) != count:
        node.refuse("CC0202", f"Scan has {count} scanned inputs, but {len(directions)} directions")
    one = build.inner()
    own = [one.input(value.name, _slice_type(value, 0)) for value in values]
    states, scanned = own[: len(own) - count], own[len(own) - count :]
    slices = [_slice_type(value, 0) for value in scanned]
    body = _stable(node, graph, one, [], states, slices, first_output=0)
    step = ops.Scan(
        body=body.block(),
        inputs=[ops.Scanned(axis=0, reverse=bool(each)) for each in directions],
        outputs=_forward(len(graph.outputs) - len(states)),
        states=len(states),
    )
    results = one(step, *own, *body.captures, outputs=len(graph.outputs))
    batch = Nested(one, list(results))
    whole = ops.Scan(body=batch.block(), inputs=_forward(len(values)), outputs=_forward(len(results)), states=0)
    return build(whole, *values, *batch.captures, outputs=node.outputs)


def _scan_inputs(node: Node, view: ScanView[Value], most: int) -> int:
    count = view.scanned
    if not 1 <= count <= most:
        node.refuse("CC0202", f"{node.op_type}'s num_scan_inputs is {count}: expected a number from 1 to {most}")
    return count


def _forward(count: int) -> list[ops.Scanned]:
    return [ops.Scanned(axis=0, reverse=False)] * count


def _scanned(
    node: Node, name: str, count: int, axes: tuple[int, ...], directions: tuple[int, ...]
) -> list[ops.Scanned]:
    axes, directions = axes or (0,) * count, directions or (0,) * count
    if len(axes) != count or len(directions) != count:
        node.refuse("CC0202", f"Scan has {count} {name}s, but {len(axes)} axes and {len(directions)} directions")
    return [ops.Scanned(axis=axis, reverse=bool(way)) for axis, way in zip(axes, directions, strict=True)]


def _slice_type(value: Value, axis: int) -> ops.AnyType:
    shape = value.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return tensor(value.dtype)
    rest = [dim for index, dim in enumerate(shape) if index != axis % len(shape)]
    return tensor(value.dtype, rest)


def _stable(
    node: Node,
    graph: ir.Graph,
    build: PlanBuilder,
    before: Sequence[ops.AnyType],
    carried: Sequence[Value],
    after: Sequence[ops.AnyType],
    first_output: int,
) -> Nested:
    """The body, lowered with types of the carried values that an iteration does not change.

    Each round removes the facts of a type that an iteration changes (a size, then the rank), until none changes.
    """
    given, results = len(before) + len(carried) + len(after), first_output + len(carried)
    if len(graph.inputs) != given or len(graph.outputs) < results:
        found = f"{len(graph.inputs)} inputs and gives {len(graph.outputs)} outputs"
        node.refuse("CC0205", f"{node.op_type}'s body takes {found}, not {given} and {results} or more")
    types = [value.type for value in carried]
    while True:
        body = build.nested(graph, [*before, *types, *after])
        last = [value.type for value in body.outputs[first_output:results]]
        try:
            kept = [joined(kind, result) for kind, result in zip(types, last, strict=True)]
        except TypeError as error:
            node.refuse("CC0205", f"the body changes a carried value's type: {error}")
        if kept == types:
            return body
        types = kept
