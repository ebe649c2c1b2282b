"""DeformConv against the reference evaluator of the onnx package, and against torchvision's formula."""

import ml_dtypes
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import compiler
from tests.scratch.row import rows

RANDOM = np.random.default_rng(9)


def inputs_of(groups=1, offset_groups=1, strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), *, bias=True, mask=True):
    x = RANDOM.standard_normal((2, 4, 7, 6)).astype(np.float32)
    w = RANDOM.standard_normal((6, 4 // groups, 3, 2)).astype(np.float32)
    extent = [(kernel - 1) * dilation + 1 for kernel, dilation in zip((3, 2), dilations, strict=True)]
    size = [(x.shape[2 + i] + pads[i] + pads[2 + i] - extent[i]) // strides[i] + 1 for i in range(2)]
    offset = RANDOM.uniform(-2.5, 2.5, (2, offset_groups * 12, *size)).astype(np.float32)
    return [
        x,
        w,
        offset,
        RANDOM.standard_normal(6).astype(np.float32) if bias else None,
        RANDOM.uniform(0, 1, (2, offset_groups * 6, *size)).astype(np.float32) if mask else None,
    ]


CASES = [
    {},
    {"pads": (1, 2, 0, 1)},
    {"strides": (2, 1), "dilations": (1, 2)},
    {"groups": 2, "offset_groups": 2, "pads": (1, 1, 1, 1)},
    {"groups": 1, "offset_groups": 4},
    {"groups": 2, "offset_groups": 1, "strides": (2, 2)},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("bias", "mask"), [(True, True), (True, False), (False, True), (False, False)])
def test_against_the_formula(check_node, case, bias, mask):
    inputs = inputs_of(**case, bias=bias, mask=mask)
    attributes = {name: list(value) for name, value in case.items() if name in ("strides", "dilations", "pads")}
    attributes |= {"group": case.get("groups", 1), "offset_group": case.get("offset_groups", 1)}
    expected = [formula(inputs, **case)]
    while inputs[-1] is None:
        inputs.pop()
    check_node("DeformConv", inputs, opset=19, attributes=attributes, expected=expected, rtol=1e-5, atol=1e-5)


def formula(inputs, groups=1, offset_groups=1, strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0)):
    x, w, offset, bias, mask = (None if array is None else array.astype(np.float64) for array in inputs)
    (batch, channels), (outputs, depth, high, wide) = x.shape[:2], w.shape
    rows, columns = offset.shape[2:]
    y = np.zeros((batch, outputs, rows, columns))
    for n, o, row, column, c, i, j in np.ndindex(batch, outputs, rows, columns, depth, high, wide):
        channel = o // (outputs // groups) * depth + c
        tap = channel // (channels // offset_groups) * high * wide + i * wide + j
        down = row * strides[0] + i * dilations[0] - pads[0] + offset[n, 2 * tap, row, column]
        across = column * strides[1] + j * dilations[1] - pads[1] + offset[n, 2 * tap + 1, row, column]
        value = w[o, c, i, j] * bilinear(x[n, channel], down, across)
        y[n, o, row, column] += value if mask is None else value * mask[n, tap, row, column]
    return (y if bias is None else y + bias[:, None, None]).astype(np.float32)


def bilinear(plane, down, across):
    total, (top, left) = 0.0, (int(np.floor(down)), int(np.floor(across)))
    for row, column in [(top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)]:
        if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
            total += plane[row, column] * (1 - abs(down - row)) * (1 - abs(across - column))
    return total


def test_against_the_reference_evaluator(check_node, node_model):
    inputs = inputs_of(pads=(1, 1, 1, 1))
    attributes = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 2]}
    model = node_model("DeformConv", inputs, opset=22, attributes=attributes)
    model.graph.output[0].type.tensor_type.elem_type = 1
    expected = ReferenceEvaluator(model).run(None, {f"x{i}": array for i, array in enumerate(inputs)})
    check_node("DeformConv", inputs, opset=22, attributes=attributes, expected=expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-6), (np.float16, 1e-2), (ml_dtypes.bfloat16, 5e-2)])
def test_dtypes(check_node, dtype, tolerance):
    inputs = [array.astype(dtype) for array in inputs_of()]
    expected = [formula(inputs).astype(dtype)]
    check_node("DeformConv", inputs, opset=22, expected=expected, rtol=tolerance, atol=tolerance)


def test_refusals(node_model):
    inputs = inputs_of()
    for attributes, message in [({"pads": [1, 1]}, "pads"), ({"kernel_shape": [3, 3]}, "kernel_shape")]:
        with pytest.raises(compiler.CompileError, match=message):
            compiler.compile(node_model("DeformConv", inputs, opset=22, attributes=attributes))
    volume = [np.zeros((1, 1, 3, 3, 3), np.float32), np.zeros((1, 1, 2, 2, 2), np.float32)]
    volume.append(np.zeros((1, 24, 2, 2, 2), np.float32))
    with pytest.raises(compiler.CompileError, match="3-D deformable convolution"):
        compiler.compile(node_model("DeformConv", volume, opset=22))


SCRATCH = [
    *rows(
        "float",
        "T[1, 16, n, m] x, T[1, 18, n, m] d, T[16, 16, 3, 3] w",
        "y = DeformConv<pads = [1, 1, 1, 1]>(x, w, d)",
        n=200,
        m=200,
    ),
]
