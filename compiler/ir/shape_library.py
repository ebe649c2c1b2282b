"""The library onnx-shape-inference. Only this module imports it, and `compiler.ir.inference` calls it for a node.

The library infers the types and shapes of a node's outputs from those of its inputs. For a 1-D value that holds sizes,
it writes the elements into the value's metadata. `CORRECTED` in `compiler.ir.shape_fixes` lists the operators for which
the compiler corrects an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext, registry

__all__ = ["ELEMENTS", "Context", "forget_elements", "new_context", "rule"]

ELEMENTS = SYM_DATA_KEY
"""The key of the metadata that hold the elements of a value: a list, as JSON, of numbers and expressions."""

Context = ShapeInferenceContext
"""The library's facts about a model: its opsets, its symbols, and the elements of values that hold sizes."""


def new_context(opsets: Mapping[str, int]) -> ShapeInferenceContext:
    """A context for a model. Inferred types and shapes replace those that the file declares."""
    registry.collect()
    return ShapeInferenceContext(opsets, policy="override")


def forget_elements(context: ShapeInferenceContext, value: ir.Value) -> None:
    """Forgets the elements of a value."""
    context._symbolic_values.pop(value, None)  # no public method removes them
    value.metadata_props.pop(ELEMENTS, None)
    value.const_value = None


def rule(node: ir.Node, version: int) -> Callable[[ShapeInferenceContext, ir.Node], None] | None:
    """The function that infers a node's outputs, or `None` if the library has none.

    The library's rules for opset 7 also hold before it, and the pass `raise_legacy` needs their shapes.
    """
    found: Callable[[ShapeInferenceContext, ir.Node], None] | None
    found = registry.get(node.domain, node.op_type, version if node.domain else max(version, 7))
    return found
