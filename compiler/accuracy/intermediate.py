"""Intermediate values of a model in onnxruntime, which computes it node by node, without optimizations."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
from typing import TYPE_CHECKING, Any

from compiler.accuracy.large import is_large
from compiler.accuracy.reference import Reference
from compiler.frontend.load import load_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import onnx_ir as ir

    from compiler.frontend.load import Source

__all__ = ["intermediate_values"]


def intermediate_values(
    model: Source, inputs: Mapping[str, Any], chosen: Callable[[Mapping[str, ir.Value]], Iterable[str]]
) -> dict[str, Any]:
    """The outputs, and the intermediate values that `chosen` picks from all values that nodes of the graph compute.

    Weights in other files stay there.

    Raises:
        CompileError: the model cannot be read.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
    """
    loaded = load_model(model).model
    computed = {value.name: value for node in loaded.graph for value in node.outputs if value.name}
    outputs = {value.name for value in loaded.graph.outputs}
    loaded.graph.outputs.extend(computed[name] for name in chosen(computed) if name not in outputs)
    return Reference(loaded, optimize=False, lean=is_large(model)).run(inputs)
