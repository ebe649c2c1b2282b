"""Shapes that the runtime refuses: `infer` refuses the shapes that a plan states, and so does the compiler."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from compiler import _runtime
from compiler.plan import ops
from compiler.plan.encode import Op, canonical
from tests.inferring import (
    CACHE,
    ONES,
    ROI_ALIGN,
    ROTARY,
    SCATTER,
    SCATTER_ND,
    STFT,
    asked,
    infer,
    interpolate,
    type_of,
)

PADS = ops.Padding.Explicit([[0, 0], [0, 0]])
CONV = ops.Conv(strides=ONES, dilations=ONES, groups=1, pads=PADS)
CONV_INTEGER = ops.ConvInteger(strides=ONES, dilations=ONES, groups=1, pads=PADS)
Q_CONV = ops.QLinearConv(strides=ONES, dilations=ONES, groups=1, pads=PADS, low=0, high=255)
Q_MATMUL = ops.QLinearMatMul(low=0, high=255)
Q_ADD = ops.QLinearBinary(function="Add", low=0, high=255)
DEFORM = ops.DeformConv(strides=ONES, dilations=ONES, groups=1, offset_groups=1, pads=[[0, 0], [0, 0]])
GRID = ops.GridSample(align_corners=False, mode="Linear", outside="Zeros")
ATTENTION = ops.Attention(guard="Unseeing", is_causal=False, scores="Product")
TWO_HEADS = ops.Attention(guard="Unseeing", is_causal=False, scores="Product", heads=2, kv_heads=2)


def quantize(axis: int = 1, block: int = 0) -> ops.QuantizeLinear:
    return ops.QuantizeLinear(axis=axis, block=block, precision="float32", saturate=True, to="uint8")


CASES: list[tuple[Op, str, str]] = [
    (ops.Cumulative(exclusive=False, function="Sum", reverse=False), "f[3] i[2]", "axis has shape [2]"),
    (ops.GatherElements(axis=0), "f[2,2] i[1,3]", "indices of shape [1, 3] do not fit a tensor of shape [2, 2]"),
    (SCATTER, "f[2,2] i[1,3] f[1,3]", "indices of shape [1, 3] do not fit"),
    (SCATTER, "f[2,2] i[1,2] f[2,2]", "updates of shape [2, 2] do not fit indices of shape [1, 2]"),
    (ops.GatherNd(batch_dims=1), "f[2,3,4] i[3,1]", "[3] vectors of 1 indices do not fit"),
    (ops.GatherNd(batch_dims=1), "f[2,3,4] i[2,3]", "[2] vectors of 3 indices do not fit"),
    (SCATTER_ND, "f[2,3] i[4,3] f[4]", "[4] vectors of 3 indices do not fit"),
    (SCATTER_ND, "f[2,3] i[4,1] f[4,2]", "updates of shape [4, 2] are not [4] parts of shape [3]"),
    (CACHE, "f[2,4,3] f[2,5,3]", "an update of shape [2, 5, 3] does not fit a cache of shape [2, 4, 3]"),
    (CACHE, "f[2,4,3] f[1,4,3]", "an update of shape [1, 4, 3] does not fit"),
    (CACHE, "f[2,4,3] f[2,1,3] i[3]", "3 write_indices do not fit"),
    (ops.MatMulInteger(), "u[3,4] u[4,5] u[2,1]", "[2, 1] does not broadcast to [3, 4]"),
    (ops.MatMulInteger(), "u[3,4] u[4,5] u[] u[4]", "[4] does not broadcast to [4, 5]"),
    (CONV_INTEGER, "u[1,2,5,5] u[6,2,3,3] u[] u[4]", "the weights' zero point has shape [4]"),
    (CONV_INTEGER, "u[1,2,5,5] u[6,2,3,3] u[2,1]", "[2, 1] does not broadcast"),
    (CONV_INTEGER, "u[1,2,5,5] u[6,2,3,3] u[] u[] n[5]", "B has shape [5], not [6]"),
    (
        ops.ConvInteger(strides=ONES, dilations=ONES, groups=2, pads=PADS),
        "u[?,4,5,5] u[5,2,3,3]",
        "weights of shape [5, 2, 3, 3] in 2 groups",
    ),
    (CONV, "f[?,3,5,5] f[6,2,3,3]", "do not fit [3] channels"),
    (CONV, "f[?,2,5,5] f[6,2,3,3] f[5]", "B has shape [5], not [6]"),
    (ops.Requantize(), "n[2,3] f[] f[] f[2] u[]", "the result's scale has shape [2]"),
    (ops.Requantize(), "n[2,3] f[] f[] f[] u[2]", "the result's zero point has shape [2]"),
    (ops.Requantize(), "n[2,3] f[2] f[] f[] u[]", "[2] does not broadcast to [2, 3]"),
    (Q_CONV, "u[1,5,5,2] u[6,2,3,3] f[] u[2] u[]", "a zero point has shape [2]"),
    (Q_CONV, "u[1,5,5,2] u[6,2,3,3] f[] u[] u[4]", "the weights' zero point has shape [4]"),
    (Q_CONV, "u[1,5,5,2] u[6,2,3,3] f[4] u[] u[]", "the scale has shape [4]"),
    (Q_CONV, "u[1,5,5,2] u[6,2,3,3] f[] u[] u[] u[2]", "a zero point has shape [2]"),
    (Q_CONV, "u[1,5,5,2] u[6,2,3,3] f[] u[] u[] u[] n[5]", "B has shape [5]"),
    (Q_MATMUL, "u[3,4] u[4,5] f[3] u[] u[]", "the scale has shape [3]"),
    (Q_MATMUL, "u[3,4] u[4,5] f[] u[] u[3]", "the weights' zero point has shape [3]"),
    (Q_MATMUL, "u[3,4] u[4,5] f[] u[] u[] - n[3]", "B has shape [3], not [5]"),
    (Q_ADD, "u[2] u[2] f[2] u[] f[] u[] f[] u[]", "input 2, a scale, has shape [2]"),
    (Q_ADD, "u[2] u[2] f[] u[] f[] u[2] f[] u[]", "a zero point has shape [2]"),
    (ops.LookUp(), "u[2] u[255]", "the table has shape [255]"),
    (ops.QLinearGlobalAveragePool(), "u[2] f[] u[] u[]", "images of shape [2] have no mean"),
    (ops.QLinearGlobalAveragePool(), "u[?,0,3] f[] u[] u[]", "images of shape [?, 0, 3] have no mean"),
    (quantize(), "f[2,3] f[3] u[2]", "scales of shape [3] and zero points of shape [2]"),
    (quantize(), "f[?,3] f[2]", "scales of shape [2] do not fit [?, 3] along axis 1"),
    (quantize(block=2), "f[2,3] f[2,3]", "in blocks of 2"),
    (ops.DequantizeLinear(axis=5, block=0, to="float32"), "u[2,3,4] f[3]", "axis 5 is out of range"),
    (DEFORM, "f[1,2,5,5] f[4,2,3,3] f[1,17,3,3]", "do not fit each other"),
    (DEFORM, "f[1,2,5,5] f[4,2,3,3] f[1,18,3,3] f[3]", "do not fit each other"),
    (DEFORM, "f[1,2,2,2] f[4,2,3,3] f[1,18,3,3]", "a window of 3 with stride 1 does not fit"),
    (ops.Split(axis=0), "f[7] i[3]", "there are 3 sizes for 1 parts"),
    (ops.Slice(), "f[7] i[1] i[2]", "starts, ends, axes and steps must have one length, found [1, 2, ?, ?]"),
    (ops.Slice(), "f[7] i[2] i[2]", "a slice of 2 axes does not fit a tensor of rank 1"),
    (ops.Slice(), "f[7] i[1,1] i[1]", "a list of sizes or axes has one dimension"),
    (ops.Pad(mode="constant"), "f[2,3] i[3]", "3 pads do not give one before and one after each of 2 axes"),
    (ops.Pad(mode="constant"), "f[2,3] i[4] - i[1]", "4 pads do not give one before and one after each of 1 axes"),
    (ops.Pad(mode="constant"), "f[2,3] i[4] f[2]", "the value to pad with has shape [2]"),
    (ops.Pad(mode="constant"), "f[2] i[4] - i[2]", "2 axes are padded, and X has 1"),
    (
        ops.Reduce(function="Sum", keepdims=True, noop_with_empty_axes=False),
        "f[3] i[2]",
        "2 axes are named, and X has 1",
    ),
    (ops.Cumulative(function="Sum", exclusive=False, reverse=False), "f[] i[]", "X has no axes"),
    (ops.Dft(axis=None, inverse=False, one_sided=False), "f[2] - i[]", "a signal has an axis before its real"),
    (ops.BatchNorm(epsilon=0.0), "f[] f[3] f[3] f[3] f[3]", "X has no channels"),
    (ops.ConcatFromSequence(axis=2, new_axis=False), "(f[2,3])", "axis 2 is out of range for a tensor of rank 2"),
    (ops.Squeeze(), "f[5,?] i[2]", "X of shape [5, ?] has too few axes of size 1 to drop"),
    (ops.CenterCropPad(), "f[2,3] i[3]", "3 sizes do not fit 2 axes"),
    (ops.Tile(), "f[2,3] i[3]", "3 repeats do not fit 2 axes"),
    (ops.Squeeze(), "f[1] i[2]", "a tensor of rank 1 has no 2 axes to drop"),
    (ops.ReverseSequence(time_first=False), "f[4,5] i[3]", "3 lengths do not fit X of shape [4, 5]"),
    (GRID, "f[2,1,4,4] f[3,2,2,2]", "X has shape [2, 1, 4, 4] and the grid [3, 2, 2, 2]"),
    (ops.LayerNorm(axis=-1, epsilon=0.0), "f[?,4] f[5]", "[5] does not broadcast to [4]"),
    (ops.LayerNorm(axis=-1, epsilon=0.0), "f[3,4] f[4] f[2]", "[2] does not broadcast to [4]"),
    (ops.RmsNorm(axis=-1, epsilon=0.0), "f[3,4] f[5]", "[5] does not broadcast to [4]"),
    (ops.GroupNorm(epsilon=0.0, groups=2), "f[1,4,2] f[3] f[4]", "3 values do not fit 4 channels in 2 groups"),
    (ops.Einsum(equation="ij,jk->ik"), "f[2,3] f[4,5]", "an axis has sizes 3 and 4"),
    (ops.OneHot(axis=0), "i[2] i[2] f[2]", "depth has shape [2]"),
    (ops.OneHot(axis=0), "i[2] i[] f[3]", "values have shape [3]; they must be two numbers, [off, on]"),
    (ops.Range(), "i[] i[2] i[]", "limit has shape [2]"),
    (ops.Fill(), "i[2] f[2]", "the value to fill with has shape [2]"),
    (
        ops.MaxUnpool(kernel=[2], pads=[[0, 0]], strides=[2]),
        "f[1,1,3] i[1,1,2]",
        "indices of shape [1, 1, 2] do not fit X of shape [1, 1, 3]",
    ),
    (ops.Trilu(upper=True), "f[2,2] i[2]", "k has shape [2]"),
    (ops.TopK(axis=0, largest=True), "f[4] i[2]", "K has shape [2]"),
    (
        ops.ArgReduce(axis=0, function="ArgMax", keepdims=False, select_last_index=False),
        "f[0,4]",
        "axis 0 of [0, 4] has no elements to choose from",
    ),
    (ops.MelWeightMatrix(dtype="float32"), "i[] i[2] i[] f[] f[]", "dft_length has shape [2]"),
    (STFT, "f[1,8,1] i[2]", "the step has shape [2]"),
    (STFT, "f[?,8,1] i[] f[16]", "frames of 16 every ? with a window of 16 do not fit a signal of 8"),
    (ops.Dft(inverse=False, one_sided=False), "f[8,1] - i[2]", "axis has shape [2]"),
    (ops.Dft(inverse=False, one_sided=False, axis=0), "f[8,1] i[2]", "the length has shape [2]"),
    (ops.StringNormalizer(case="keep", ignore_case=False, stop_words=[]), "s[2,3]", "X has shape [2, 3]"),
    (ops.SequenceAt(), "(f[2]) i[2]", "the position has shape [2]"),
    (ops.SequenceInsert(), "(f[2]) f[2] i[2]", "the position has shape [2]"),
    (ops.SequenceErase(), "(f[2]) i[2]", "the position has shape [2]"),
    (ops.NonMaxSuppression(centered=False), "f[1,6,5] f[1,1,6]", "boxes have shape [1, 6, 5]"),
    (ops.NonMaxSuppression(centered=False), "f[1,6,4] f[1,1,5]", "boxes have shape [1, 6, 4] and scores [1, 1, 5]"),
    (ROI_ALIGN, "f[1,1,4,4] f[2,5] i[2]", "rois [2, 5]"),
    (ROI_ALIGN, "f[1,1,4,4] f[2,4] i[3]", "3 image numbers do not fit 2 regions"),
    (ops.MaxRoiPool(height=2, scale=1.0, width=2), "f[1,1,4,4] f[2,4]", "rois [2, 4]"),
    (ATTENTION, "f[?,2,3,4] f[?,2,3,5] f[?,2,3,4]", "do not fit one another"),
    (ATTENTION, "f[1,3,3,4] f[1,2,3,4] f[1,2,3,4]", "do not fit one another"),
    (TWO_HEADS, "f[?,3,5] f[?,3,4] f[?,3,4]", "a tensor of shape [?, 3, 5] does not hold 2 heads"),
    (ATTENTION, "f[1,2,3,4] f[1,2,3,4] f[1,2,3,4] f[7,3]", "a mask of shape [7, 3] does not broadcast to [1, 2, 3]"),
    (
        ATTENTION,
        "f[1,2,3,4] f[1,2,3,4] f[1,2,3,4] - f[1,1,2,4] f[1,2,2,4]",
        "a past key of shape [1, 1, 2, 4] does not fit",
    ),
    (ATTENTION, "f[1,2,3,4] f[1,2,3,4] f[1,2,3,4] - - - i[2]", "nonpad_kv_seqlen has shape [2]"),
    (ROTARY, "f[1,2,3,5] f[1,3,2] f[1,3,2]", "[5] elements of vectors of [5] cannot be rotated in pairs"),
    (ROTARY, "f[?,2,3,4] f[1,3,3] f[1,3,3]", "caches of shapes [1, 3, 3] and [1, 3, 3] do not fit"),
    (ROTARY, "f[1,2,3,4] f[9,2] f[9,2] i[1,4]", "and positions of shape [1, 4]"),
    (interpolate(), "f[1,1,4] - f[2]", "2 scales do not fit 3 axes"),
    (interpolate(axes=[2]), "f[1,1,4] - - i[3]", "3 sizes do not fit 1 axes"),
    (interpolate("TfCropAndResize"), "f[1,1,4] f[4] f[3]", "4 bounds of the region do not fit 3 axes"),
    (ops.LabelEncoder(), "i[2] i[3] f[2] f[1]", "3 keys do not fit 2 values"),
    (ops.LabelEncoder(), "i[2] i[3] f[3] f[2]", "the default has shape [2]"),
]

STATED: list[tuple[Op, str, str, str | None]] = [
    (interpolate(), "f[2,3,4] - f[3]", "f[4,6,8]", "3-D resizing is not supported"),
    (interpolate(), "f[2,3,4] - f[3]", "f[2,6,8]", None),
    (interpolate(), "f[2,3,4] - f[3]", "f[?,6,8]", None),
    (interpolate(), "f[2,3,?] - f[3]={1,1,2}", "f[2,3,8]", None),
    (interpolate(axes=[1, 2]), "f[2,3,4] - f[2]", "f[4,6,8]", "output 0 is declared float32 [4, 6, 8]"),
    (ops.Unary(function="Relu"), "f[2]", "f[3]", "output 0 is declared float32 [3], and computed float32 [2]"),
    (ops.Unary(function="Relu"), "f[2]", "-", None),
]
"""Types that a plan states for a step's results, and the error; `None` for correct types."""

