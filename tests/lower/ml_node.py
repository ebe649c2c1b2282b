"""Models of one node of the domain `ai.onnx.ml`, compared with onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import compiler
from tests.lower.conftest import assert_same, reference

Array = np.ndarray[Any, Any]
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def model_of(
    op_type: str,
    inputs: Sequence[Array],
    outputs: Sequence[int] | int,
    version: int,
    symbolic: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of a node with these inputs, outputs of these element types, and attributes that are not `None`."""
    value = [
        helper.make_tensor_value_info(
            f"x{i}",
            STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"rows{i}", *array.shape[1:]][: array.ndim] if symbolic else array.shape,
        )
        for i, array in enumerate(inputs)
    ]
    kinds = [outputs] if isinstance(outputs, int) else outputs
    names = [f"y{i}" for i in range(len(kinds))]
    given = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node(op_type, [v.name for v in value], names, name="node", domain="ai.onnx.ml", **given)
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "ml", value, results), opset_imports=opsets, ir_version=10)


def check(
    op_type: str,
    inputs: Sequence[Array],
    outputs: Sequence[int] | int,
    version: int,
    expected: Array | None = None,
    rtol: float = 0,
    atol: float = 0,
    **attributes: Any,
) -> None:
    """Compares the node with onnxruntime, or its output with `expected`, for known and unknown numbers of rows."""
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    wanted = None if expected is None else [expected]
    for symbolic in (False, True):
        model = model_of(op_type, inputs, outputs, version, symbolic, **attributes)
        wanted = reference(model, feeds) if wanted is None else wanted
        plan = compiler.compile(model)
        for threads in (1, 2):
            found = list(compiler.load(plan, threads=threads).run(feeds).values())
            for result, reference_result in zip(found, wanted, strict=True):
                assert_same(result, reference_result, rtol, atol, f"{op_type} {attributes}")
