import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from tests.scratch.row import IMAGE, IMAGES, rows

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def normal(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def positive(*shape, dtype="float32"):
    return np.random.default_rng(9).uniform(0.5, 2, shape).astype(dtype)


def batch_inputs(x):
    channels = x.shape[1]
    return [x, normal(channels, seed=1), normal(channels, seed=2), normal(channels, seed=3), positive(channels)]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 4, 4)])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization(check_node, shape, opset):
    inputs = batch_inputs(normal(*shape))
    check_node("BatchNormalization", inputs, opset=opset, attributes={"epsilon": 1e-3}, **CLOSE)


def test_batch_normalization_of_single_activations(check_node):
    shape = (3, 4)
    inputs = [normal(2, *shape), normal(*shape), normal(*shape), normal(*shape), positive(*shape)]
    x, scale, bias, mean, var = inputs
    expected = (x - mean) / np.sqrt(var + 1e-5) * scale + bias
    check_node("BatchNormalization", inputs, opset=7, attributes={"spatial": 0}, expected=[expected], **CLOSE)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("spatial", "scale"), [(0, "2"), (1, "2, 3, 4")])
def test_batch_normalization_whose_scale_is_not_as_spatial_says(spatial, scale, optimize):
    given = ", ".join(f"float[{scale}] {name}" for name in ("s", "b", "m", "v"))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 8]> g (float[1, 2, 3, 4] x, {given}) => (float[1, 2, 3, 4] y) {{
            y = BatchNormalization<spatial = {spatial}>(x, s, b, m, v)
        }}"""
    )
    with pytest.raises(compiler.CompileError, match=f"with spatial {spatial} has {3 - 2 * spatial} dimensions"):
        compiler.compile(model, compiler.Options(optimize=optimize))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("count", [1, 6])
def test_batch_normalization_of_another_number_of_channels(count, optimize):
    given = ", ".join(f"float[{count}] {name} = {{{', '.join(['1'] * count)}}}" for name in ("s", "b", "m", "v"))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[1, 3, 4] x) => (float[1, 3, 4] y) <{given}> {{
            y = BatchNormalization(x, s, b, m, v)
        }}"""
    )
    with pytest.raises(compiler.CompileError, match=f"scale has {count} elements for 3 channels"):
        compiler.compile(model, compiler.Options(optimize=optimize))


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (1, 3, 4, 5)])
def test_batch_normalization_in_training_mode(check_node, shape):
    inputs = batch_inputs(normal(*shape, seed=5))
    x, scale, bias, mean, var = (value.astype(np.float64) for value in inputs)
    axes, channels = (0, *range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    new_mean, new_var = x.mean(axes), x.var(axes)
    scale, bias, center, width = (each.reshape(channels) for each in (scale, bias, new_mean, new_var))
    y = (x - center) / np.sqrt(width + 1e-3) * scale + bias
    expected = [y, mean * 0.75 + new_mean * 0.25, var * 0.75 + new_var * 0.25]
    attributes = {"training_mode": 1, "epsilon": 1e-3, "momentum": 0.75}
    given = {"opset": 15, "attributes": attributes, **CLOSE}
    check_node(
        "BatchNormalization", inputs, outputs=3, expected=[each.astype(np.float32) for each in expected], **given
    )
    check_node("BatchNormalization", inputs, expected=[y.astype(np.float32)], **given)
    last = [expected[0].astype(np.float32), expected[2].astype(np.float32)]
    check_node("BatchNormalization", inputs, outputs=[True, False, True], expected=last, **given)


def test_batch_normalization_in_half_precision(check_node):
    x, *given = batch_inputs(normal(2, 3, 4))
    scale, bias, mean, var = (value[:, None] for value in given)
    x = x.astype(np.float16)
    expected = ((x - mean) / np.sqrt(var + 1e-5) * scale + bias).astype(np.float16)
    check_node("BatchNormalization", [x, *given], opset=15, rtol=1e-3, atol=1e-3, expected=[expected])


def refusal(node_model, op_type, inputs, **arguments):
    with pytest.raises(compiler.CompileError) as caught:
        compiler.compile(node_model(op_type, inputs, **arguments))
    return str(caught.value)


def test_refusals(node_model):
    inputs = batch_inputs(normal(1, 2, 3, 3, 3))
    assert "3-D" in refusal(node_model, "BatchNormalization", inputs, opset=15)
    assert "3-D" in refusal(node_model, "InstanceNormalization", inputs[:3], opset=22)
    groups = {"num_groups": 3}
    message = refusal(
        node_model, "GroupNormalization", [normal(1, 4, 2), normal(4), normal(4)], opset=21, attributes=groups
    )
    assert "3 groups" in message


@pytest.mark.parametrize("shape", [(2, 3, 50), (2, 3, 8, 9)])
@pytest.mark.parametrize("opset", [7, 22])
def test_instance_normalization(check_node, shape, opset):
    if opset == 22:
        x, scale, bias = normal(*shape), normal(3), normal(3)
        flat = x.reshape(2, 3, -1).astype(np.float64)
        flat = (flat - flat.mean(2, keepdims=True)) / np.sqrt(flat.var(2, keepdims=True) + 1e-5)
        expected = (flat * scale[:, None] + bias[:, None]).reshape(shape).astype(np.float32)
        check_node("InstanceNormalization", [x, scale, bias], opset=22, expected=[expected], **CLOSE)
    else:
        check_node("InstanceNormalization", [normal(*shape), normal(3), normal(3)], opset=opset, **CLOSE)


@pytest.mark.parametrize(("opset", "scales"), [(18, 2), (21, 6)])
def test_group_normalization(check_node, opset, scales):
    inputs = [normal(2, 6, 4, 5), normal(scales), normal(scales)]
    attributes = {"num_groups": 2, "epsilon": 1e-3}
    check_node("GroupNormalization", inputs, opset=opset, attributes=attributes, **CLOSE)


@pytest.mark.parametrize("axis", [-1, 1, -3, 2])
def test_layer_normalization(check_node, axis):
    shape = (2, 3, 4)
    x, scale = normal(*shape) + 3, normal(*shape[axis:])
    attributes = {"axis": axis, "epsilon": 1e-3}
    check_node("LayerNormalization", [x, scale], opset=17, attributes=attributes, **CLOSE)
    inputs = [x, scale, normal(*shape[axis:], seed=5)]
    check_node("LayerNormalization", inputs, opset=17, attributes=attributes, outputs=3, **CLOSE)


def test_layer_normalization_far_from_zero(check_node):
    x = normal(4, 768) + 1000
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    inputs = [x, np.ones(768, np.float32)]
    check_node("LayerNormalization", inputs, opset=17, rtol=0, atol=1e-3, expected=[expected.astype(np.float32)])


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("scale_shape", [(4,), (3, 4), (1,), (2, 1, 4)])
def test_rms_normalization(check_node, axis, scale_shape):
    x, scale = normal(2, 3, 4), normal(*scale_shape)
    axes = (2,) if axis == -1 else (1, 2)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(axes, keepdims=True) + 1e-5) * scale
    expected = [expected.astype(np.float32)]
    check_node("RMSNormalization", [x, scale], opset=23, attributes={"axis": axis}, expected=expected, **CLOSE)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(check_node, size):
    attributes = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    check_node("LRN", [normal(2, 6, 3, 4)], opset=13, attributes=attributes, **CLOSE)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(check_node, p, axis):
    x = normal(3, 4, 5)
    x[:, 0] = x[0] = x[..., 1] = 0
    check_node("LpNormalization", [x], opset=7, attributes={"p": p, "axis": axis}, **CLOSE)
    check_node("LpNormalization", [x.astype(np.float64)], opset=22, attributes={"p": p, "axis": axis}, **CLOSE)


