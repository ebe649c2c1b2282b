"""Compares a node of three spatial dimensions, lowered to two, with onnxruntime or with expected values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

import compiler
from compiler.accuracy.reference import ReferenceFailed
from tests.lower.conftest import Array, assert_same, node_model, reference, with_output_types

FORMS = {"constants": (True, False), "inputs": (False, False), "symbols": (True, True)}
"""The name of a form of a model → whether all inputs but the first are constants, and whether sizes are symbols."""


def image(*shape: int, seed: int = 0, dtype: type = np.float32) -> Array:
    """Random elements."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def model_of(
    op_type: str, inputs: Sequence[Array | None], form: str, opset: int, outputs: int, attributes: dict[str, Any]
) -> onnx.ModelProto:
    """The model of a node in one of the forms."""
    is_constant, is_symbolic = FORMS[form]
    constants = [index for index, array in enumerate(inputs) if index and array is not None and is_constant]
    return node_model(
        op_type,
        inputs,
        opset=opset,
        attributes=attributes,
        outputs=outputs,
        constants=constants,
        symbolic=is_symbolic,
    )


def lowered(model: onnx.ModelProto, optimize: bool = True) -> compiler.Plan:
    """The plan of a model."""
    options = compiler.Options(optimize=optimize, lower_3d=True, verify_passes=True)
    return compiler.compile(model, options)


def check(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    opset: int = 20,
    outputs: int = 1,
    forms: Sequence[str] = ("constants", "inputs", "symbols"),
    optimized: Sequence[bool] = (True, False),
    tolerance: float = 1e-5,
    expected: Sequence[Array] | None = None,
    **attributes: Any,
) -> None:
    """Compares the outputs of the node in all forms, optimized and not, with `expected` or with onnxruntime's."""
    wanted = expected
    for form in forms:
        model = model_of(op_type, inputs, form, opset, outputs, attributes)
        names = {value.name for value in model.graph.input}
        feeds = {f"x{i}": array for i, array in enumerate(inputs) if array is not None and f"x{i}" in names}
        wanted = reference(model, feeds) if wanted is None else wanted
        for optimize in optimized:
            found = compiler.load(lowered(with_output_types(model, wanted), optimize), threads=1).run(feeds)
            for one, other in zip(found.values(), wanted, strict=True):
                assert_same(one, other, tolerance, tolerance, f"{op_type} {attributes}, {form}, optimize={optimize}")


def is_valid(model: onnx.ModelProto, feeds: dict[str, Array]) -> bool:
    """Whether onnxruntime runs a model."""
    try:
        reference(model, feeds)
    except ReferenceFailed:
        return False
    return True


def refusal_of(op_type: str, inputs: Sequence[Array | None], form: str = "constants", **attributes: Any) -> str:
    """The message of the only error for a node."""
    outputs = attributes.pop("outputs", 1)
    try:
        lowered(model_of(op_type, inputs, form, attributes.pop("opset", 20), outputs, attributes))
    except compiler.CompileError as error:
        [diagnostic] = error.diagnostics
        assert diagnostic.code == "CC0301" and diagnostic.origin is not None
        return diagnostic.message
    raise AssertionError("the compiler does not refuse the node")
