"""Random numbers: shapes, dtypes, moments, and repeatability; and Dropout."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import compiler
from tests.scratch.row import KEEP, KEPT, ONE, rows

FEW = np.array([[-3, -0.5, 0], [0.5, np.nan, 9]], "f4")


def session_of(nodes, inputs=(), opset=22):
    made = [name for node in nodes for name in node.output]
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph(nodes, "random", values, outputs)
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))
    session = compiler.load(compiler.compile(model), threads=1)
    return lambda: list(session.run(dict(inputs)).values())


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("opset", [7, 22])
def test_moments(opset, dtype):
    if opset < 22 and dtype == TensorProto.BFLOAT16:
        pytest.skip("bfloat16 came with version 22")
    attributes = {"shape": [100, 400], "dtype": dtype, "seed": 3.5}
    normal = helper.make_node("RandomNormal", [], ["a"], mean=3.0, scale=2.0, **attributes)
    uniform = helper.make_node("RandomUniform", [], ["b"], low=-1.0, high=5.0, **attributes)
    a, b = session_of([normal, uniform], opset=opset)()
    for found, mean, deviation in [(a, 3, 2), (b, 2, 12**0.5 / 2)]:
        assert found.shape == (100, 400) and found.dtype == helper.tensor_dtype_to_np_dtype(dtype)
        wide = found.astype(np.float64)
        assert abs(wide.mean() - mean) < 0.05 and abs(wide.std() - deviation) < 0.05
    assert b.min() >= -1 and b.max() <= 5


def test_like_takes_shape_and_dtype():
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"]),
        helper.make_node("RandomUniformLike", ["x"], ["b"], dtype=TensorProto.FLOAT),
        helper.make_node("RandomNormalLike", ["n"], ["c"], dtype=TensorProto.DOUBLE),
    ]
    inputs = [("x", np.zeros((2, 3), np.float16)), ("n", np.zeros((4,), np.int32))]
    a, b, c = session_of(nodes, inputs)()
    assert [(y.shape, y.dtype.name) for y in (a, b, c)] == [((2, 3), "float16"), ((2, 3), "float32"), ((4,), "float64")]


def test_sessions_and_equal_seeds_repeat_numbers():
    nodes = [
        helper.make_node("RandomNormal", [], ["a"], shape=[4]),
        helper.make_node("RandomNormal", [], ["b"], shape=[4]),
        helper.make_node("RandomNormal", [], ["c"], shape=[4], seed=1.0),
        helper.make_node("RandomNormal", [], ["d"], shape=[4], seed=1.0),
        helper.make_node("RandomNormal", [], ["e"], shape=[4], seed=2.0),
    ]
    one, other = session_of(nodes), session_of(nodes)
    first, again, second = one(), other(), one()
    np.testing.assert_array_equal(first, again)
    assert all((x != y).all() for x, y in zip(first, second, strict=True)), "a later run draws other numbers"
    a, b, c, d, e = first
    assert (c == d).all() and (a != b).all() and (c != e).all() and (a != c).all()


def test_loop_draws_new_numbers_each_turn():
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("RandomUniform", [], ["r"], shape=[2]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])],
        [value("on", TensorProto.BOOL, []), value("r", TensorProto.FLOAT, [2])],
    )
    inputs = [("n", np.array(3)), ("start", np.array(True))]
    [y] = session_of([helper.make_node("Loop", ["n", "start"], ["y"], body=body)], inputs)()
    assert y.shape == (3, 2) and len(np.unique(y)) == 6


def test_bernoulli():
    p = np.repeat(np.float32([0, 0.25, 1]), 20_000).reshape(3, -1)
    nodes = [
        helper.make_node("Bernoulli", ["p"], ["a"]),
        helper.make_node("Bernoulli", ["p"], ["b"], dtype=TensorProto.INT32, seed=2.0),
    ]
    a, b = session_of(nodes, [("p", p)])()
    assert a.dtype == np.float32 and b.dtype == np.int32
    for drawn in (a, b):
        assert set(np.unique(drawn)) == {0, 1}
        np.testing.assert_allclose(drawn.mean(axis=1), [0, 0.25, 1], rtol=0, atol=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, ml_dtypes.bfloat16])
def test_multinomial(dtype):
    shares = np.array([[0.5, 0.25, 0.25], [0.125, 0.0, 0.875]])
    with np.errstate(divide="ignore"):
        scores = np.log(shares).astype(dtype)
    nodes = [
        helper.make_node("Multinomial", ["x"], ["a"], sample_size=20_000),
        helper.make_node("Multinomial", ["x"], ["b"], sample_size=3, dtype=TensorProto.INT64),
    ]
    a, b = session_of(nodes, [("x", scores)])()
    assert a.dtype == np.int32 and b.dtype == np.int64 and b.shape == (2, 3)
    found = [[(row == index).mean() for index in range(3)] for row in a]
    np.testing.assert_allclose(found, shares, rtol=0, atol=0.02)


@pytest.mark.parametrize("opset", [7, 10])
def test_dropout_with_attributes(check_node, opset):
    check_node("Dropout", [FEW], opset=opset, attributes={"ratio": 0.3}, rtol=0, atol=0)


def test_dropout_with_a_mask(check_node):
    wanted = [FEW, np.ones(FEW.shape, bool)]
    check_node("Dropout", [FEW, np.array(0.5, "f4")], opset=13, outputs=2, rtol=0, atol=0, expected=wanted)


@pytest.mark.parametrize("mode", [np.array(True), np.array([True])])
def test_dropout_that_drops_nothing(check_node, mode):
    inputs = [FEW, np.array(0, "f4"), mode]
    check_node("Dropout", inputs, opset=13, rtol=0, atol=0, outputs=2, expected=[FEW, np.ones(FEW.shape, bool)])


def test_a_constant_mode_of_training_is_refused(node_model):
    inputs = [FEW, np.array(0.5, "f4"), np.array(True)]
    with pytest.raises(compiler.CompileError, match="inference"):
        compiler.compile(node_model("Dropout", inputs, opset=13, constants=[1, 2]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("ratio", "share"), [(0.25, 0.25), (None, 0.5), (1.0, 1.0)])
@pytest.mark.parametrize("attributes", [{}, {"seed": 3}, {"seed": -3}])
def test_runs_choose_the_mode_of_dropout(node_model, dtype, ratio, share, attributes):
    x = np.arange(1, 20_001).astype(dtype)
    inputs = [x, None if ratio is None else np.array(ratio, np.float32), np.array(True)]
    model = node_model("Dropout", inputs, opset=13, attributes=attributes, outputs=2, constants=[1])
    session = compiler.load(compiler.compile(onnx.shape_inference.infer_shapes(model)), threads=1)
    y, mask = session.run({"x0": x, "x2": np.array(True)}).values()
    assert abs(1 - mask.mean() - share) < 0.02 and y.dtype == dtype
    np.testing.assert_allclose(y[mask], x[mask] * dtype(1 / (1 - share) if share < 1 else 1), rtol=1e-3)
    assert not y[~mask].any()
    y, mask = session.run({"x0": x, "x2": np.array(False)}).values()
    assert mask.all() and np.array_equal(y, x)


def test_dropouts_draw_different_masks(node_model):
    x, mode = np.ones(100, np.float32), np.array(True)
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        dropouts (float[100] x, bool mode) => (float[100] y, float[100] z) {
            y = Dropout(x, , mode)  z = Dropout(x, , mode) }""")
    session = compiler.load(compiler.compile(model), threads=1)
    y, z = session.run({"x": x, "mode": mode}).values()
    again = session.run({"x": x, "mode": mode})["y"]
    assert (y != z).any() and (y != again).any()


