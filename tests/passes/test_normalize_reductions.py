"""Reductions are brought into one form."""

import numpy as np
import pytest

from compiler.passes.normalize_reductions import normalize_reductions

HEAD = """agraph (float[2, N, 4] x) => (float y)
    <int64[1] last = {-1}, int64[1] third = {2}, int64[2] both = {2, 0}, int64[2] ordered = {-3, -1},
    int64[3] back = {2, -1, 1}, int64[3] other = {-1, 2, 1}, int64[1] one = {1}>"""


def run(check_pass, parse, nodes):
    model = parse(f"{HEAD} {{ {nodes} }}")
    check_pass(normalize_reductions, model, same_results=(1e-6, 1e-6))
    (reduction, *others) = model.graph
    axes = reduction.inputs[1].const_value.numpy().tolist()
    return axes, reduction.attributes["keepdims"].as_int(), [node.op_type for node in others]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = ReduceMean<keepdims = 1>(x, third)", ([-1], 1, [])),
        ("y = ReduceMax<keepdims = 0>(x, both)", ([-3, -1], 0, [])),
        ("r = ReduceSum<keepdims = 0>(x, third)  y = Unsqueeze(r, third)", ([-1], 1, [])),
        ("r = ReduceSum<keepdims = 0>(x, last)  y = Reshape(r, back)", ([-1], 1, [])),
        ("r = ReduceSum<keepdims = 0>(x, last)  y = Reshape(r, other)", ([-1], 0, ["Reshape"])),
        ("r = ReduceSum<keepdims = 0>(x, last)  y = Unsqueeze(r, one)", ([-1], 0, ["Unsqueeze"])),
    ],
)
def test_forms(check_pass, parse, nodes, expected):
    assert run(check_pass, parse, nodes) == expected


@pytest.mark.filterwarnings("ignore")
def test_layer_norm_with_a_variance(check_export):
    def normalized(x):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()

    x = np.random.default_rng(0).normal(size=(2, 3, 16)).astype("float32")
    assert check_export(normalized, [x], tolerance=1e-5) == ["LayerNorm"]
