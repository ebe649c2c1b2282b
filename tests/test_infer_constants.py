"""Constants that the runtime refuses: `infer` refuses them where a plan states the sizes, and so does the compiler."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compiler import _runtime
from compiler.plan import PlanBuilder, ops
from compiler.plan.encode import Op
from compiler.plan.types import tensor
from compiler.plan.write import write
from tests.inferring import (
    CACHE,
    ONES,
    ROI_ALIGN,
    ROTARY,
    SCATTER,
    SCATTER_ND,
    STFT,
    array_of,
    infer,
    interpolate,
    type_of,
)

AXES_OF_3 = "f[2,3,4] - f[3]={2,2,2}"
DFT = ops.Dft(inverse=False, one_sided=False)
MEL = ops.MelWeightMatrix(dtype="float32")
RESHAPE = ops.Reshape(allow_zero=False)
UNPOOL = ops.MaxUnpool(kernel=[2], pads=[[0, 0]], strides=[2])
COL2IM = ops.Col2Im(dilations=ONES, pads=[[0, 0], [0, 0]], strides=ONES)
SUMS = ops.Reduce(function="Sum", keepdims=True, noop_with_empty_axes=False)
RNN = ops.Rnn(batch_first=False, directions=[ops.Direction(activations=["Tanh"], reversed=False)], hidden=4)
IN_PARTS = ops.SplitToSequence(axis=0, keep_axis=True)

CONSTANTS: list[tuple[Op, str, str]] = [
    (interpolate(), AXES_OF_3, "3-D resizing is not supported"),
    (interpolate(), "f[?,?,?] - f[3]={2,2,2}", "3-D resizing is not supported"),
    (interpolate(), "f[2,3,4] - - i[3]={1,2,3}", "3-D resizing is not supported"),
    (interpolate("TfCropAndResize", [0, 1, 2]), "f[2,3,4] f[6] f[3]={2,2,2}", "3-D resizing is not supported"),
    (interpolate(), "f[2,4] - f[2]={1,-1}", "-1.0 is not a scale"),
    (interpolate(), "f[?,4] - f[2]={inf,1}", "inf is not a scale"),
    (interpolate(), "f[2,0] - - i[2]={2,4}", "an axis of size 0 cannot be resized to 4"),
    (interpolate(), "f[9] - f[1]={0.001} i[1]={1}", "a scale of 0.001 leaves nothing of an axis of size 9"),
    (interpolate(), "f[2,4] - - i[2]={2,-4}", "[2, -4] is not a shape"),
    (ops.Split(axis=0), "f[7] i[1]={6}", "sizes [6] do not add up to an axis of size 7"),
    (ops.Split(axis=0), "f[?] i[1]={-1}", "[-1] is not a shape"),
    (ops.Slice(), "f[7,?] i[1]={0} i[1]={3} i[1]={2}", "axis 2 is out of range for a tensor of rank 2"),
    (ops.Slice(), "f[7,?] i[2] i[2] i[2]={0,-2}", "axis -2 is named twice"),
    (ops.Slice(), "f[7] i[1]={0} i[1]={3} i[1]={0} i[1]={0}", "the step of a slice is 0"),
    (ops.Slice(), "f[?] i[1] i[1] - i[1]={0}", "the step of a slice is 0"),
    (ops.Pad(mode="constant"), "f[3,?] i[4]={-5,0,0,0}", "an axis of size 3 cannot be padded with -5 and 0 elements"),
    (ops.Pad(mode="reflect"), "f[3] i[2]={-3,2}", "3 elements cropped by 3 and 0 leave nothing to repeat"),
    (ops.Pad(mode="edge"), "f[3] i[2] - i[1]={1}", "axis 1 is out of range for a tensor of rank 1"),
    (ops.CenterCropPad(), "f[2,?] i[2]={-1,3}", "[-1, 3] is not a shape"),
    (ops.Expand(), "f[3,?] i[2]={5,4}", "[3, ?] does not broadcast to [5, 4]"),
    (ops.Expand(), "f[3] i[1]={-1}", "[-1] is not a shape"),
    (ops.Tile(), "f[3,?] i[2]={-1,1}", "[-1, 1] is not a shape"),
    (RESHAPE, "f[3,4] i[2]={5,4}", "cannot view [3, 4] as [5, 4]"),
    (RESHAPE, "f[3,4] i[2]={5,-1}", "[3, 4] does not determine [5, -1]"),
    (RESHAPE, "f[3,?] i[2]={-1,-1}", "[3, ?] does not determine [-1, -1]"),
    (RESHAPE, "f[3,?] i[2]={-2,4}", "[-2, 4] is not a shape"),
    (RESHAPE, "f[3,?] i[3]={3,4,0}", "the 0 at 2 of [3, 4, 0] names no dimension of [3, ?]"),
    (ops.Squeeze(), "f[3,?] i[1]={0}", "axis 0 cannot be dropped: its size is not 1"),
    (ops.Unsqueeze(), "f[3] i[2]={1,1}", "axis 1 is named twice"),
    (UNPOOL, "f[1,1,2] i[1,1,2] i[3]={1,1,3}", "the output's shape [1, 1, 3] is smaller than [1, 1, 4]"),
    (ops.TopK(axis=1, largest=True), "f[?,4] i[1]={9}", "K is 9; axis 1 has 4 elements"),
    (ops.TopK(axis=0, largest=True), "f[?] i[1]={-1}", "K is -1; axis 0 has ? elements"),
    (IN_PARTS, "f[7] i[2]={3,3}", "sizes [3, 3] do not add up to an axis of size 7"),
    (IN_PARTS, "f[7] i[]={0}", "a sequence cannot be made of parts of size 0"),
    (COL2IM, "f[1,7,9] i[2]={4,4} i[2]={2,2}", "[1, 7, 9] does not hold the windows [3, 3] of kernel [2, 2]"),
    (COL2IM, "f[?,8,10] i[2]={4,4} i[2]={2,2}", "[?, 8, 10] does not hold the windows [3, 3] of kernel [2, 2]"),
    (DFT, "f[?,8,1] - i[]={2}", "the last axis holds real and imaginary parts"),
    (DFT, "f[?,8,1] i[]={0} i[]={1}", "the length of a transform must be at least 1"),
    (DFT, "f[?,8,1] i[]={-3} i[]={1}", "the length is -3, which is not a size"),
    (STFT, "f[1,8,1] i[]={2} - i[]={16}", "frames of 16 every 2 do not fit a signal of 8"),
    (STFT, "f[?,?,1] i[]={2} f[5] i[]={4}", "frames of 4 every 2 with a window of 5 do not fit a signal of ?"),
    (STFT, "f[1,8,1] i[]={0}", "frames of 8 every 0 do not fit a signal of 8"),
    (
        MEL,
        "i[]={4} i[]={16} i[]={9} f[]={0} f[]={8}",
        "frequencies from 0 to 8 Hz are not all below half the sample rate 9",
    ),
    (ops.Cumulative(exclusive=False, function="Sum", reverse=False), "f[3,?] i[]={2}", "axis 2 is out of range"),
    (SUMS, "f[3,?] i[1]={2}", "axis 2 is out of range for a tensor of rank 2"),
    (ops.OneHot(axis=0), "i[?] i[]={-2} f[2]", "depth is -2, which is not a size"),
    (ops.Range(), "i[]={0} i[]={5} i[]={0}", "a range from 0 to 5 in steps of 0 does not end"),
    (ops.Fill(), "i[1]={-1} f[1]", "[-1] is not a shape"),
    (
        ops.Gather(axis=-2),
        "f[3,?] i[2]={0,3}",
        "index 3 is out of range for axis 0 of size 3 (element 1 of the indices)",
    ),
    (ops.GatherElements(axis=1), "f[?,3] i[1,1]={-4}", "index -4 is out of range for axis 1 of size 3"),
    (ops.GatherNd(batch_dims=1), "f[1,3,?] i[1,1,1]={3}", "index 3 is out of range for axis 1 of size 3"),
    (SCATTER, "f[3] i[1]={-4} f[1]", "index -4 is out of range for axis 0 of size 3"),
    (SCATTER_ND, "f[?,3] i[1,2]={0,3} f[1]", "index 3 is out of range for axis 1 of size 3 (element 1 of the indices)"),
    (CACHE, "f[1,4,?] f[1,2,?] i[1]={3}", "index 3 is out of range for 2 rows in a cache of 4"),
    (ops.Binary(function="Div"), "i[2] i[2]={3,0}", "an integer is divided by zero (element 1 of the divisor)"),
    (ROI_ALIGN, "f[2,?,4,4] f[1,4] i[1]={2}", "image 2 is out of range for a batch of 2 (region 0)"),
    (ops.ReverseSequence(time_first=True), "f[3,1] i[1]={4}", "length 4 is out of range for sequences of 3 steps"),
    (RNN, "f[3,1,2] f[1,4,2] f[1,4,4] - n[1]={-1}", "length -1 is out of range for sequences of 3 steps"),
    (ROTARY, "f[1,?,1,4] f[2,2] f[2,2] i[1,1]={2}", "position 2 is out of range for caches of 2 rows"),
    (UNPOOL, "f[1,1,1] i[1,1,1]={2}", "index 2 is out of range for a tensor of shape [1, 1, 2]"),
    (ops.Compress(axis=0), "f[2,?] b[3]={0,1,1}", "the condition keeps row 2 of 2"),
    (ops.NonMaxSuppression(centered=False), "f[1,?,4] f[1,1,?] - f[]={2}", "the overlap 2 is not between 0 and 1"),
]
"""The refusals that follow from constant inputs, and not from types alone."""

SIZES: list[tuple[Op, str, str]] = [
    (interpolate(), "f[1,?,4] - f[3]={1,1,1.5}", "[1,?,6]"),
    (interpolate(axes=[2]), "f[1,n,4] - - i[1]={9}", "[1,n,9]"),
    (interpolate(), "f[?,4] - - i[2]={3,9}", "[3,9]"),
    (ops.Split(axis=1), "f[n,7] i[1]={7}", "[n,7]"),
    (ops.Slice(), "f[7,n,5] i[1]={-3} i[1]={9} i[1]={0}", "[3,n,5]"),
    (ops.Slice(), "f[n,7] i[2]={0,6} i[2]={2,-9} - i[2]={1,-2}", "[?,4]"),
    (ops.Pad(mode="constant"), "f[3,n,4] i[6]={1,0,0,1,0,-2}", "[5,n,2]"),
    (ops.Pad(mode="constant"), "f[3,n] i[2]={1,1} - i[1]={-1}", "[3,?]"),
    (ops.CenterCropPad(axes=[1]), "f[n,3] i[1]={5}", "[n,5]"),
    (ops.Expand(), "f[3,1,n,k] i[4]={1,5,1,2}", "[3,5,n,2]"),
    (ops.Tile(), "f[3,n,k,m] i[4]={2,1,0,2}", "[6,n,0,?]"),
    (RESHAPE, "f[n,4,6] i[3]={0,-1,2}", "[n,?,2]"),
    (RESHAPE, "f[2,4,6] i[3]={0,-1,3}", "[2,8,3]"),
    (ops.Squeeze(), "f[n,1,k] i[1]={1}", "[n,k]"),
    (ops.Unsqueeze(), "f[n,k] i[1]={-1}", "[n,k,1]"),
    (UNPOOL, "f[?,1,2] i[?,1,2] i[3]={1,1,5}", "[1,1,5]"),
    (ops.TopK(axis=0, largest=True), "f[n,4] i[1]={2}", "[2,4]"),
    (COL2IM, "f[n,8,9] i[2]={4,4} i[2]={2,2}", "[n,2,4,4]"),
    (DFT, "f[n,8,1] i[]={5} i[]={1}", "[n,5,2]"),
    (ops.Dft(axis=1, inverse=False, one_sided=True), "f[n,8,1]", "[n,5,2]"),
    (STFT, "f[n,8,1] i[]={2} - i[]={4}", "[n,3,4,2]"),
    (MEL, "i[]={3} i[]={16} i[]={99} f[]={0} f[]={8}", "[9,3]"),
    (SUMS, "f[n,3] i[1]={-1}", "[n,1]"),
    (ops.OneHot(axis=0), "i[n] i[]={3} f[2]", "[3,n]"),
    (ops.Range(), "i[]={1} i[]={8} i[]={2}", "[4]"),
    (ops.Fill(), "i[2]={2,3} f[1]", "[2,3]"),
]
"""The sizes of results that follow from constant inputs."""


@pytest.mark.parametrize(("op", "inputs", "message"), CONSTANTS)
def test_constants_that_do_not_fit_are_refused(op: Op, inputs: str, message: str) -> None:
    with pytest.raises(_runtime.OpError) as error:
        infer(op, inputs)
    assert message in error.value.args[0]


@pytest.mark.parametrize(("op", "inputs", "message"), CONSTANTS)
def test_numbers_that_are_not_constant_fit(op: Op, inputs: str, message: str) -> None:
    types = " ".join(text.partition("=")[0] for text in inputs.split())
    assert len(json.loads(infer(op, types))) == 1
    assert len(json.loads(infer(op, inputs, known=False))) == 1


@pytest.mark.parametrize(("op", "inputs", "message"), CONSTANTS)
def test_a_run_refuses_them_too(op: Op, inputs: str, message: str) -> None:
    """The numbers are inputs of the run instead of constants, and unknown sizes are 1."""
    texts = [text.replace("?", "1") for text in inputs.split()]
    builder = PlanBuilder(lambda graph, builder: [])
    values, given = [], {}
    for name, text in zip("abcde", texts, strict=False):
        kind = type_of(text.partition("=")[0])
        values.append(
            None if kind is None else builder.input(name, tensor(kind.value.dtype, [None] * len(kind.value.shape)))
        )
        if kind is not None:
            array = array_of(text)
            given[name] = np.zeros(kind.value.shape, kind.value.dtype) if array is None else array
    result = builder(op, *values)
    result.name = "y"
    session = _runtime.Session(b"".join(write(builder.finish([result]), builder.pool)), "cpu", 1)
    with pytest.raises(_runtime.RunError) as error:
        session.run(given)
    assert message.replace("?", "1") in error.value.args[4]


def test_a_plan_holds_no_index_out_of_range_except_in_blocks() -> None:
    """The step of a block may never run, so neither the compiler nor the check of a plan refuses it."""
    block = PlanBuilder(lambda graph, builder: []).inner()
    result = block(ops.Gather(axis=0), block.input("x", tensor("float32", [3])), block.constant(np.array([3])))
    result.name = "y"
    said = "step 0 Gather: index 3 is out of range for axis 0 of size 3 (element 0 of the indices)"
    assert _runtime.verify(b"".join(write(block.finish([result]), block.pool))) == [said]


@pytest.mark.parametrize(("op", "inputs", "shape"), SIZES)
def test_sizes_follow_from_constants(op: Op, inputs: str, shape: str) -> None:
    (kind,) = json.loads(infer(op, inputs))
    assert type_of(f"f{shape}") == tensor("float32", kind["Tensor"]["shape"])
