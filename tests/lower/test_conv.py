"""Conv and ConvTranspose against onnxruntime."""

import itertools

import numpy as np
import onnx.parser
import pytest

import compiler
from tests.scratch.row import ALONE, DEEP, IMAGES, KEEP, KEPT, TAPS, WIDE, rows

RANDOM = np.random.default_rng(7)


def noise(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


CONV = [
    # x, w, attributes
    ((1, 3, 9, 8), (4, 3, 3, 3), {}),
    ((2, 3, 9, 8), (4, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ((1, 4, 9, 8), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
    ((1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 6, 9, 8), (6, 1, 2, 4), {"group": 6, "auto_pad": "SAME_LOWER"}),
    ((1, 3, 9, 8), (4, 3, 1, 1), {"auto_pad": "VALID", "strides": [3, 2]}),
    ((2, 3, 17), (5, 3, 4), {"pads": [3, 1], "strides": [2], "dilations": [3]}),
    ((1, 40, 33), (24, 40, 1), {"kernel_shape": [1]}),
    ((1, 3, 2, 2), (2, 3, 2, 2), {"strides": [5, 5]}),
]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("x", "w", "attributes"), CONV)
def test_conv(check_node, x, w, attributes, bias):
    inputs = [noise(*x), noise(*w)] + ([noise(w[0])] if bias else [])
    check_node("Conv", inputs, opset=11, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 11, 22])
def test_conv_versions(check_node, opset):
    inputs = [noise(1, 2, 5, 5), noise(3, 2, 3, 3)]
    attributes = {"auto_pad": "NOTSET", "kernel_shape": [3, 3]}
    check_node("Conv", inputs, opset=opset, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-3)])
