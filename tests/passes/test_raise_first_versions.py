"""First versions of operators compute their documented results. onnxruntime, from opset 7 on, is no reference."""

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import CompileError
from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model
from compiler.passes.raise_first_versions import raise_first_versions

X = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) - 7

CASES = [
    # opset, node, output's type and shape, expected
    (1, 'Cast <to = "FLOAT16"> (x)', "float16[1,1,4,4]", X.astype(np.float16)),
    (5, 'Cast <to = "int32"> (x)', "int32[1,1,4,4]", X.astype(np.int32)),
    (1, "Concat (x, x)", "float[1,2,4,4]", np.concatenate([X, X], 1)),
    (3, "Concat <axis = 3> (x, x)", "float[1,1,4,8]", np.concatenate([X, X], 3)),
    (1, "GlobalLpPool (x)", "float[1,1,1,1]", np.sqrt((X**2).sum((2, 3), keepdims=True))),
    (1, "GlobalLpPool <p = 1.0> (x)", "float[1,1,1,1]", np.abs(X).sum((2, 3), keepdims=True)),
    (1, "LpPool <kernel_shape = [4, 4], p = 1.0> (x)", "float[1,1,1,1]", np.abs(X).sum((2, 3), keepdims=True)),
    (1, "Pad <paddings = [0, 0, 1, 0, 0, 0, 0, 2]> (x)", "float[1,1,5,6]", np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)])),
    (1, "Reshape <shape = [0, 2, -1], consumed_inputs = [0]> (x)", "float[1,2,8]", X.reshape(1, 2, 8)),
    (4, "Reshape <shape = [16]> (x)", "float[16]", X.reshape(16)),
    (1, "Split <axis = 2, split = [4]> (x)", "float[1,1,4,4]", X),
    (1, "Upsample <height_scale = 2.0, width_scale = 1.0> (x)", "float[1,1,8,4]", X.repeat(2, 2)),
    (6, "Upsample <height_scale = 1.0, width_scale = 3.0> (x)", "float[1,1,4,12]", X.repeat(3, 3)),
]


def model_of(opset, nodes, outputs):
    text = f'<ir_version: 3, opset_import: ["" : {opset}]> m (float[1,1,4,4] x) => ({outputs}) {{ {nodes} }}'
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize(("opset", "node", "kind", "expected"), CASES, ids=lambda each: str(each)[:40])
def test_first_versions(opset, node, kind, expected):
    model = model_of(opset, f"y = {node}", f"{kind} y")
    (found,) = compiler.load(compiler.compile(model)).run({"x": X}).values()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


def test_sizes_of_parts_as_an_input():
    nodes = "s = Constant <value = float[2] {1.0, 3.0}> ()  y, z = Split <axis = 3> (x, s)"
    model = model_of(1, nodes, "float[1,1,4,1] y, float[1,1,4,3] z")
    outputs = compiler.load(compiler.compile(model)).run({"x": X})
    np.testing.assert_array_equal(outputs["z"], X[..., 1:])


@pytest.mark.parametrize(
    ("nodes", "message"),
    {
        'y = Cast <to = "money"> (x)': "Cast-1: the type MONEY does not exist",
        "y = LpPool <kernel_shape = [4, 4], p = 1.5> (x)": "LpPool-1: the exponent 1.5 is not an integer",
        "y = Reshape (x)": "Reshape-1: the attribute shape is missing",
        "y = Split (x, x)": "Split-1: the sizes of the parts are not constant",
        "n = Constant <value = float {2.0}> ()  y = Tile (x, n, n)": "Tile-1: copies along one axis are not supported",
    }.items(),
)
def test_what_cannot_be_raised_is_refused(nodes, message):
    with pytest.raises(CompileError) as error:
        compiler.compile(model_of(1, nodes, "float[n] y"))
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("CC0202", message)


def test_later_versions_stay():
    model = load_model(model_of(6, "y = Cast <to = 1> (x)", "float[1,1,4,4] y")).model
    assert not raise_first_versions.run(model).changed


def test_what_was_raised_is_sound_and_stays():
    model = load_model(model_of(1, "y = Reshape <shape = [16]> (x)", "float[16] y")).model
    assert raise_first_versions.run(model).changed
    assert violations(model) == []
    assert not raise_first_versions.run(model).changed