def test_lp_normalization_in_half_precision(check_node):
    x = np.float16([[30000, 40000, 0], [3, -4, 0]])
    expected = [np.float16([[0.6, 0.8, 0], [0.6, -0.8, 0]])]
    check_node("LpNormalization", [x], opset=22, expected=expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize("opset", [9, 13])
def test_mean_variance_normalization(check_node, opset):
    check_node("MeanVarianceNormalization", [normal(2, 3, 4, 5)], opset=opset, rtol=1e-5, atol=1e-5)
    check_node(
        "MeanVarianceNormalization",
        [normal(2, 3, 4, 5)],
        opset=opset,
        attributes={"axes": [1, 2]},
        rtol=1e-4,
        atol=1e-4,
    )


CHANNELS = "T[c] a, T[c] b"

SCRATCH = [
    *rows("float float16", f"{IMAGES}, {CHANNELS}, T[c] d, T[c] e", "y = BatchNormalization(x, a, b, d, e)", **IMAGE),
    *rows("float float16", f"{IMAGES}, {CHANNELS}", "y = GroupNormalization<num_groups = 4>(x, a, b)", **IMAGE),
    *rows("float float16", f"{IMAGES}, {CHANNELS}", "y = InstanceNormalization(x, a, b)", **IMAGE),
    *rows("float float16", IMAGES, "y = OP(x)", "LRN<size=5> LpNormalization", **IMAGE),
    *rows("float", IMAGES, "y = MeanVarianceNormalization(x)", **IMAGE),
    *rows("float float16", "T[n, m] x, T[m] a, T[m] b", "y, c, d = LayerNormalization(x, a, b)"),
    *rows("float", "T[n, m] x, T[n, m] a", "y, b, c = LayerNormalization<axis = 0>(x, a)"),
    *rows("float float16", "T[n, m] x, T[m] a", "y = RMSNormalization(x, a)"),
    *rows("float", "float16[n, m] x, float[m] a", "y = RMSNormalization(x, a)"),
]