def test_conv_dtypes(check_node, dtype, tolerance):
    x, w, b = noise(1, 2, 6, 5), noise(4, 1, 3, 2), noise(4)
    wide = [array.astype(dtype).astype(np.float64) for array in (x, w, b)]
    expected = np.zeros((1, 4, 4, 4))
    for o, i, j in np.ndindex(4, 3, 2):
        expected[0, o] += wide[1][o, 0, i, j] * wide[0][0, o // 2, i : i + 4, j : j + 4]
    expected += wide[2][:, None, None]
    inputs = [array.astype(dtype) for array in (x, w, b)]
    expected = expected.astype(dtype)
    check_node("Conv", inputs, opset=11, attributes={"group": 2}, expected=[expected], rtol=tolerance, atol=tolerance)


POSITIONS = [
    # x, y, w, attributes; T is the length of the last axis, to which the last stride and pads belong
    ("N,24,T", "N,40,L", (40, 24, 1), {"strides": [1], "pads": [0, 0]}),
    ("N,24,T", "N,40,L", (40, 24, 3), {"strides": [1], "pads": [1, 1]}),
    ("N,1,T", "N,70,L", (70, 1, 400), {"strides": [160], "pads": [0, 0]}),
    ("N,1,T", "N,70,L", (70, 1, 64), {"strides": [16], "pads": [24, 24]}),
    ("N,8,T", "N,24,L", (24, 8, 10), {"strides": [5], "pads": [0, 0]}),
    ("N,16,3,T", "N,24,1,L", (24, 16, 3, 3), {"strides": [1, 1], "pads": [0, 1, 0, 1]}),
]


@pytest.mark.parametrize(("x", "y", "w", "attributes"), POSITIONS)
def test_one_session_computes_few_positions_and_many(reference, x, y, w, attributes):
    listed = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    text = f"agraph (float[{x}] x) => (float[{y}] y) {{ y = Conv <{listed}> (x, w, b) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    constants = {"w": noise(*w), "b": noise(w[0])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(each, name) for name, each in constants.items())
    plan = compiler.compile(model)
    sessions = [compiler.load(plan, threads=threads) for threads in (1, 2)]
    stride, pad = attributes["strides"][-1], attributes["pads"][-1]
    for positions, batch in itertools.product([1, 3, 8, 9, 100, 8, 1], [1, 3]):
        sizes = {"N": batch, "T": (positions - 1) * stride + w[-1] - 2 * pad}
        feeds = {"x": noise(*(sizes.get(size) or int(size) for size in x.split(",")))}
        [[found], [same]] = [session.run(feeds).values() for session in sessions]
        [expected] = reference(model, feeds)
        assert found.shape[-1] == positions
        np.testing.assert_array_equal(found, same)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


TRANSPOSED = [
    ((1, 3, 5, 4), (3, 4, 3, 3), {}),
    ((2, 3, 5, 4), (3, 4, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 4), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "pads": [1, 2, 1, 0], "output_padding": [2, 1]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [2, 3], "dilations": [2, 2], "pads": [1, 0, 0, 1]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "output_shape": [16, 9]}),
    ((1, 3, 5, 4), (3, 4, 3, 3), {"strides": [3, 2], "output_shape": [14, 8], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 5, 4), (3, 4, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 5, 4), (3, 4, 3, 4), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 3, 9), (3, 2, 16), {"strides": [8], "pads": [4, 4]}),
    ((1, 3, 9), (3, 2, 2), {"strides": [4]}),
    ((1, 3, 2, 3), (3, 2, 32, 32), {"strides": [16, 16]}),
    ((1, 2, 2, 2), (2, 2, 64, 64), {"strides": [32, 32], "pads": [16, 16, 16, 16]}),
    ((1, 4, 2, 2), (4, 4, 3, 3), {"strides": [100, 100]}),
    ((1, 2, 2, 1), (2, 2, 3, 3), {"strides": [300, 300], "output_padding": [5, 0]}),
    ((1, 4, 3), (4, 1, 3), {"strides": [100], "dilations": [7], "group": 2, "output_padding": [9]}),
    ((2, 4, 3, 2), (4, 3, 2, 2), {"strides": [4, 3], "dilations": [2, 3], "group": 2, "output_padding": [1, 2]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED)
def test_conv_transpose(check_node, x, w, attributes):
    inputs = [noise(*x), noise(*w), noise(w[1] * attributes.get("group", 1))]
    check_node("ConvTranspose", inputs, opset=11, attributes=attributes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((1, 21, 16, 16), (21, 21, 64, 64), {"strides": [32, 32]}),
        ((1, 256, 140_000), (256, 1, 16), {"strides": [8], "pads": [4, 4]}),
    ],
)
def test_conv_transpose_of_large_outputs(node_model, reference, x, w, attributes):
    inputs = [noise(*x), noise(*w)]
    model = node_model("ConvTranspose", inputs, opset=11, attributes=attributes, constants=[1])
    session = compiler.load(compiler.compile(model))
    feeds = {info.name: inputs[0] for info in session.inputs}
    [found], [expected] = session.run(feeds).values(), reference(model, feeds)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("operator", "x", "w", "attributes"),
    [
        ("Conv", (1, 32, 14, 14), (48, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("Conv", (2, 6, 9), (8, 3, 3), {"group": 2, "strides": [2]}),
        ("ConvTranspose", (1, 8, 7, 6), (8, 4, 3, 3), {"strides": [2, 2], "group": 2}),
        ("ConvTranspose", (1, 8, 7), (8, 4, 2), {"strides": [3], "group": 2}),
    ],
)
def test_narrow_weights_are_packed_as_wide_ones(node_model, operator, x, w, attributes):
    narrow = [noise(*x, dtype=np.float16), noise(*w, dtype=np.float16)]
    packed, results, kernels = [], [], []
    for dtype in (np.float16, np.float32):
        inputs = [array.astype(dtype) for array in narrow]
        model = node_model(operator, inputs, opset=11, attributes=attributes, constants=[1])
        session = compiler.load(compiler.compile(model, compiler.Options(optimize=False)), threads=1)
        packed.append(session.prepared().packed_bytes)
        kernels.append([step.kernel for step in session.prepared().steps if step.op == operator])
        results += session.run({info.name: inputs[0] for info in session.inputs}).values()
    assert packed[0] >= 4 * narrow[1].size and kernels[0] == kernels[1]
    np.testing.assert_array_equal(results[0], results[1].astype(np.float16))


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "expected"),
    [
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"kernel_shape": [2, 2]}, "kernel_shape"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"strides": [0, 1]}, "strides"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"group": 0}, "groups"),
        ("Conv", [(1, 2, 5, 5), (3, 1, 3, 3)], {}, "channels"),
        ("Conv", [(1, 2, 5, 5), (3, 2, 3, 3)], {"dilations": [1, 4], "pads": [0, 1, 0, 1]}, "wider than the input"),
        ("ConvTranspose", [(1, 2, 5, 5), (2, 1, 3, 3)], {"output_padding": [1]}, "output_padding"),
        ("ConvTranspose", [(1, 2, 5, 5), (2, 1, 3, 3)], {"output_shape": [1]}, "output_shape"),
    ],
)
def test_refused(node_model, operator, shapes, attributes, expected):
    model = node_model(operator, [noise(*shape) for shape in shapes], opset=11, attributes=attributes)
    with pytest.raises(compiler.CompileError, match=expected):
        compiler.compile(model)


def test_a_window_that_does_not_fit_is_the_only_finding():
    text = """g (float[1, 3, 9, 10] x, float[32, 3, 7, 7] w) => (float[n, c, h, v] y) {
        z = Conv<dilations = [2, 2]>(x, w)
        y = Relu(z)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 17]> {text}')
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(model)
    [only] = error.value.diagnostics
    assert "is wider than the input" in only.message


SCRATCH = [
    *rows("float", f"{IMAGES}, T[c, 1, 3, 3] w", "y = OP<group = 400000>(x, w)", "Conv ConvTranspose", **ALONE),
    *(
        row
        for constants in ("", "w")
        for row in rows(
            "float", f"{IMAGES}, T[c, 1, 3, 3] w", "y = Conv<group = 16>(x, w)", constants=constants, **DEEP
        )
    ),
    *(
        row
        for constants in ("", "w")
        for sizes in (WIDE, DEEP)
        for row in (
            *rows(
                "float float16 double",
                f"{IMAGES}, {TAPS}",
                "y = OP(x, w)",
                "Conv Conv<strides=[2,2]> Conv<dilations=[2,2]> ConvTranspose ConvTranspose<strides=[2,2]>",
                constants=constants,
                **sizes,
            ),
        )
    ),
    *rows(
        "float",
        f"T[1, 16, n, m] x, T[16, 1, 3, 3] v, T[16, 16, 1, 1] w, {KEEP}",
        f"z = Conv<group = 16>(x, v) y = Conv(z, w) {KEPT}",
        constants="v w",
        options={"optimize": True},
        n=400,
        m=400,
    ),
]
