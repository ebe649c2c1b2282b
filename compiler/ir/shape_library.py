"""The library onnx-shape-inference. Only this module imports it, and `compiler.ir.inference` calls it for a node.

The library infers the types and shapes of a node's outputs from those of its inputs. For a 1-D value that holds sizes,
it writes the elements into the value's metadata. `CORRECTED` in `compiler.ir.shape_fixes` lists the operators for which
the compiler corrects an answer.

The library computes with sympy, which is slow to import, even where a dimension stays the same. The module therefore
replaces two of its functions, which then answer such questions themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir
from onnx_shape_inference import SYM_DATA_KEY, ShapeInferenceContext, _broadcast, registry
from onnx_shape_inference._ops import _utils

__all__ = ["ELEMENTS", "Context", "broadcast", "forget_elements", "new_context", "rule", "scaled"]

Dim = int | ir.SymbolicDim

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


_broadcast_dim: Callable[[Dim, Dim], Dim | None] = _broadcast._broadcast_dim
_scale_dim: Callable[[Dim, float], Dim] = _utils.scale_dim


def broadcast(one: Dim, other: Dim) -> Dim | None:
    """The dimension to which two dimensions broadcast, or `None`. Equal symbols broadcast to themselves."""
    is_same = not isinstance(one, int) and not isinstance(other, int) and one.value == other.value is not None
    return one if is_same else _broadcast_dim(one, other)


def scaled(dim: Dim, scale: float) -> Dim:
    """The dimension times the scale, rounded down. A symbol times a whole number needs no rounding."""
    is_symbol = not isinstance(dim, int) and (dim.value or "").isidentifier()
    if not is_symbol or scale < 1 or scale != int(scale):
        return _scale_dim(dim, scale)
    return dim if scale == 1 else ir.SymbolicDim(f"{int(scale)}*{dim}")


_broadcast._broadcast_dim, _utils.scale_dim = broadcast, scaled
