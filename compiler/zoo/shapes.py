"""The model of a folder with the shapes that it is compiled for: pinned to those of a case, or with symbolic dims."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
from typing import TYPE_CHECKING, Any, TypeVar

import onnx_ir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import onnx

__all__ = ["alike", "pinned", "unpinned", "with_shapes"]

T = TypeVar("T")


def alike(cases: Iterable[T], inputs: Callable[[T], Mapping[str, Any]]) -> list[list[T]]:
    """The cases in groups whose inputs have the same shapes, so that one plan runs all cases of a group."""
    groups: dict[tuple[tuple[str, tuple[int, ...]], ...], list[T]] = {}
    for case in cases:
        shapes = sorted((name, array.shape) for name, array in inputs(case).items())
        groups.setdefault(tuple(shapes), []).append(case)
    return list(groups.values())


def pinned(path: Path, inputs: Mapping[str, Any]) -> onnx.ModelProto:
    """The model with the shapes of these inputs."""
    return with_shapes(path, {name: array.shape for name, array in inputs.items()})


def unpinned(path: Path) -> onnx.ModelProto:
    """The model with its symbolic dims. A model without any gets a symbolic first dim for each input."""
    inputs = {value.name or "": value.shape for value in onnx_ir.load(path).graph.inputs if value.shape is not None}
    if not all(shape.is_static() for shape in inputs.values()):
        return with_shapes(path, {})
    return with_shapes(path, {name: [f"{name}_0", *shape.numpy()[1:]] for name, shape in inputs.items() if shape})


def with_shapes(path: Path, shapes: Mapping[str, Sequence[int | str | None]]) -> onnx.ModelProto:
    """The model with other shapes of its inputs, and without the shapes that its file declares for other values."""
    model = onnx_ir.load(path)
    for value in model.graph.inputs:
        if (shape := shapes.get(value.name or "")) is not None:
            value.shape = onnx_ir.Shape(shape)
    inner = (value for node in model.graph.all_nodes() for value in node.outputs)
    for value in (*inner, *model.graph.outputs):
        value.shape = None
    return onnx_ir.to_proto(model)
