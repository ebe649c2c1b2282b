"""Sizes that are symbols or 0: lowered operators give the results of onnxruntime."""

import onnx.parser
import pytest

import compiler
from tests.lower.conftest import assert_same, reference
from tests.volumes.comparison import check, image, lowered

CHAIN = """<ir_version: 10, opset_import: ["": 21]>
g (float[n, 4, d, h, w] x, float[1, 4, 3, 3, 3] f) => (float[n, 1, d2, h2, w2] y) {
    z = MaxPool<kernel_shape = [2, 2, 2], strides = [2, 2, 2], ceil_mode = 1>(x)
    y = Conv<pads = [1, 1, 1, 1, 1, 1], strides = [2, 2, 2]>(z, f)
}"""


@pytest.mark.parametrize("kernel", [(3, 3, 3), (1, 3, 3)])
def test_sizes_rounded_up(kernel):
    inputs = [image(2, 1, 8, 7, 6), image(1, 1, *kernel, seed=1)]
    for padding in ("SAME_UPPER", "SAME_LOWER"):
        check("Conv", inputs, forms=["symbols"], tolerance=1e-4, auto_pad=padding, strides=[1, 2, 2])


@pytest.mark.parametrize("optimize", [True, False])
def test_sizes_of_a_convolution_rounded_up(optimize):
    model = onnx.parser.parse_model(CHAIN)
    session = compiler.load(lowered(model, optimize), threads=1)
    for sizes in ((7, 9, 11), (4, 6, 8)):
        feeds = {"x": image(2, 4, *sizes), "f": image(1, 4, 3, 3, 3, seed=1)}
        [found], [expected] = session.run(feeds).values(), reference(model, feeds)
        assert_same(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 3, 3), (3, 1, 3), (3, 3, 1)])
def test_empty_results_of_poolings(op_type, sizes):
    check(op_type, [image(1, 4, *sizes)], kernel_shape=[2, 2, 2])


def test_indices_of_an_empty_result():
    check("MaxPool", [image(1, 4, 1, 1, 1)], outputs=2, tolerance=0, kernel_shape=[2, 2, 2])
