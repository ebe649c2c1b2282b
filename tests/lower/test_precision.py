"""Attributes that set the type of a computation: a type that is narrower than the inputs changes the result."""

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler

NODES = {
    "LayerNormalization": "LayerNormalization<stash_type = {type}>(x, s)",
    "RMSNormalization": "RMSNormalization<stash_type = {type}>(x, s)",
    "GroupNormalization": "GroupNormalization<num_groups = 2, stash_type = {type}>(x, s, s)",
}
FLOAT, FLOAT16, DOUBLE, BFLOAT16, INT64 = 1, 10, 11, 16, 7


def compile_with(op_type, dtype, stash):
    node = NODES[op_type].format(type=stash)
    text = f'<ir_version: 10, opset_import: ["": 23]> g ({dtype}[2, 4] x, {dtype}[4] s) => (y) {{ y = {node} }}'
    return compiler.compile(onnx.parser.parse_model(text))


@pytest.mark.parametrize("op_type", NODES)
@pytest.mark.parametrize(
    ("dtype", "stash"),
    [("float", FLOAT), ("float", DOUBLE), ("float16", FLOAT16), ("float16", FLOAT), ("double", DOUBLE)],
)
def test_a_type_that_is_wide_enough(op_type, dtype, stash):
    names = {"float": "float32", "double": "float64"}
    assert compile_with(op_type, dtype, stash).outputs[0].dtype == names.get(dtype, dtype)


@pytest.mark.parametrize("op_type", NODES)
@pytest.mark.parametrize(
    ("dtype", "stash"),
    [("float", FLOAT16), ("float", BFLOAT16), ("float16", BFLOAT16), ("double", FLOAT16), ("float", INT64)],
)
def test_a_narrower_type_is_refused(op_type, dtype, stash):
    with pytest.raises(compiler.CompileError, match=f"{op_type} of .* cannot compute in .*, which stash_type requires"):
        compile_with(op_type, dtype, stash)


@pytest.mark.parametrize("sorted_", [0, 1, 2])
def test_top_k_is_sorted_or_may_be(sorted_):
    text = f"g (float[4] x) => (v, i) <int64[1] k = {{3}}> {{ v, i = TopK<sorted = {sorted_}>(x, k) }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    if sorted_ > 1:
        with pytest.raises(compiler.CompileError, match="sorted is 0 or 1"):
            compiler.compile(model)
    else:
        values = compiler.load(compiler.compile(model)).run({"x": np.float32([1, 4, 2, 3])})["v"]
        np.testing.assert_array_equal(values, [4, 3, 2])
