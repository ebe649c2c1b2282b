"""A transpose moves above a resize that enlarges."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

import compiler
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.lower_upsample import lower_upsample
from compiler.passes.raise_transposes import raise_transposes

HEAD = """agraph (float[1, 3, 4, 5] x, float[4] given) => (float[A, B, C, D] y)
    <int64[4] sizes = {1, 3, 8, 7}, float[4] scales = {1, 1, 2, 1.5}, float[4] less = {1, 1, 0.5, 0.5}>"""


def resized(parse, resize: str, perm: list[int]) -> ir.Model:
    return parse(f"{HEAD} {{ r = {resize}  y = Transpose<perm = {perm}>(r) }}")


@pytest.mark.parametrize("perm", [[0, 2, 3, 1], [3, 1, 2, 0]])
@pytest.mark.parametrize(
    "resize",
    [
        'Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , , sizes)',
        'Resize<mode = "nearest">(x, , scales)',
        'Resize<mode = "linear">(x, , scales)',
    ],
)
def test_it_moves_above(parse, resize, perm):
    model = resized(parse, resize, perm)
    proto = ir.serde.serialize_model(model)
    for step in (infer_shapes, lower_upsample, raise_transposes):
        step.run(model)
    assert [node.op_type for node in model.graph] == ["Transpose", "Interpolate"]
    assert list(model.graph[1].attributes["axes"].as_ints()) == sorted(perm.index(axis) for axis in (2, 3))
    x = {"x": np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5), "given": np.ones(4, np.float32)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, x)
    (found,) = compiler.load(compiler.compile(proto)).run(x).values()
    np.testing.assert_allclose(found, expected, 1e-6, 1e-5)


@pytest.mark.parametrize("resize", ["Resize(x, , less)", "Resize(x, , given)"])
def test_it_stays(parse, resize):
    model = resized(parse, resize, [0, 2, 3, 1])
    for step in (infer_shapes, lower_upsample):
        step.run(model)
    before = [node.op_type for node in model.graph]
    raise_transposes.run(model)
    assert [node.op_type for node in model.graph] == before
