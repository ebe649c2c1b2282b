"""Every linear operator with every possible successor, as text and against onnxruntime."""

import numpy as np
import pytest

from compiler.passes.fold_batch_norm import fold_batch_norm

CLOSE = (1e-5, 1e-5)
NORM = "<float[{c}] g = {{{g}}}, float[{c}] b = {{{b}}}, float[{c}] m = {{{m}}}, float[{c}] v = {{{v}}}"


def numbers(count, seed, low=-1.0):
    return ", ".join(f"{x:.4f}" for x in np.random.default_rng(seed).uniform(low, 2, count))


def norm(channels, extra=""):
    """Initializers of a BatchNormalization, and more."""
    text = NORM.format(
        c=channels, g=numbers(channels, 0), b=numbers(channels, 1), m=numbers(channels, 2), v=numbers(channels, 3, 0.1)
    )
    return f"{text}{extra}>"


def weights(name, *shape):
    return f", float[{', '.join(map(str, shape))}] {name} = {{{numbers(int(np.prod(shape)), 4)}}}"


def fold(check_pass, text, expected, rules, opset=20):
    """Runs the pass; compares the nodes that are left, in order."""
    report = check_pass(fold_batch_norm, text, opset=opset, same_results=CLOSE)
    assert [fired.rule for fired in report.fired] == rules
    assert report.nodes_after == expected
    return report


def test_conv_and_batch_norm_as_text(check_pass):
    check_pass(
        fold_batch_norm,
        """
        agraph (float[1, 1, N] x) => (float[1, 1, N] y)
        <float[1, 1, 1] w = {3}, float[1] g = {2}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {4}> {
            c = Conv(x, w)
            y = BatchNormalization<epsilon=0.0>(c, g, b, m, v)
        }
        """,
        """
        input x: float[1, 1, N]
        constant w = float[1,1,1] {3}
        constant g = float[1] {2}
        constant b = float[1] {1}
        constant m = float[1] {0.5}
        constant v = float[1] {4}
        constant c.weight = float[1,1,1] {3}
        constant c.bias = float[1] {0.5}
        y = Conv(x, c.weight, c.bias)
        return y
        """,
        same_results=CLOSE,
    )


@pytest.mark.parametrize(
    ("operator", "shape", "channels", "bias"),
    [
        ("Conv<kernel_shape=[3]>", (4, 2, 3), 4, False),
        ("Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>", (4, 2, 3, 3), 4, True),
        ("Conv<group=2, strides=[2, 2]>", (6, 1, 3, 3), 6, True),
        ("ConvTranspose<strides=[2, 2]>", (2, 5, 3, 3), 5, False),
        ("ConvTranspose<group=2, strides=[2, 2]>", (2, 3, 3, 3), 6, True),
    ],
)
def test_convolutions(check_pass, operator, shape, channels, bias):
    given = weights("w", *shape) + (weights("cb", channels) if bias else "")
    spatial = ", ".join("9" * (len(shape) - 2))
    text = f"""
        agraph (float[N, 2, {spatial}] x) => (float[N, {channels}, {"A, B" if len(shape) == 4 else "A"}] y)
        {norm(channels, given)} {{
            c = {operator}(x, w{", cb" if bias else ""})
            y = BatchNormalization(c, g, b, m, v)
        }}
        """
    fold(check_pass, text, 1, ["FoldBatchNorm"])


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        ("Gemm(x, w)", (3, 4)),
        ("Gemm<transB=1, alpha=0.5, beta=2.0>(x, w, cb)", (4, 3)),
        ("Gemm(x, w, cb)", (3, 4)),
        ("MatMul(x, w)", (3, 4)),
    ],
)
def test_products_of_matrices(check_pass, operator, shape):
    text = f"""
        agraph (float[N, 3] x) => (float[N, 4] y) {norm(4, weights("w", *shape) + weights("cb", 4))} {{
            c = {operator}
            y = BatchNormalization(c, g, b, m, v)
        }}
        """
    fold(check_pass, text, 1, ["FoldBatchNorm"])


@pytest.mark.parametrize("constant", [(4, 1, 1), (1, 4, 1, 1), (1,), ()])
def test_constants_after_a_convolution(check_pass, constant):
    declared = f", float[{', '.join(map(str, constant))}] k = {{{numbers(int(np.prod(constant)), 5, 0.5)}}}"
    declared = declared.replace("float[] k = {", "float k = {")
    text = f"""
        agraph (float[N, 2, 9, 9] x) => (float[N, 4, 9, 9] y) {norm(4, weights("w", 4, 2, 1, 1) + declared)} {{
            c = Conv(x, w)
            d = BatchNormalization(c, g, b, m, v)
            e = Mul(k, d)
            f = Add(e, k)
            h = Div(f, k)
            i = Neg(h)
            y = Sub(i, k)
        }}
        """
    fold(check_pass, text, 1, ["FoldBatchNorm", "FoldMul", "FoldAdd", "FoldDiv", "FoldNeg", "FoldSub"])


def test_a_scaled_product_of_higher_rank(check_pass):
    text = f"""
        agraph (float[N, 5, 3] x) => (float[N, 5, 4] y) <float s = {{2}}, float z = {{0}}{weights("w", 3, 4)}> {{
            c = MatMul(x, w)
            d = Mul(c, s)
            y = Add(d, z)
        }}
        """
    fold(check_pass, text, 1, ["FoldMul", "FoldAdd"])


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("c = Conv(x, w)  d = Relu(c)  e = Add(c, d) y = Add(e, row)", None),
        ("c = Conv(x, w)  y = Add(c, row)", "the constant of shape [1, 9] has more than one number for each channel"),
        (
            "c = Conv(x, w)  y = Mul(c, big)",
            "the constant of shape [1, 1, 1, 1, 1] has more than one number for each channel",
        ),
        ("c = Conv(x, w)  y = Div(c, zero)", "the folded weights are not finite"),
        ("c = Conv(x, x)  y = Mul(c, zero)", None),
        (
            "c = Conv(x, w, cb)  y = Mul(c, zero)",
            "the bias is not constant, or has more than one number for each channel",
        ),
    ],
)
def test_what_cannot_be_folded(check_pass, nodes, reason):
    text = f"""
        agraph (float[1, 4, 9, 9] x, float[4] cb) => (y)
        <float[1, 9] row = {{1,2,3,4,5,6,7,8,9}}, float[1, 1, 1, 1, 1] big = {{2}}, float zero = {{0}}
        {weights("w", 4, 4, 1, 1)}> {{ {nodes} }}
        """
    report = check_pass(fold_batch_norm, text.replace("(y)", "(float y)", 1), same_results=None)
    assert [missed.reason for missed in report.missed] == ([reason] if reason else [])
    assert not report.changed


@pytest.mark.parametrize(
    ("attributes", "opset", "reason"),
    [
        ("<training_mode=1>", 15, "it computes the statistics of its input"),
        ("<spatial=0>", 7, "it has statistics for each position"),
    ],
)
def test_other_batch_norms_stay(check_pass, attributes, opset, reason):
    text = f"""
        agraph (float[1, 2, 3] x) => (float[1, 2, 3] y) {norm(2, weights("w", 2, 2, 1))} {{
            c = Conv(x, w)
            y = BatchNormalization{attributes}(c, g, b, m, v)
        }}
        """
    report = check_pass(fold_batch_norm, text, opset=opset, same_results=None)
    assert [missed.reason for missed in report.missed] == [reason]
