"""Names for the outputs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir

__all__ = ["name_outputs", "separate_outputs"]


def name_outputs(model: onnx_ir.Model, names: Sequence[str]) -> None:
    """Name the outputs. An output that is also an input or another output gets an Identity node.

    Raises:
        TypeError, ValueError: the names are not a list of different names, one for each output, or an input has one.
    """
    import onnx_ir
    from onnx_ir.passes.common import NameFixPass

    graph = model.graph
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"outputs: expected a list of names, found {names!r}")
    if len(names) != len(graph.outputs):
        found = ", ".join(str(value.name) for value in graph.outputs)
        raise ValueError(f"outputs: expected a name for each output ({found}), found {len(names)} names")
    if taken := {value.name for value in graph.inputs} & {*names} or {name for name in names if names.count(name) > 1}:
        raise ValueError(f"outputs: an input or another output has the name {taken.pop()!r} too: choose another")
    for index, name in enumerate(names):
        value = graph.outputs[index]
        if value.is_graph_input() or value in graph.outputs[:index]:
            passed = onnx_ir.node("Identity", [value])
            graph.append(passed)
            passed.outputs[0].type, passed.outputs[0].shape = value.type, value.shape
            graph.outputs[index] = value = passed.outputs[0]
        value.name = name
    NameFixPass()(model)


def separate_outputs(model: onnx_ir.Model) -> None:
    """Give each output that is also an earlier output an Identity node and a name of its own, such as `sin_2`."""
    import onnx_ir

    graph = model.graph
    taken = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    for index, value in enumerate(graph.outputs):
        if value not in graph.outputs[:index]:
            continue
        passed = onnx_ir.node("Identity", [value])
        graph.append(passed)
        passed.outputs[0].type, passed.outputs[0].shape = value.type, value.shape
        name = next(name for at in range(2, len(taken) + 3) if (name := f"{value.name}_{at}") not in taken)
        passed.outputs[0].name = name
        taken.add(name)
        graph.outputs[index] = passed.outputs[0]
