"""The graphs that the passes for three spatial dimensions make. tests/volumes compares their results."""

import pytest

from compiler.passes.lower_3d_col2im import lower_3d_col2im
from compiler.passes.lower_3d_conv import lower_3d_conv
from compiler.passes.lower_3d_conv_transpose import lower_3d_conv_transpose
from compiler.passes.lower_3d_grid_sample import lower_3d_grid_sample
from compiler.passes.lower_3d_norm import lower_3d_norm
from compiler.passes.lower_3d_pool import lower_3d_pool
from compiler.passes.lower_3d_resize import lower_3d_resize

X, Y = "float[N, 2, 4, 6, 8] x", "=> (float[N, a, b, c, d] y)"
CASES = {
    "convolution": (
        lower_3d_conv,
        f"agraph ({X}, float[3, 2, 2, 3, 3] w) {Y} {{ y = Conv<strides=[2, 1, 1], pads = [1, 0, 1, 0, 1, 0]>(x, w) }}",
        "Transpose Pad Slice Slice Concat Reshape Transpose Reshape Conv Reshape Transpose",
    ),
    "along the depth": (
        lower_3d_conv,
        f"agraph ({X}, float[3, 2, 3, 1, 1] w) {Y} {{ y = Conv<pads = [1, 0, 0, 1, 0, 0]>(x, w) }}",
        "Reshape Reshape Conv Reshape",
    ),
    "transposed": (
        lower_3d_conv_transpose,
        f"agraph ({X}, float[2, 3, 2, 2, 2] w, float[3] b) {Y} {{ y = ConvTranspose<strides = [2, 2, 2]>(x, w, b) }}",
        "Transpose Reshape Concat Transpose Reshape ConvTranspose Reshape Reshape Transpose",
    ),
    "pooling": (
        lower_3d_pool,
        f"agraph ({X}) {Y} {{ y = MaxPool<kernel_shape = [2, 3, 2]>(x) }}",
        "Reshape MaxPool Reshape MaxPool Reshape",
    ),
    "pooling of planes": (
        lower_3d_pool,
        f"agraph ({X}) {Y} {{ y = AveragePool<kernel_shape = [1, 3, 2]>(x) }}",
        "Reshape AveragePool Reshape Reshape",
    ),
    "normalization": (
        lower_3d_norm,
        f"agraph ({X}, float[2] s) {Y} {{ y = InstanceNormalization(x, s, s) }}",
        "Reshape InstanceNormalization Reshape",
    ),
    "folded normalization": (
        lower_3d_norm,
        f"agraph ({X}) {Y} <float[1, 2, 1, 1, 1] w = {{1, 2}}, float[1] s = {{3}}> "
        "{ c = Conv(x, w) y = BatchNormalization(c, s, s, s, s) }",
        "Conv",
    ),
    "resize": (
        lower_3d_resize,
        f"agraph ({X}) {Y} <float[5] s = {{1, 1, 2, 2, 2}}> {{ y = Resize(x, , s) }}",
        "Resize Resize",
    ),
    "grid sampling": (
        lower_3d_grid_sample,
        f'agraph ({X}, float[N, 2, 3, 4, 3] g) {Y} {{ y = GridSample<mode="nearest", padding_mode="border">(x, g) }}',
        None,
    ),
    "blocks": (
        lower_3d_col2im,
        "agraph (float[N, 16, 12] x) => (float[N, a, b, c, d] y) "
        "<int64[3] i = {3, 3, 4}, int64[3] k = {2, 2, 2}> { y = Col2Im(x, i, k) }",
        "Reshape Transpose Reshape Col2Im Reshape Transpose Reshape Col2Im Reshape Transpose Reshape",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_operators(parse, check_pass, case):
    step, text, operators = CASES[case]
    model = parse(text)
    report = check_pass(step, model, same_results=(1e-4, 1e-4))
    if operators is not None:
        assert [node.op_type for node in model.graph] == operators.split()
    assert len(report.fired) == 1 and not report.refused
