"""A model with the shapes for its compilation: pinned to the shapes of a case, or with symbolic dims."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import onnx_ir

from compiler.errors import CompileError
from compiler.frontend.load import Changed, load_model
from compiler.ir.symbols import shown, symbol_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["alike", "pinned", "set_shapes", "sizes_in", "unpinned"]

T = TypeVar("T")


def alike(cases: Iterable[T], inputs: Callable[[T], Mapping[str, Any]]) -> list[list[T]]:
    """The cases in groups whose inputs have the same shapes, so that one plan runs all cases of a group."""
    groups: dict[tuple[tuple[str, tuple[int, ...]], ...], list[T]] = {}
    for case in cases:
        shapes = sorted((name, array.shape) for name, array in inputs(case).items())
        groups.setdefault(tuple(shapes), []).append(case)
    return list(groups.values())


def pinned(path: Path, inputs: Mapping[str, Any]) -> Changed:
    """The model with the shapes of these inputs."""
    return Changed(path, lambda model: set_shapes(model, {name: array.shape for name, array in inputs.items()}))


def unpinned(path: Path) -> Changed:
    """The model with its symbolic dims. A model without any gets a symbolic first dim for each input."""
    return Changed(path, _unpin)


def sizes_in(path: Path, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the model's symbolic dims for these inputs, by the names of `pin_dims`.

    A dim that has several sizes in the inputs has no size. Neither has any dim of a model that cannot be read.
    """
    try:
        declared = load_model(path).model.graph.inputs
    except CompileError:
        return {}
    found: dict[str, set[int]] = {}
    for value in declared:
        array = inputs.get(value.name or "")
        sizes = array.shape if isinstance(array, np.ndarray) else ()
        for axis, (dim, size) in enumerate(zip(value.shape or (), sizes, strict=False)):
            if not isinstance(dim, int):
                found.setdefault(shown(dim.value or f"{value.name}.{axis}"), set()).add(size)
    return {name: next(iter(sizes)) for name, sizes in found.items() if len(sizes) == 1}


def set_shapes(model: onnx_ir.Model, shapes: Mapping[str, Sequence[int | str | None]]) -> None:
    """Give inputs other shapes, and remove the shapes that the file declares for other values."""
    for value in model.graph.inputs:
        if (shape := shapes.get(value.name or "")) is not None:
            value.shape = onnx_ir.Shape(shape)
    inner = (value for node in model.graph.all_nodes() for value in node.outputs)
    for value in (*inner, *model.graph.outputs):
        value.shape = None


def _unpin(model: onnx_ir.Model) -> None:
    known = {value.name or "": value.shape for value in model.graph.inputs if value.shape is not None}
    static = all(shape.is_static() for shape in known.values())
    made = {name: [symbol_of(f"{name}_0"), *shape.numpy()[1:]] for name, shape in known.items() if static and shape}
    set_shapes(model, made)
