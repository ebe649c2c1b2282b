"""Inference of the types and shapes of a node's outputs.

The library onnx-shape-inference infers them from the inputs, and `compiler.ir.shape_fixes` corrects its answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, elements_of, nodes_of, opset_of
from compiler.ir.shape_fixes import Corrections
from compiler.ir.shape_library import ELEMENTS, Context, new_context, rule

__all__ = ["Inference", "NewNodes"]


class Inference:
    """Infers node by node. The symbols that it creates for sizes do not occur in the model yet."""

    def __init__(
        self,
        model: ir.Model,
        named: Iterable[ir.Value],
        is_known: Callable[[ir.Node], bool] = lambda node: not node.domain,
    ) -> None:
        """Reserves the symbols of the values `named`. `is_known` tells whether the library may infer a node."""
        self._opsets, self._is_known = model.opset_imports, is_known
        self.context = new_context(model.opset_imports)
        shapes = [value.shape for value in named if value.shape is not None]
        self.context.reserve_symbol_names({symbol for shape in shapes for dim in shape for symbol in _symbols(dim)})
        self._corrections = Corrections(self.context)

    def outputs(self, node: ir.Node) -> str | None:
        """Infers a node's outputs; returns the reason if that fails. Outputs without an inferred type keep theirs."""
        declared = [value.type for value in node.outputs]
        for value in node.outputs:
            value.type = value.shape = None
            value.const_value = None
            value.metadata_props.pop(ELEMENTS, None)
        version = opset_of(node, self._opsets.get(node.domain, 1))
        # The rules for operators that will be refused are not called, because some of them guess a type.
        infer = rule(node, version) if self._is_known(node) else None
        reason = None
        try:
            if infer is not None:
                infer(self.context, node)
        except Exception as error:  # the lowering reports the error of such a node
            reason = str(error)
        self._corrections.correct(node)
        for value, kind in zip(node.outputs, declared, strict=True):
            if value.type is None or value.dtype == ir.DataType.UNDEFINED:
                value.type = kind
        return reason


class NewNodes:
    """Infers the types and shapes that a rewrite did not set on its new nodes."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model

    @functools.cached_property
    def _inference(self) -> Inference:
        named = (
            value for node in nodes_of(self._model) for value in (*node.inputs, *node.outputs) if value is not None
        )
        return Inference(self._model, named)

    def infer(self, nodes: Iterable[ir.Node]) -> None:
        """Infers sorted nodes. Nodes of the plan's domain keep their types and shapes."""
        for node in nodes:
            if node.domain == PLAN_DOMAIN or all(value.type and value.shape is not None for value in node.outputs):
                continue
            for value in node.inputs:
                _follow(value, self._inference.context)
            self._inference.outputs(node)


def _follow(value: ir.Value | None, context: Context) -> None:
    """Tells the context the symbolic elements of a value that an earlier inference found."""
    if value is None:
        return
    context.name_anonymous_dims(value)
    elements = elements_of(value) if ELEMENTS in value.metadata_props else None
    if elements is not None and value.const_value is None:
        context.set_symbolic_value(
            value, [each if isinstance(each, int) else ir.SymbolicDim(each) for each in elements]
        )


def _symbols(dim: int | ir.SymbolicDim) -> set[str] | frozenset[str]:
    """The symbols in a dimension. A single name is not parsed, because parsing imports sympy."""
    if isinstance(dim, int):
        return set()
    return {dim.value} if dim.value and dim.value.isidentifier() else dim.free_symbols()
