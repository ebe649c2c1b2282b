"""Types and shapes that a kernel was not written for: the compiler refuses them, not the run."""

from __future__ import annotations

import onnx.parser
import pytest

import compiler

HEAD = '<ir_version: 9, opset_import: ["": 21]> m '
MODELS = {
    "scattered strings with a reduction": (
        "(string[3] x, string[2] u) => (string[3] y) <int64[2, 1] i = {0, 2}> "
        '{ y = ScatterND <reduction = "max"> (x, i, u) }',
        "strings cannot be combined",
    ),
    "scattered strings along an axis": (
        "(string[3] x, string[2] u) => (string[3] y) <int64[2] i = {0, 2}> "
        '{ y = ScatterElements <reduction = "add"> (x, i, u) }',
        "strings cannot be combined",
    ),
    "strings around their center": (
        "(string[3] x) => (string[2] y) <int64[1] n = {2}> { y = CenterCropPad (x, n) }",
        "a string tensor cannot be cropped or padded",
    ),
    "strings padded with their edge": (
        '(string[3] x) => (string[5] y) <int64[2] p = {1, 1}> { y = Pad <mode = "edge"> (x, p) }',
        "strings are padded with a given value only",
    ),
    "a scale of two axes": (
        "(float[2, 4] x, float[4, 1] s, float[4] b) => (float[2, 4] y) { y = BatchNormalization (x, s, b, b, b) }",
        "does not fit X",
    ),
    "two channels of a list": (
        "(float[3] x, float[2] s) => (float[3] y) { y = BatchNormalization (x, s, s, s, s) }",
        "has 2 elements for 1 channels",
    ),
    "a shape for another rank": (
        "(float[1, 1, 2] x, int64[1, 1, 2] i, int64[4] s) => (float[a, b, c] y) "
        "{ y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, i, s) }",
        "the output's shape must be 3 numbers of int64",
    ),
    "a shape that is a number": (
        "(float[1, 1, 2] x, int64[1, 1, 2] i, int64 s) => (float[a, b, c] y) "
        "{ y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, i, s) }",
        "the output's shape must be 3 numbers of int64",
    ),
    "a convolution without spatial axes": (
        "(float[1, 1] x, float[1, 2] w) => (float[a, b] y) { y = ConvTranspose <output_shape = [10, 8]> (x, w) }",
        "needs an image and weights with spatial axes",
    ),
    "a list without channels": (
        "(float[3] x, float[3] s) => (float[3] y) { y = InstanceNormalization (x, s, s) }",
        "X has no channels",
    ),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_the_compiler_refuses(name: str, optimize: bool) -> None:
    text, reason = MODELS[name]
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(onnx.parser.parse_model(HEAD + text), compiler.Options(optimize=optimize))
