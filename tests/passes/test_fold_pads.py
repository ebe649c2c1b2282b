"""The pass folds pads of zeros into the operator below them, and keeps other pads."""

import pytest

from compiler.passes.fold_pads import fold_pads

HEAD = """agraph (float[N, 2, 7, 7] x) => (float y)
    <float[2, 2, 3, 3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},
    int64[8] p = {0, 0, 1, 2, 0, 0, 3, 4}, int64[4] q = {1, 2, 3, 4}, int64[2] axes = {2, -1}, float zero = {0},
    float one = {1}, int64[8] channels = {0, 1, 1, 2, 0, 0, 3, 4}, int64[8] crop = {0, 0, -1, 2, 0, 0, 3, 4}>"""


@pytest.mark.parametrize(
    ("nodes", "pads"),
    [
        ("a = Pad(x, p)  y = Conv(a, w)", [1, 2, 3, 4]),
        ("a = Pad(x, p, zero)  y = Conv<pads=[1, 0, 0, 1], strides=[2, 2]>(a, w)", [2, 2, 3, 5]),
        ('a = Pad(x, p)  y = Conv<auto_pad="VALID">(a, w)', [1, 2, 3, 4]),
        ("a = Pad(x, q, , axes)  y = Conv(a, w)", [1, 2, 3, 4]),
        ("a = Pad(x, p)  y = AveragePool<kernel_shape=[5, 5], count_include_pad=1>(a)", [1, 2, 3, 4]),
    ],
)
def test_zero_pads(check_pass, parse, nodes, pads):
    model = parse(f"{HEAD} {{ {nodes} }}")
    check_pass(fold_pads, model, same_results=(1e-5, 1e-5))
    (node,) = model.graph
    assert list(node.attributes["pads"].as_ints()) == pads


def test_pads_as_attributes(check_pass, parse):
    model = parse(f"{HEAD} {{ a = Pad<pads=[0, 0, 1, 1, 0, 0, 1, 1]>(x)  y = Conv(a, w) }}", opset=9)
    check_pass(fold_pads, model, same_results=None)
    assert [node.op_type for node in model.graph] == ["Conv"]


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ('a = Pad<mode="reflect">(x, p)  y = Conv(a, w)', "it pads with mode reflect"),
        ("a = Pad(x, p, one)  y = Conv(a, w)", "it pads with a value other than zero"),
        ("a = Pad(x, channels)  y = Conv(a, w)", "it pads the batch or the channels"),
        ("a = Pad(x, crop)  y = Conv(a, w)", "it removes elements"),
        ('a = Pad(x, p)  y = Conv<auto_pad="SAME_UPPER">(a, w)', "Conv pads with SAME_UPPER"),
        ("a = Pad(x, p)  y = AveragePool<kernel_shape=[5, 5]>(a)", "the mean excludes its pads, or ceil_mode is set"),
    ],
)
def test_other_pads(check_pass, parse, nodes, reason):
    report = check_pass(fold_pads, parse(f"{HEAD} {{ {nodes} }}"), same_results=None)
    assert [missed.reason for missed in report.missed] == [reason]
