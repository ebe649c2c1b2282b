"""The known differences of accepted models: operator → part of the problem, as a regular expression → reason."""

from __future__ import annotations

from tests.accepted.bases import Key

_PERIODIC = {
    r"periodic = (2|-1).*differs": "the standard computes with the number; onnxruntime only tells 0 from other numbers"
}

_UNDEFINED = "the standard does not define which integers NaN, infinity and other far numbers become"

VALUES: dict[str, str] = {
    r"(index|length) -?\d+ is out of range for": "an element of the indices or lengths",
    r"axis -?\d+ is out of range for a tensor of rank": "an element of the axes",
    r"axis -?\d+ is named twice": "elements of the axes",
    r"axis -?\d+ cannot be dropped: its size is not 1": "an element of the axes",
    r"there is no such position in a sequence": "the position",
    r"cannot view \[.*\] as \[": "elements of the shape",
    r"\[.*\] does not broadcast to \[": "elements of the shape",
    r"\[.*\] is not a shape": "elements of the shape",
    r"sizes \[.*\] do not add up to an axis of size": "elements of the sizes",
    r"\d+ elements cropped by -?\d+ and -?\d+ leave nothing to repeat": "elements of the pads",
    r"the condition keeps row \d+ of": "an element of the condition",
    r"K is -?\d+; axis \d+ has": "the number K",
    r"-?\d+ does not fit in \d+ bits": "an index",
    r"3-D resizing is not supported": "elements of the sizes, which name the axes to resize",
    r"the last axis holds real and imaginary parts": "the axis",
    r"the length of a transform must be at least": "the length of the last axis, which the axis names",
}
"""Errors of a run that depend on the elements of inputs: part of the message, as a regular expression → what it names.

A model may fail with such an error if it runs with other elements. Any other error of a run is a problem.
"""

KNOWN: dict[Key, dict[str, str]] = {
    ("", "Attention"): {
        r"qk_matmul_bias_3d_mask_causal.*differs.*qk_matmul_output": "onnxruntime's differs from the expected ones",
        r"qk_matmul_bias.*U = tensor\(bool\).*differs.*qk_matmul_output": "a masked score is -inf in the standard, and "
        "the lowest number in onnxruntime",
    },
    ("", "BlackmanWindow"): _PERIODIC
    | {r"output_datatype = 2: differs": "a number is nearly 1 before the cast to uint8"},
    ("", "Cast"): {r"FLOAT16, to = \d+.*differs": _UNDEFINED},
    ("", "CastLike"): {r"FLOAT16, T2 = .*differs": _UNDEFINED},
    ("", "DFT"): {
        r"y = DFT\(x, a, b\), -1 axes.*run failed": "the axis, a value of the run, is the last of a smaller tensor"
    },
    ("", "Gather"): {r"tensor\(string\).*differs": "onnxruntime copies only the first string of a block"},
    ("", "HammingWindow"): _PERIODIC,
    ("", "HannWindow"): _PERIODIC,
    ("", "ReduceLogSumExp"): {
        r"y \(int32.*elements differ": "onnxruntime rounds exponentials and the logarithm to integers"
    },
    ("", "ReduceProd"): {r"tensor\(int32\): differs": "the product exceeds int32, and the standard does not define it"},
    ("", "Resize"): {
        r"linear_(antialias|half_pixel_symmetric), T1 = .*int.*differs": "an exact result is halfway between integers",
        r"linear_pytorch_half_pixel, T1 = .*int.*differs": "an exact result is an integer, which rounding errors miss",
        r"cubic_antialias, T1 = .*int.*differs": "onnxruntime rounds between the two axes",
    },
    ("", "TopK"): {r"sorted = 0: differs": "the standard leaves the order open"},
    ("com.microsoft", "Attention"): {
        r"float16.*differs.* by 0\.0": "the operators round to float16 in between, and onnxruntime does not"
    },
}
