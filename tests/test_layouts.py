"""Networks whose images prepare keeps in blocks of channels: results, and conversions between the layouts."""

from collections import Counter

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import compiler
from compiler import Options

SHAPES = {
    "w": (48, 48, 3, 3),
    "v": (40, 48, 3, 3),
    "u": (48, 40, 1, 1),
    "pointwise": (48, 48, 1, 1),
    "depthwise": (48, 1, 3, 3),
    "wide": (32, 96, 3, 3),
    "narrow": (3, 48, 1, 1),
    "stem": (48, 3, 7, 7),
    "w1": (48, 48, 5),
    "v1": (24, 48, 5),
    "up": (48, 48, 2, 2),
    "overlapping": (48, 48, 3, 3),
    "spread": (48, 1, 4, 4),
    "up1": (48, 48, 4),
    "scale": (48, 1, 1),
    "shift": (1, 40, 1, 1),
    "bias": (48,),
    "low": (),
}

CONSTANTS = {"axis": np.array(3), "twice": np.float32([1, 1, 2, 2]), "half": np.float32([1, 1, 0.5, 0.5])}

# name: (graph, how often an image is moved to the other layout)
NETWORKS = {
    "a chain": ("a = Conv<pads=[1,1,1,1]>(x, w, bias) b = Relu(a) y = Conv<pads=[1,1,1,1]>(b, v)", 2),
    "lanes beyond the channels": (
        "a = Conv<pads=[1,1,1,1]>(x, v) b = Exp(a) c = Add(b, shift) y = Conv(c, u)",
        2,
    ),
    "a residual": (
        "a = Conv<pads=[1,1,1,1]>(x, w) b = Sigmoid(a) c = Conv<pads=[1,1,1,1]>(b, w) d = Add(c, a) e = Mul(d, scale)"
        "y = Conv<pads=[1,1,1,1]>(e, w)",
        2,
    ),
    "gates": (
        "a = Conv<pads=[1,1,1,1]>(x, w) m = GlobalAveragePool(a) s = Conv(m, pointwise) g = Sigmoid(s) b = Mul(a, g)"
        "y = Conv<pads=[1,1,1,1]>(b, w)",
        2,
    ),
    "parts that are joined": (
        "a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Concat<axis=1>(a, b) d = Concat<axis=3>(c, c)"
        "y = Conv<pads=[1,1,1,1]>(d, wide)",
        2,
    ),
    "an output in the middle": ("z = Conv<pads=[1,1,1,1]>(x, w) b = Tanh(z) y = Conv<pads=[1,1,1,1]>(b, v)", 3),
    "an image of few channels": (
        "s = Conv(x, narrow) t = Transpose<perm=[0,1,3,2]>(s) a = Conv<strides=[2,2], pads=[3,3,3,3]>(t, stem)"
        "y = Conv<pads=[1,1,1,1]>(a, w)",
        1,
    ),
    "pooling": (
        "a = Conv<pads=[1,1,1,1]>(x, v) b = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a)"
        "c = AveragePool<kernel_shape=[2,3], pads=[0,1,1,1]>(b) y = Conv(c, u)",
        2,
    ),
    "resizing": (
        'a = Conv<pads=[1,1,1,1]>(x, w) b = Resize<mode="nearest">(a, , twice) c = Resize<mode="linear">(b, , half)'
        "y = Conv<pads=[1,1,1,1]>(c, v)",
        2,
    ),
    "a step that cannot": ("a = Conv<pads=[1,1,1,1]>(x, w) b = CumSum(a, axis) y = Conv<pads=[1,1,1,1]>(b, w)", 0),
    "depthwise and pointwise": (
        "a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1], group=48>(a, depthwise) c = Clip(b, low)"
        "d = Conv(c, pointwise) y = Conv<pads=[2,2,2,2], dilations=[2,2], group=48>(d, depthwise)",
        2,
    ),
    "transposed": (
        "a = Conv<pads=[1,1,1,1]>(x, w) b = ConvTranspose<strides=[2,2]>(a, up, bias) c = Relu(b)"
        "d = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(c, overlapping) e = Sigmoid(d)"
        "y = Conv(e, v)",
        2,
    ),
    "transposed and depthwise": (
        "a = Conv<pads=[1,1,1,1]>(x, w) b = ConvTranspose<strides=[2,2], pads=[1,1,1,1], group=48>(a, spread, bias)"
        "c = Mul(b, scale) y = Conv<pads=[1,1,1,1]>(c, v)",
        2,
    ),
}
SIGNALS = {
    "a transposed signal": (
        "a = Conv<pads=[2,2]>(x, w1) b = ConvTranspose<strides=[2], pads=[1,1]>(a, up1) c = Relu(b)"
        "y = Conv<pads=[2,2]>(c, v1)",
        2,
    ),
    "a chain of signals": ("a = Conv<pads=[2,2]>(x, w1) b = Sin(a) c = Mul(b, b) y = Conv<pads=[2,2]>(c, v1)", 2),
    "a residual signal": (
        "a = Conv<pads=[4,4], dilations=[2]>(x, w1) b = Relu(a) c = Conv<pads=[2,2]>(b, w1) d = Add(c, x)"
        "y = Conv<strides=[2]>(d, v1)",
        2,
    ),
}