def test_refusals():
    for node, message in [
        (helper.make_node("RandomNormal", [], ["y"], shape=[2], dtype=TensorProto.INT32), "not int32"),
        (helper.make_node("RandomUniform", [], ["y"], shape=[2], high=float("inf")), "high is inf"),
    ]:
        graph = helper.make_graph([node], "random", [], [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
        with pytest.raises(compiler.CompileError, match=message):
            compiler.compile(model)


@pytest.mark.parametrize(("shape", "said"), [([2**62, 2**62], "large"), ([-1], "is not a shape")])
@pytest.mark.parametrize("operator", ["RandomNormal", "RandomUniform"])
def test_a_shape_that_no_tensor_has_is_refused_at_compile_time(operator, shape, said):
    with pytest.raises(compiler.CompileError, match=said):
        session_of([helper.make_node(operator, [], ["a"], shape=shape)])


SCRATCH = [
    *rows("float float16", ONE, "y = OP(x)", "Bernoulli RandomNormalLike RandomUniformLike"),
    *rows("float", KEEP, f"y = OP<shape = [1536, 1536]>() {KEPT}", "RandomNormal RandomUniform"),
    *rows("float", ONE, "y = Multinomial<sample_size = 1000>(x)"),
    *rows("float float16", ONE, "y = Dropout(x)"),
    *rows("float float16", "T[n, m] x, bool mode", "y = Dropout(x, , mode)"),
]