NAMES = [f"{type(op).__name__}-{inputs}" for op, inputs, _ in CASES]

OF_RANKS = {
    "images of shape [2] have no mean",
    "a list of sizes or axes has one dimension",
    "X has no axes",
    "a signal has an axis before its real",
    "X has no channels",
    "axis 2 is out of range for a tensor of rank 2",
}
"""The error messages that depend on ranks alone."""


@pytest.mark.parametrize(("op", "inputs", "message"), CASES, ids=NAMES)
def test_shapes_that_do_not_fit_are_refused(op: Op, inputs: str, message: str) -> None:
    with pytest.raises(_runtime.OpError) as error:
        infer(op, inputs, known=True)
    assert message in str(error.value)


@pytest.mark.parametrize(("op", "inputs", "message"), CASES, ids=NAMES)
def test_unknown_sizes_fit(op: Op, inputs: str, message: str) -> None:
    if message in OF_RANKS:
        with pytest.raises(_runtime.OpError):
            infer(op, inputs, known=False)
    else:
        assert len(json.loads(infer(op, inputs, known=False))) == 1


@pytest.mark.parametrize(("op", "inputs", "outputs", "message"), STATED)
def test_stated_types_are_checked(op: Op, inputs: str, outputs: str, message: str | None) -> None:
    types = canonical([type_of(text) for text in outputs.split()])
    with pytest.raises(_runtime.OpError, match=re.escape(message)) if message else contextlib.nullcontext():
        _runtime.check(*asked(op, inputs), types)


@pytest.mark.parametrize("kernel", [[2, 2, 2], []])
def test_a_pooling_window_is_named_by_its_kernel(kernel: list[int]) -> None:
    window = ops.PoolWindow(ceil=False, dilations=[], kernel=kernel, padding=PADS, strides=[])
    with pytest.raises(_runtime.OpError) as error:
        infer(ops.MaxPool(column_major=False, window=window), "f[1,1,4,4]", known=True)
    assert str(error.value) == f"a pooling window must have one or two axes; the kernel {kernel} has {len(kernel)}"
