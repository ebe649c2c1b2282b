"""Upsample and Resize → Interpolate. The tests of the lowering cover the results of Interpolate."""

import pytest

from compiler.ir.text import graph_text
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.lower_upsample import lower_upsample

ROUND = "mode='nearest', nearest_mode="
CASES = {
    "Upsample-7": (
        7,
        "y = Upsample<scales=[1.0, 1.0, 2.0, 3.0]>(x)",
        f"axes=[2, 3], coordinate_transformation_mode='asymmetric', {ROUND}'floor', scales=[2, 3], sizes=[8, 15]",
    ),
    "Upsample-9": (
        9,
        'scales = Constant<value = float[4] {1, 1, 1.7, 1}>()  y = Upsample<mode="linear">(x, scales)',
        "axes=[2], coordinate_transformation_mode='asymmetric', mode='linear', nearest_mode='floor', "
        "scales=[1.7], sizes=[6]",
    ),
    "Resize-10 down": (
        10,
        "scales = Constant<value = float[4] {1, 1, 0.6, 0.6}>()  y = Resize(x, scales)",
        f"axes=[2, 3], coordinate_transformation_mode='asymmetric', {ROUND}'ceil', scales=[0.6, 0.6], sizes=[2, 3]",
    ),
    "Resize-13 scales": (
        13,
        's = Constant<value = float[4] {1, 1, 2, 2}>()  y = Resize<mode="nearest", coordinate_transformation_mode='
        '"asymmetric", nearest_mode="floor">(x, , s)',
        f"axes=[2, 3], coordinate_transformation_mode='asymmetric', {ROUND}'floor', scales=[2, 2], sizes=[8, 10]",
    ),
    "Resize-19 sizes": (
        19,
        's = Constant<value = int64[4] {2, 3, 4, 9}>()  y = Resize<mode="cubic", cubic_coeff_a=-0.5>(x, , , s)',
        "axes=[3], coordinate_transformation_mode='half_pixel', cubic_coeff_a=-0.5, mode='cubic', "
        "nearest_mode='round_prefer_floor', sizes=[9]",
    ),
    "Resize-18 axes": (
        18,
        's = Constant<value = int64[2] {9, 8}>()  y = Resize<axes=[3, 2], mode="linear", antialias=1>(x, , , s)',
        "antialias=1, axes=[2, 3], coordinate_transformation_mode='half_pixel', mode='linear', "
        "nearest_mode='round_prefer_floor', sizes=[8, 9]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_factors_become_sizes(check_pass, parse, name):
    opset, text, expected = CASES[name]
    model = parse(f"agraph (float[2, 3, 4, 5] x) => (float[a, b, c, d] y) {{ {text} }}", opset=opset)
    infer_shapes.run(model)
    check_pass(lower_upsample, model, same_results=None)
    line = next(line for line in graph_text(model.graph).splitlines() if line.startswith("y = "))
    assert line == f"y = candle.plan.Interpolate(x, {expected})"


def test_nearest_that_grows_one_axis_and_shrinks_the_other(check_pass, parse):
    text = "s = Constant<value = float[4] {1, 1, 2, 0.6}>()  y = Upsample(x, s)"
    model = parse(f"agraph (float[2, 3, 4, 5] x) => (float[a, b, c, d] y) {{ {text} }}", opset=9)
    infer_shapes.run(model)
    check_pass(lower_upsample, model, same_results=None)
    lines = [line for line in graph_text(model.graph).splitlines() if "Interpolate" in line]
    assert ["nearest_mode='floor'" in line for line in lines] == [True, False]


def test_sizes_computed_from_shapes(check_pass, parse):
    model = parse(
        """
        agraph (float[N, 3, H, W] x) => (float[N, 3, 8, 9] y)
            <int64[1] zero = {0}, int64[1] two = {2}, int64[2] target = {8, 9}> {
            s = Shape(x)
            head = Slice(s, zero, two)
            sizes = Concat<axis=0>(head, target)
            y = Resize<mode="linear">(x, , , sizes)
        }
        """
    )
    infer_shapes.run(model)
    check_pass(lower_upsample, model, same_results=None)
    assert "Interpolate(x, axes=[2, 3]" in graph_text(model.graph) and "sizes=[8, 9]" in graph_text(model.graph)


def test_nothing_changes(check_pass, parse):
    text = "s = Constant<value = float[4] {1, 1, 1, 1}>()  y = Resize(x, , s)"
    model = parse(f"agraph (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {{ {text} }}")
    infer_shapes.run(model)
    check_pass(lower_upsample, model)
    assert "y = Identity(x)" in graph_text(model.graph)


LEFT = {
    "its factors or sizes are not constant": "y = Resize(x, , s)",
    "it crops": 'y = Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, s, s)',
}


@pytest.mark.parametrize("reason", LEFT)
def test_other_resizes_stay(check_pass, parse, reason):
    model = parse(f"agraph (float[2, 3, 4, 5] x, float[4] s) => (float[a, b, c, d] y) {{ {LEFT[reason]} }}")
    infer_shapes.run(model)
    report = check_pass(lower_upsample, model, same_results=None)
    assert [missed.reason for missed in report.missed] == [reason]
