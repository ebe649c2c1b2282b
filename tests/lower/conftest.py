"""`check_node`: compiles one ONNX node with all options, and compares it with onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from compiler.accuracy.reference import Reference
from compiler.ir import dtypes

Array = np.ndarray[Any, Any]


def _element_type(array: Array) -> int:
    return TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


def tensor_of(array: Array, name: str) -> TensorProto:
    if array.dtype == object:
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [str(item).encode() for item in array.ravel()])
    return numpy_helper.from_array(array, name)


def node_model(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    opset: int,
    attributes: dict[str, Any] | None = None,
    outputs: int | Sequence[bool] = 1,
    domain: str = "",
    constants: Sequence[int] = (),
    symbolic: bool = False,
) -> onnx.ModelProto:
    """A model of one node; inputs listed in `constants` are initializers, the others have symbolic sizes if asked.

    The test is skipped if the installed onnx package is older than the opset.
    """
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip(f"onnx {onnx.__version__} lacks opset {opset}")
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    results = [f"y{i}" if there else "" for i, there in enumerate(wanted)]
    node = helper.make_node(op_type, names, results, name="node", domain=domain, **(attributes or {}))
    for attribute in node.attribute:
        if attribute.name in (attributes or {}) and (attributes or {})[attribute.name] == []:
            attribute.type = onnx.AttributeProto.INTS
    given = [(i, array) for i, array in enumerate(inputs) if array is not None]
    graph = helper.make_graph(
        [node],
        "test",
        [
            helper.make_tensor_value_info(
                f"x{i}",
                _element_type(array),
                [f"x{i}_{axis}" for axis in range(array.ndim)] if symbolic else array.shape,
            )
            for i, array in given
            if i not in constants
        ],
        [helper.make_empty_tensor_value_info(name) for name in results if name],
        [tensor_of(array, f"x{i}") for i, array in given if i in constants],
    )
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10 if opset < 23 else 12)


def with_output_types(model: onnx.ModelProto, expected: Sequence[Any]) -> onnx.ModelProto:
    """The model with the dtypes of its outputs, which onnxruntime needs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for output, value in zip(copy.graph.output, expected, strict=True):
        if isinstance(value, np.ndarray):
            output.type.tensor_type.elem_type = _element_type(value)
    return copy


def reference(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    """onnxruntime's outputs, unoptimized."""
    return list(Reference(onnx.shape_inference.infer_shapes(model), optimize=False).run(feeds).values())


def assert_same(found: Any, expected: Any, rtol: float, atol: float, label: str = "") -> None:
    """Checks that both have the same kind, dtype and shape, and are equal within the tolerance."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), label
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other, rtol, atol, label)
        return
    if expected is None:
        assert found is None, label
        return
    expected = np.asarray(expected)
    assert dtypes.name_of(found) == dtypes.name_of(expected), f"{label}: {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{label}: {found.shape}, expected {expected.shape}"
    if expected.dtype == object or expected.dtype.kind in "OUS":
        assert found.tolist() == expected.tolist(), label
    elif expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=label)
    else:
        wide = np.float64
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol, atol, err_msg=label)


def check_node_(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    opset: int,
    rtol: float,
    atol: float,
    attributes: dict[str, Any] | None = None,
    outputs: int | Sequence[bool] = 1,
    domain: str = "",
    symbolic: bool = True,
    expected: Sequence[Any] | None = None,
    constants: Sequence[int] | None = None,
) -> None:
    """Compiles and runs the node and compares every output with onnxruntime, or with `expected`.

    Three times: all inputs given at run time, all but the first (or just `constants`) as initializers, and with
    symbolic sizes; each optimized and not. onnxruntime runs only the first of these models.
    """
    given = [i for i, array in enumerate(inputs) if array is not None]
    fixed = given[1:] if constants is None else list(constants)
    arguments: dict[str, Any] = {"opset": opset, "attributes": attributes, "outputs": outputs, "domain": domain}
    forms = {"constant inputs": node_model(op_type, inputs, constants=fixed, **arguments)}
    if constants is None:
        forms["run-time inputs"] = node_model(op_type, inputs, **arguments)
    if symbolic:
        forms["symbolic sizes"] = node_model(op_type, inputs, constants=fixed, symbolic=True, **arguments)
    wanted = expected
    for label, model in forms.items():
        names = {value.name for value in model.graph.input}
        feeds = {f"x{i}": inputs[i] for i in given if f"x{i}" in names}
        wanted = reference(model, feeds) if wanted is None else wanted  # type: ignore[arg-type]
        for optimize in (True, False):
            plan = compiler.compile(with_output_types(model, wanted), compiler.Options(optimize=optimize))
            found = list(compiler.load(plan, threads=1).run(feeds).values())
            assert len(found) == len(wanted)
            for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
                assert_same(one, other, rtol, atol, f"{op_type}-{opset} output {index}, {label}, optimize={optimize}")


@pytest.fixture
def check_node() -> Callable[..., None]:
    """The function `check_node_` as a fixture."""
    return check_node_


@pytest.fixture(name="node_model")
def node_model_fixture() -> Callable[..., onnx.ModelProto]:
    """The function `node_model` as a fixture."""
    return node_model


@pytest.fixture(name="reference")
def reference_fixture() -> Callable[..., list[Any]]:
    """The function `reference` as a fixture."""
    return reference