def model_of(nodes: str, dims: str) -> onnx.ModelProto:
    outputs = ["y", "z"] if "z =" in nodes else ["y"]
    declared = ", ".join(
        f"float[{', '.join(f'{name}{i}' for i in range(dims.count(',') + 1))}] {name}" for name in outputs
    )
    text = f'<ir_version: 10, opset_import: ["" : 18]> net (float[{dims}] x) => ({declared}) {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(0)
    read = {name for node in model.graph.node for name in node.input}
    for name, shape in SHAPES.items():
        fan = np.prod(shape[1:]) if len(shape) > 2 else 1
        data = (random.normal(size=shape) / np.sqrt(fan)).astype(np.float32)
        if name in read:
            model.graph.initializer.append(numpy_helper.from_array(data, name))
    for name in read & CONSTANTS.keys():
        model.graph.initializer.append(numpy_helper.from_array(CONSTANTS[name], name))
    return model


def moves(session: compiler.Session, feeds: dict[str, np.ndarray]) -> int:
    return Counter(step.op for step in session.profile(feeds, runs=1))["Reorder"]


@pytest.mark.parametrize("dims", ["1, 48, 30, 30", "n, 48, h, w"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", [*NETWORKS, *SIGNALS])
def test_networks(name, threads, dims):
    nodes, expected = {**NETWORKS, **SIGNALS}[name]
    if name in SIGNALS:
        dims = {"1, 48, 30, 30": "1, 48, 900", "n, 48, h, w": "n, 48, w"}[dims]
    model = model_of(nodes, dims)
    shape = [int(dim) if dim.isdigit() else size for dim, size in zip(dims.split(", "), (2, 48, 33, 29), strict=False)]
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    reference = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    for optimize in (True, False):
        session = compiler.load(compiler.compile(model, Options(optimize=optimize)), threads=threads)
        for found, wanted in zip(session.run({"x": x}).values(), reference, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
        assert moves(session, {"x": x}) == expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("nodes", "steps"),
    [
        ("d = Conv<pads=[1,1,1,1], group=48>(a, depthwise) e = Conv(d, pointwise) f = Add(e, a) y = Relu(f)", 1),
        (
            "d = Conv<pads=[1,1,1,1], group=48>(a, depthwise, bias) s = Sigmoid(d) m = Mul(d, s) n = Mul(m, scale)"
            "e = Conv(n, pointwise, bias) y = Mul(e, scale)",
            1,
        ),
        ("d = Conv<pads=[2,0,1,1], strides=[2,1], group=48>(a, depthwise) y = Conv(d, pointwise, bias)", 1),
        ("d = Conv<pads=[1,1,1,1], group=48>(a, depthwise) z = Relu(d) y = Conv(z, pointwise)", 2),
        ("d = Conv<pads=[1,1,1,1], group=48>(a, depthwise) y = Conv<pads=[1,0,0,0]>(d, pointwise)", 2),
    ],
)
def test_nothing_large_is_held_between_depthwise_and_pointwise(nodes, steps, threads):
    model = model_of(f"a = Conv<pads=[1,1,1,1]>(x, w) {nodes}", "n, 48, 80, 70")
    x = np.random.default_rng(1).normal(size=(2, 48, 80, 70)).astype(np.float32)
    reference = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    session = compiler.load(compiler.compile(model), threads=threads)
    for found, wanted in zip(session.run({"x": x}).values(), reference, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert Counter(step.op for step in session.profile({"x": x}, runs=1))["Conv"] == 1 + steps


def test_no_image_is_moved_for_a_small_gain():
    model = model_of("y = Conv(x, u)", "1, 40, 8, 8")
    x = np.ones((1, 40, 8, 8), np.float32)
    assert moves(compiler.load(compiler.compile(model)), {"x": x}) == 0


def test_memory_is_counted_in_either_layout():
    model = model_of("a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) y = Conv<pads=[1,1,1,1]>(b, w)", "1, 48, 30, 30")
    x = np.ones((1, 48, 30, 30), np.float32)
    compiler.load(compiler.compile(model, Options(max_memory=8_000_000))).run({"x": x})
    with pytest.raises(compiler.RunError, match="max_memory leaves"):
        compiler.load(compiler.compile(model, Options(max_memory=50_000))).run({"x": x})


def test_errors_name_shapes_as_the_model_has_them():
    model = model_of("a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[2,1,1,1]>(x, w) y = Add(a, b)", "1, 48, h, 30")
    session = compiler.load(compiler.compile(model, Options(optimize=False)))
    with pytest.raises(compiler.RunError, match=r"\[1, 48, 30, 30\].*\[1, 48, 31, 30\].*in blocks") as error:
        session.run({"x": np.ones((1, 48, 30, 30), np.float32)})
    assert error.value.inputs == ["float32 [1, 48, 30, 30]", "float32 [1, 48, 31, 30]"]
