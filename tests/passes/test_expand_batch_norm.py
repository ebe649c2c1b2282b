"""Batch normalizations without a preceding linear operator become a product and a sum."""

import pytest

from compiler.passes.expand_batch_norm import expand_batch_norm

CLOSE = (1e-5, 1e-5)


def test_parameters_have_the_shape_of_channels(check_pass):
    check_pass(
        expand_batch_norm,
        """
        agraph (float[1, 2, N, 3] x) => (float[1, 2, N, 3] y)
        <float[2] g = {2, 3}, float[2] b = {1, 0}, float[2] m = {0.5, 1}, float[2] v = {4, 9}> {
            y = BatchNormalization<epsilon=0.0>(x, g, b, m, v)
        }
        """,
        """
        input x: float[1, 2, N, 3]
        constant g = float[2] {2, 3}
        constant b = float[2] {1, 0}
        constant m = float[2] {0.5, 1}
        constant v = float[2] {4, 9}
        constant y.scale = float[2,1,1] {1, 1}
        constant y.shift = float[2,1,1] {0.5, -1}
        val_0 = Mul(x, y.scale)
        y = Add(val_0, y.shift)
        return y
        """,
        same_results=CLOSE,
    )


@pytest.mark.parametrize("shape", ["float[3, 2]", "float[3, 2, N]"])
def test_other_ranks(check_pass, shape):
    text = f"""agraph ({shape} x) => (float y)
        <float[2] g = {{2, 3}}, float[2] b = {{1, 0}}, float[2] m = {{0.5, 1}}, float[2] v = {{4, 0.1}}> {{
            n = BatchNormalization(x, g, b, m, v)
            y = Exp(n)
        }}"""
    assert check_pass(expand_batch_norm, text, same_results=CLOSE).nodes_after == 3


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("(double[2, 1] x) => (double[2, 1] y) <double[1] g = {2}, double[1] b = {1}, double[1] v = {4}>", "float32"),
        ("(float[2, 1] x) => (float[2, 1] y) <float[1] g = {2}, float[1] b = {1}, float[1] v = {-4}>", "not finite"),
        ("(float[2, 1] x) => (float[2, 1] y) <float[1] g = {3e38}, float[1] b = {1}, float[1] v = {0}>", "not finite"),
    ],
)
def test_other_normalizations_stay(check_pass, head, reason):
    text = f"agraph {head} {{ y = BatchNormalization(x, g, b, b, v) }}"
    (missed,) = check_pass(expand_batch_norm, text, same_results=None).missed
    assert reason in missed.reason
