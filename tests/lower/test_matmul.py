"""MatMul and Gemm against onnxruntime."""

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.scratch.row import FLAT, KEEP, KEPT, PRODUCT, TALL, rows

RANDOM = np.random.default_rng(11)


def noise(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


SHAPES = [
    ((3,), (3,)),
    ((5,), (5, 4)),
    ((4, 5), (5,)),
    ((7, 30), (30, 70)),
    ((2, 3, 4, 5), (5, 6)),
    ((4, 5), (2, 3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((2, 0, 5), (5, 6)),
    ((2, 4, 0), (2, 0, 3)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(check_node, a, b):
    expected = None if np.prod(a) and np.prod(b) else [np.matmul(np.zeros(a), np.zeros(b)).astype(np.float32)]
    inputs = [noise(*a), noise(*b)]
    check_node("MatMul", inputs, opset=13, rtol=1e-5, atol=1e-5, expected=expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.int64, np.uint32, np.uint64])
def test_matmul_dtypes(check_node, dtype):
    a, b = (RANDOM.integers(0, 9, shape).astype(dtype) for shape in [(2, 3, 4), (4, 5)])
    check_node("MatMul", [a, b], opset=13, rtol=0, atol=0, expected=[np.matmul(a, b)])


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_transposed_stacks(trans_a, trans_b, constant, epilogue):
    """The node of `candle.plan`, alone and with an epilogue."""
    a, b = noise(2, 1, 4, 5), noise(3, 5, 6)
    expected = np.matmul(a, b)
    feeds = {"a": a.swapaxes(2, 3).copy() if trans_a else a, "b": b.swapaxes(1, 2).copy() if trans_b else b}
    shapes = {name: list(array.shape) for name, array in feeds.items()}
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "candle.plan" : 1]>
        agraph (float{shapes["a"]} a, float{shapes["b"]} b) => (float[2, 3, 4, 6] y) <float[2, 3, 4, 6] c> {{
            c = candle.plan.MatMul <trans_a = {trans_a}, trans_b = {trans_b}> (a, b)
            y = {"Relu" if epilogue else "Identity"}(c)
        }}
    """)
    if constant:
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop("b"), "b"))
        del model.graph.input[1]
    plan = compiler.compile(model)
    assert len(plan.document["main"]["steps"]) == 1
    found = compiler.load(plan).run(feeds)["y"]
    np.testing.assert_allclose(found, np.maximum(expected, 0) if epilogue else expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 9, 11, 13])
@pytest.mark.parametrize("c", [None, (), (5,), (1, 5), (3, 1), (3, 5)])
@pytest.mark.parametrize(
    "attributes", [{}, {"transA": 1}, {"transB": 1, "alpha": 0.5}, {"transA": 1, "transB": 1, "beta": 0.0}]
)
def test_gemm(check_node, attributes, c, opset):
    if c is None and opset < 11:
        pytest.skip("C is an optional input since version 11")
    a, b = noise(3, 4), noise(4, 5)
    inputs = [a.T.copy() if "transA" in attributes else a, b.T.copy() if "transB" in attributes else b]
    inputs += [] if c is None else [noise(*c)]
    check_node("Gemm", inputs, opset=opset, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("operator", "shapes", "expected"),
    [
        ("MatMul", [(3, 4), (3, 4)], "4 columns"),
        ("Gemm", [(3, 4), (3, 4)], "4 columns"),
        ("Gemm", [(3, 4), (4, 3), (2,)], "broadcast"),
    ],
)
def test_refused(node_model, operator, shapes, expected):
    model = node_model(operator, [noise(*shape) for shape in shapes], opset=13)
    with pytest.raises(compiler.CompileError, match=expected):
        compiler.compile(model)


SCRATCH = [
    *(
        row
        for sizes in (TALL, FLAT)
        for constants in ("", "z")
        for row in (
            *rows("float float16 double int32", PRODUCT, "y = MatMul(x, z)", constants=constants, **sizes),
            *rows("float float16", PRODUCT, "y = Gemm(x, z)", constants=constants, **sizes),
        )
    ),
    *(
        row
        for sizes in (TALL, FLAT)
        for options in ({"weights": "int8"}, {"weights": "int4"}, {"precision": "f16"})
        for row in rows(
            "float", f"{PRODUCT}, {KEEP}", f"y = MatMul(x, z) {KEPT}", constants="z", options=options, **sizes
        )
    ),
]
