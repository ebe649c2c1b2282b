"""Values that a GPU's kernel does not accept: the run fails with the same sentence as on the CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx.parser
import pytest

import compiler


class Case(NamedTuple):
    """A graph, values for its inputs, and the message of both devices about the first wrong value."""

    graph: str
    inputs: dict[str, Any]
    message: str
    opset: int = 20


def floats(*dims: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(dims), dtype=np.float32).reshape(dims)


LAYER = "(float[s, 2, 3] x, float[1, {0}, 3] w, float[1, {0}, 4] r, int32[2] n) => (float[a, b, c, d] y) {{ y = {1}(x, w, r, , n) }}"  # noqa: E501


def layer(op: str, rows: int, lengths: list[int], message: str) -> Case:
    weights = {"w": floats(1, rows, 3) / 100, "r": floats(1, rows, 4) / 100}
    graph = LAYER.format(rows, f"{op}<hidden_size = 4>")
    return Case(graph, {"x": floats(3, 2, 3), **weights, "n": np.array(lengths, np.int32)}, message)


def aligned(rois: list[list[float]], images: list[int], message: str) -> Case:
    graph = "(float[n, 2, 4, 4] x, float[r, 4] b, int64[r] i) => (float[r, 2, 3, 3] y) { y = RoiAlign<output_height = 3, output_width = 3>(x, b, i) }"  # noqa: E501
    return Case(graph, {"x": floats(2, 2, 4, 4), "b": np.array(rois, np.float32), "i": np.array(images)}, message)


def pooled(image: float, message: str) -> Case:
    graph = (
        "(float[n, 2, 4, 4] x, float[r, 5] b) => (float[r, 2, 2, 2] y) { y = MaxRoiPool<pooled_shape = [2, 2]>(x, b) }"
    )
    rois = np.array([[1, 0, 0, 3, 3], [image, 0, 0, 3, 3], [7, 0, 0, 1, 1]], np.float32)
    return Case(graph, {"x": floats(2, 2, 4, 4), "b": rois}, message)


def divided(op: str, dtype: type, divisor: Any, message: str) -> Case:
    name = np.dtype(dtype).name
    graph = f"({name}[2, 3] x, {name}[a, b] y) => ({name}[2, 3] z) {{ z = {op}(x, y) }}"
    return Case(graph, {"x": np.ones((2, 3), dtype), "y": np.array(divisor, dtype)}, message)


def written(attributes: str, places: list[int], message: str) -> Case:
    graph = f"(float[2, 4, 3] x, float[2, 2, 3] u, int64[2] i) => (float[2, 4, 3] y) {{ y = TensorScatter<axis = 1{attributes}>(x, u, i) }}"  # noqa: E501
    return Case(graph, {"x": floats(2, 4, 3), "u": floats(2, 2, 3), "i": np.array(places)}, message, 24)


def scattered(reduction: str, message: str) -> Case:
    graph = f'(float[3, 4] x, int64[a, b] i, float[a, b] u) => (float[3, 4] y) {{ y = ScatterElements<axis = -1, reduction = "{reduction}">(x, i, u) }}'  # noqa: E501
    indices = np.array([[0, 3], [-4, 4], [9, -5]])
    return Case(graph, {"x": floats(3, 4), "i": indices, "u": floats(3, 2)}, message)


def reversed_in(attributes: str, lengths: list[int], message: str) -> Case:
    graph = f"(float[3, 4, 5] x, int64[n] l) => (float[3, 4, 5] y) {{ y = ReverseSequence<{attributes}>(x, l) }}"
    return Case(graph, {"x": floats(3, 4, 5), "l": np.array(lengths)}, message)


GATHER = "(float[2, 3] x, int64[m, n] i) => (float[2, m, n] y) { y = Gather<axis = -1>(x, i) }"
NARROW = "(float[n, 300] x, int32[m] i) => (float[m, 300] y) { y = Gather(x, i) }"
ELEMENTS = "(float[2, 3] x, int64[m, n] i) => (float[m, n] y) { y = GatherElements(x, i) }"
VECTORS = "(float[2, 3, 4, 5] x, int64[2, m, 2] i) => (float[2, m, 5] y) { y = GatherND<batch_dims = 1>(x, i) }"
PARTS = "(float[2, 3, 4] x, int64[m, 2] i, float[m, 4] u) => (float[2, 3, 4] y) { y = ScatterND(x, i, u) }"
HOT = "(uint64[n] i, int64 d, float[2] v) => (float[n, m] y) { y = OneHot(i, d, v) }"
UNPOOL = "(float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) => (float[1, 1, a, b] y) { y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i) }"  # noqa: E501
ROTARY = "(float[1, 2, 3, 4] x, float[r, 2] c, float[r, 2] s, int64[1, 3] p) => (float[1, 2, 3, 4] y) { y = RotaryEmbedding(x, c, s, p) }"  # noqa: E501
TOPK = "(float[2, 3] x, int64[1] k) => (float[2, a] y, int64[2, a] i) { y, i = TopK(x, k) }"
SLICE = "(float[n] x, int64[1] a, int64[1] b, int64[1] c, int64[1] d) => (float[m] y) { y = Slice(x, a, b, c, d) }"
EXPAND = "(float[n] x, int64[1] s) => (float[m] y) { z = Neg(x) y = Expand(z, s) }"

WIDE = np.zeros(5000, np.int32)
WIDE[[3777, 4200, 4999]] = [-2, 9, 2]

CASES = {
    "Gather": Case(
        GATHER,
        {"x": floats(2, 3), "i": np.array([[0, 2], [-3, 3], [5, -4]])},
        "index 3 is out of range for axis 1 of size 3 (element 3 of the indices)",
    ),
    "Gather, a negative index": Case(
        GATHER,
        {"x": floats(2, 3), "i": np.array([[-4, 3]])},
        "index -4 is out of range for axis 1 of size 3 (element 0 of the indices)",
    ),
    "Gather, the least integer": Case(
        GATHER,
        {"x": floats(2, 3), "i": np.array([[0, -(2**63)]])},
        "index -9223372036854775808 is out of range for axis 1 of size 3 (element 1 of the indices)",
    ),
    "Gather, many wrong indices of 32 bits": Case(
        NARROW,
        {"x": floats(1, 300), "i": WIDE},
        "index -2 is out of range for axis 0 of size 1 (element 3777 of the indices)",
    ),
    "Gather, from an axis without elements": Case(
        "(float[n] x, int64[m] i) => (float[m] y) { y = Gather(x, i) }",
        {"x": floats(0), "i": np.array([0, 7])},
        "index 0 is out of range for axis 0 of size 0 (element 0 of the indices)",
    ),
    "GatherElements": Case(
        ELEMENTS,
        {"x": floats(2, 3), "i": np.array([[0, 1, -2], [0, -3, 2]])},
        "index -3 is out of range for axis 0 of size 2 (element 4 of the indices)",
    ),
    "GatherND": Case(
        VECTORS,
        {"x": floats(2, 3, 4, 5), "i": np.array([[[0, 0], [2, 3]], [[-3, 4], [3, 0]]])},
        "index 4 is out of range for axis 2 of size 4 (element 5 of the indices)",
    ),
    "GatherND, the first axis of a vector": Case(
        VECTORS,
        {"x": floats(2, 3, 4, 5), "i": np.array([[[0, 0]], [[3, 4]]])},
        "index 3 is out of range for axis 1 of size 3 (element 2 of the indices)",
    ),
    "ScatterElements": scattered("none", "index 4 is out of range for axis 1 of size 4 (element 3 of the indices)"),
    "ScatterElements, sums": scattered(
        "add", "index 4 is out of range for axis 1 of size 4 (element 3 of the indices)"
    ),
    "ScatterND": Case(
        PARTS,
        {"x": floats(2, 3, 4), "i": np.array([[0, 1], [1, -4], [2, 0]]), "u": floats(3, 4)},
        "index -4 is out of range for axis 1 of size 3 (element 3 of the indices)",
    ),
    "TensorScatter": written(
        "", [2, 3], "index 3 is out of range for 2 rows in a cache of 4 (element 1 of write_indices)"
    ),
    "TensorScatter, a negative place": written(
        ', mode = "circular"',
        [-1, 9],
        "index -1 is out of range for 2 rows in a cache of 4 (element 0 of write_indices)",
    ),
    "OneHot": Case(
        HOT,
        {"i": np.array([1, 2**63, 2**64 - 1], np.uint64), "d": np.array(3), "v": floats(2)},
        "9223372036854775808 does not fit in 64 bits (element 1)",
    ),
    "MaxUnpool": Case(
        UNPOOL,
        {"x": floats(1, 1, 2, 2), "i": np.array([[[[0, 15], [16, -1]]]])},
        "index 16 is out of range for a tensor of shape [1, 1, 4, 4] (element 2 of the indices)",
    ),
    "Div": divided("Div", np.int32, [[1, 0, 0]], "an integer is divided by zero (element 1 of the divisor)"),
    "Mod": divided("Mod", np.uint8, [[1], [0]], "an integer is divided by zero (element 1 of the divisor)"),
    "Fmod": divided(
        "Mod<fmod = 1>",
        np.int64,
        [[1, 2, 3], [4, 0, 0]],
        "an integer is divided by zero (element 4 of the divisor)",
    ),
    "RotaryEmbedding": Case(
        ROTARY,
        {"x": floats(1, 2, 3, 4), "c": floats(2, 2), "s": floats(2, 2), "p": np.array([[1, -3, 2]])},
        "position -3 is out of range for caches of 2 rows (element 1 of position_ids)",
        23,
    ),
    "RoiAlign": aligned([[0, 0, 1, 1]] * 3, [1, 2, -1], "image 2 is out of range for a batch of 2 (region 1)"),
    "RoiAlign, too many samples": aligned(
        [[0, 0, 1, 1], [0, 0, 1e4, 1e4]],
        [0, 0],
        "100040004 samples are too many; at most 10000000 are possible (region 1)",
    ),
    "RoiAlign, a wrong image after too many samples": aligned(
        [[0, 0, 1e4, 1e4], [0, 0, 1, 1]], [0, 2], "image 2 is out of range for a batch of 2 (region 1)"
    ),
    "MaxRoiPool": pooled(2, "image 2 is out of range for a batch of 2 (region 1)"),
    "MaxRoiPool, half an image": pooled(0.5, "image 0.5 is out of range for a batch of 2 (region 1)"),
    "MaxRoiPool, no number": pooled(np.nan, "image NaN is out of range for a batch of 2 (region 1)"),
    "ReverseSequence": reversed_in(
        "batch_axis = 1, time_axis = 0",
        [0, 3, 1, 4],
        "length 4 is out of range for sequences of 3 steps (element 3 of sequence_lens)",
    ),
    "ReverseSequence, a negative length": reversed_in(
        "batch_axis = 0, time_axis = 1",
        [4, -1, 5],
        "length -1 is out of range for sequences of 4 steps (element 1 of sequence_lens)",
    ),
    "LSTM": layer("LSTM", 16, [3, 4], "length 4 is out of range for sequences of 3 steps (element 1 of sequence_lens)"),
    "GRU": layer("GRU", 12, [-1, 9], "length -1 is out of range for sequences of 3 steps (element 0 of sequence_lens)"),
    "RNN": layer("RNN", 4, [0, 4], "length 4 is out of range for sequences of 3 steps (element 1 of sequence_lens)"),
    # Numbers that the host reads before it launches a kernel.
    "TopK": Case(TOPK, {"x": floats(2, 3), "k": np.array([4])}, ""),
    "Slice": Case(
        SLICE, {"x": floats(4), "a": np.array([0]), "b": np.array([4]), "c": np.array([0]), "d": np.array([0])}, ""
    ),
    "Expand": Case(EXPAND, {"x": floats(4), "s": np.array([3])}, ""),
}


def plan_of(graph: str, opset: int = 20) -> compiler.Plan:
    text = f'<ir_version: 10, opset_import: ["" : {opset}]>\ng {graph}'
    return compiler.compile(onnx.parser.parse_model(text))


def refusal(plan: compiler.Plan, device: str, inputs: dict[str, Any]) -> compiler.RunError:
    with pytest.raises(compiler.RunError) as error:
        compiler.load(plan, device=device, threads=1).run(inputs)
    return error.value


@pytest.mark.parametrize("name", CASES)
def test_both_devices_say_the_same(name: str, gpu: str) -> None:
    case = CASES[name]
    plan = plan_of(case.graph, case.opset)
    here, there = (refusal(plan, device, case.inputs) for device in ("cpu", gpu))
    assert there.message == here.message
    assert case.message in ("", here.message)
    assert (there.op, there.origin, there.within) == (here.op, here.origin, here.within)


TWO_FAULTS = """(float[n] x, int64[m] i, int64[m] j) => (float[m] y, float[m] z) {
    y = Gather(x, i)
    z = Gather(x, j)
}"""


def test_the_first_step_is_reported(gpu: str) -> None:
    session = compiler.load(plan_of(TWO_FAULTS), device=gpu)
    good, late, early = np.zeros(3, np.int64), np.array([0, 0, 9]), np.array([8, 0, 0])
    for i, j, message in (
        (late, early, "index 9 is out of range for axis 0 of size 4 (element 2 of the indices)"),
        (good, early, "index 8 is out of range for axis 0 of size 4 (element 0 of the indices)"),
        (early, late, "index 8 is out of range for axis 0 of size 4 (element 0 of the indices)"),
    ):
        with pytest.raises(compiler.RunError) as error:
            session.run({"x": floats(4), "i": i, "j": j})
        assert (error.value.message, error.value.origin) == (message, f"Gather({'z' if i is good else 'y'})")
    assert session.run({"x": floats(4), "i": good, "j": good})["y"].tolist() == [0, 0, 0]


LOOP = """(int64 count, float[n] x, int64[4] i) => (float[4] sum) {
    go = Constant <value: tensor = bool {1}> ()
    zero = Constant <value_floats = [0.0, 0.0, 0.0, 0.0]> ()
    sum = Loop (count, go, zero) <body = b (int64 turn, bool c, float[4] s) => (bool d, float[4] t) {
        d = Identity(c)
        shifted = Add(i, turn)
        picked = Gather(x, shifted)
        t = Add(s, picked)
    }>
}"""


def test_the_first_turn_of_a_loop_is_reported(gpu: str) -> None:
    plan = plan_of(LOOP)
    inputs = {"count": np.array(5), "x": floats(4), "i": np.array([1, 0, 2, 0])}
    here, there = (refusal(plan, device, inputs) for device in ("cpu", gpu))
    # Element 2 is out of range in iteration 2, and element 0 in iteration 3.
    assert there.message == "index 4 is out of range for axis 0 of size 4 (element 2 of the indices)" == here.message
    assert len(there.within) == 1
    assert there.within == here.within
