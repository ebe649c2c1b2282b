"""The comparison with onnxruntime of inputs and outputs whose dtype NumPy lacks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

import compiler
from compiler.accuracy.reference import Reference
from compiler.accuracy.verify import Judge

DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
}
"""The dtypes of graph inputs and outputs that onnxruntime supports, by their names in ONNX."""

PLACES = {"input": ("{}", "float"), "output": ("float", "{}"), "both": ("{}", "{}")}

SCALING = """
<ir_version: 13, opset_import: ["" : 25]>
scaling ({taken}[N] x) => ({given}[N] y) <float[1] c = {{0}}>
{{ f = Cast <to = 1> (x)  product = Mul (f, c)  y = Cast <to = {number}> (product) }}
"""


def parsed(graph: str, opset: int = 21) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> m {graph}')


def every_number(name: str) -> np.ndarray[Any, Any]:
    """Every number of the dtype, infinities and NaN, in an odd number of elements. The last one is the largest."""
    dtype = np.dtype(DTYPES[name])
    if "int" in name:
        limits = ml_dtypes.iinfo(dtype)
        return np.append(np.arange(limits.min, limits.max + 1), limits.max).astype(dtype)
    bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"uint{8 * dtype.itemsize}")
    return np.append(bits.view(dtype), np.array([ml_dtypes.finfo(dtype).max], dtype))


def scaling(name: str, place: str, factors: np.ndarray[Any, Any]) -> onnx.ModelProto:
    """A model that multiplies numbers in float32, with the dtype at its border."""
    taken, given = (each.format(name) for each in PLACES[place])
    number = TensorProto.DataType.Value(given.upper())
    model = onnx.parser.parse_model(SCALING.format(taken=taken, given=given, number=number))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(factors, "c"))
    return model


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", DTYPES)
def test_every_number_is_compared(name: str, place: str) -> None:
    x = every_number(name)
    if place == "output":
        x = x.astype(np.float32)
    factors = np.ones(x.size, np.float32)
    model = scaling(name, place, factors)
    report = compiler.verify(model, inputs={"x": x})
    (output,) = report.outputs
    assert report.equal and report.note == ""
    assert output.dtype == ("float32" if place == "input" else np.dtype(DTYPES[name]).name)
    for factor in [0.0] if "int" in name else [0.0, np.nan]:
        factors[-1] = factor
        report = compiler.verify(model, compiler.compile(scaling(name, place, factors)), {"x": x})
        (output,) = report.outputs
        assert output.verdict == "different" and not output.problem, factor


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("as_written", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 5)])
@pytest.mark.parametrize("name", ["bfloat16", "float8e5m2", "int4", "uint2"])
def test_the_elements_have_their_order(name: str, shape: tuple[int, ...], as_written: bool, optimize: bool) -> None:
    number = TensorProto.DataType.Value(name.upper())
    graph = f"({name}[] x) => ({name}[] y) {{ f = Cast <to = 1> (x)  y = Cast <to = {number}> (f) }}"
    reference = Reference(parsed(graph, 25), optimize=optimize, as_written=as_written)
    x = np.random.default_rng(0).integers(0, 4 if name == "uint2" else 8, shape).astype(DTYPES[name])
    for given in (x, np.asfortranarray(x), x[::-1] if x.ndim else x):
        (y,) = reference.run({"x": given}).values()
        assert y.dtype == given.dtype and y.shape == given.shape
        np.testing.assert_array_equal(y.astype(np.float32), given.astype(np.float32))


def test_bfloat16_has_a_tolerance() -> None:
    judge = Judge(parsed("(bfloat16[3] x) => (bfloat16[3] y) { y = Identity (x) }"))
    x = np.array([1, 2, 4], ml_dtypes.bfloat16)
    for last, is_equal in [(4.0625, True), (4.125, False)]:
        report = judge.compare({"x": x}, {"y": np.array([1, 2, last], ml_dtypes.bfloat16)})
        assert report.equal is report.ok is is_equal
