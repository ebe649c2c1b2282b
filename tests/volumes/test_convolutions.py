"""Convolutions of three spatial dimensions, lowered: tables of attributes, and random attributes."""

import numpy as np
import onnx.parser
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import compiler
from tests.lower.conftest import reference
from tests.volumes.comparison import check, image, is_valid, lowered, model_of, refusal_of

X = image(2, 4, 5, 6, 7)
PADS = {"strides": [2, 1, 2], "pads": [1, 0, 1, 1, 2, 0]}


def some(*shape):
    return image(*shape, seed=1)


CONVOLUTIONS = [
    ((6, 4, 2, 3, 2), {}),
    ((6, 4, 2, 3, 2), PADS),
    ((6, 4, 2, 3, 2), {"dilations": [2, 1, 2], "pads": [1, 0, 1, 1, 2, 0]}),
    ((6, 4, 3, 3, 2), {"auto_pad": "SAME_UPPER"}),
    ((6, 4, 2, 3, 2), {"auto_pad": "SAME_LOWER"}),
    ((6, 4, 2, 3, 2), {"auto_pad": "VALID", "strides": [2, 2, 1]}),
    ((6, 2, 2, 3, 2), {"group": 2, **PADS}),
    ((8, 1, 3, 3, 3), {"group": 4, "pads": [1] * 6}),
    ((6, 4, 1, 3, 2), {"strides": [2, 1, 2]}),
    ((6, 4, 3, 1, 1), {"strides": [2, 1, 1], "pads": [1, 0, 0, 0, 0, 0]}),
    ((6, 4, 1, 1, 1), {}),
    ((6, 2, 3, 1, 1), {"group": 2, "auto_pad": "SAME_LOWER", "strides": [2, 1, 1]}),
]
TRANSPOSED = [
    ((4, 6, 2, 2, 2), {}),
    ((4, 6, 2, 2, 2), {"strides": [2, 2, 2]}),
    ((4, 3, 2, 2, 2), {"strides": [2, 2, 2], "group": 2}),
    ((4, 6, 2, 2, 2), {"strides": [3, 2, 2], "output_padding": [2, 1, 1]}),
    ((4, 3, 3, 2, 3), {"strides": [2, 2, 1], "group": 2, "pads": [1, 0, 1, 1, 1, 0]}),
    ((4, 3, 3, 2, 3), {"strides": [2, 1, 2], "group": 2, "dilations": [2, 2, 1], "output_padding": [1, 0, 0]}),
    ((4, 6, 3, 2, 3), {"strides": [1, 1, 2], "dilations": [3, 2, 1], "pads": [2, 1, 0, 1, 0, 0]}),
    ((4, 6, 3, 3, 3), {"strides": [2, 2, 2], "auto_pad": "SAME_UPPER"}),
    ((4, 6, 3, 3, 3), {"strides": [2, 2, 2], "auto_pad": "SAME_LOWER"}),
    ((4, 6, 3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6, "output_padding": [1, 1, 1]}),
    ((4, 6, 1, 3, 3), {"strides": [2, 2, 2]}),
]
SIZED = [{"output_shape": [9, 12, 14]}, {"output_shape": [10, 12, 14], "auto_pad": "SAME_UPPER"}]


@pytest.mark.parametrize(("weights", "attributes"), CONVOLUTIONS)
def test_convolutions(weights, attributes):
    inputs, forms = [X, some(*weights), some(weights[0])], ["constants", "inputs", "symbols"]
    check("Conv", inputs, forms=forms, tolerance=1e-4, **attributes)
    check("Conv", [X, some(*weights)], opset=11, forms=["constants"], tolerance=1e-4, **attributes)


@pytest.mark.parametrize(("weights", "attributes"), TRANSPOSED)
def test_transposed_convolutions(weights, attributes):
    filters = weights[1] * attributes.get("group", 1)
    check("ConvTranspose", [X, some(*weights), some(filters)], tolerance=1e-4, **attributes)
    check("ConvTranspose", [X, some(*weights)], opset=11, forms=["constants"], tolerance=1e-4, **attributes)


@pytest.mark.parametrize("attributes", SIZED)
def test_transposed_convolutions_of_a_given_size(attributes):
    weights = [some(4, 6, 3, 3, 3), some(6)]
    given = {"strides": [2, 2, 2], **attributes}
    check("ConvTranspose", [X, *weights], forms=["constants", "inputs"], tolerance=1e-4, **given)


@pytest.mark.parametrize("attributes", [{}, PADS])
def test_convolutions_of_codes(attributes):
    random = np.random.default_rng(0)
    x, w = (random.integers(0, 255, size=shape).astype(np.uint8) for shape in ((2, 4, 5, 6, 7), (6, 4, 2, 3, 2)))
    zeros = [np.array(zero, np.uint8) for zero in (7, 3, 100)]
    scales = [np.array(scale, np.float32) for scale in (0.1, 0.05, 3)]
    check("ConvInteger", [x, w, *zeros[:2]], tolerance=0, **attributes)
    quantized = [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2]]
    check("QLinearConv", quantized, tolerance=0, **attributes)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-5), (np.float16, 1e-2)])
@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_other_types(op_type, dtype, tolerance):
    inputs = [each.astype(dtype) for each in (X, some(4, 4, 2, 2, 2), some(4))]
    feeds = {f"x{i}": each.astype(np.float32) for i, each in enumerate(inputs)}
    [expected] = reference(model_of(op_type, [*feeds.values()], "inputs", 20, 1, {}), feeds)
    check(op_type, inputs, tolerance=tolerance, expected=[expected.astype(dtype)])


steps = st.lists(st.integers(1, 3), min_size=3, max_size=3)


@st.composite
def windows(draw, pads=2):
    """Random attributes of a window, its size and the groups."""
    kernel, groups = draw(steps), draw(st.sampled_from([1, 2, 4]))
    attributes = {"strides": draw(steps), "dilations": draw(steps), "group": groups}
    padding = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    if padding == "NOTSET":
        attributes["pads"] = draw(st.lists(st.integers(0, pads), min_size=6, max_size=6))
    else:
        attributes["auto_pad"] = padding
    return kernel, groups, attributes


def compare(op_type, x, weights, attributes, form, optimize):
    inputs = [x, some(*weights), some(weights[0] if op_type == "Conv" else weights[1] * attributes["group"])]
    feeds = {f"x{i}": array for i, array in enumerate(inputs)}
    assume(is_valid(model_of(op_type, inputs, "inputs", 20, 1, attributes), feeds))
    check(op_type, inputs, forms=[form], optimized=[optimize], tolerance=1e-4, **attributes)


@settings(max_examples=60, deadline=None)
@given(windows(), st.tuples(*[st.integers(3, 9)] * 3), st.sampled_from(["constants", "inputs"]), st.booleans())
def test_random_convolutions(window, sizes, form, optimize):
    kernel, groups, attributes = window
    reaches = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    assume(all(reach <= size for reach, size in zip(reaches, sizes, strict=True)))
    compare("Conv", image(2, 4, *sizes), (4, 4 // groups, *kernel), attributes, form, optimize)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    windows(pads=1),
    st.tuples(*[st.integers(3, 5)] * 3),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
    st.sampled_from(["constants", "inputs", "symbols"]),
    st.booleans(),
)
def test_random_transposed_convolutions(window, sizes, extra, form, optimize):
    kernel, _, attributes = window
    # onnxruntime asks for less output padding than the stride or the dilation.
    most = [max(pair) for pair in zip(attributes["strides"], attributes["dilations"], strict=True)]
    attributes["output_padding"] = [min(one, limit - 1) for one, limit in zip(extra, most, strict=True)]
    if attributes.get("auto_pad", "").startswith("SAME"):  # otherwise onnxruntime's result is not `size · stride`
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
        strides = attributes["strides"]
        assume(
            all(one + more >= s for one, more, s in zip(extents, attributes["output_padding"], strides, strict=True))
        )
    compare("ConvTranspose", image(2, 4, *sizes), (4, 2, *kernel), attributes, form, optimize)


def test_what_is_not_lowered():
    w = some(6, 4, 3, 3, 3)
    same = {"auto_pad": "SAME_UPPER", "strides": [2, 2, 2]}
    reasons = [
        refusal_of("Conv", [X, w], "symbols", **same),
        refusal_of("Conv", [X, w], strides=[1, 1]),
        refusal_of("Conv", [X[..., None], w[..., None]]),
        refusal_of("ConvTranspose", [X, some(4, 6, 3, 3, 3)], "symbols", output_shape=[9, 9, 9]),
        refusal_of("ConvTranspose", [X, some(4, 6, 3, 3, 3)], output_padding=[1]),
        refusal_of("Conv", [X, some(6, 4, 6, 3, 3)]),
    ]
    assert [reason.partition("it is not lowered, because ")[2] for reason in reasons] == [
        "its pads depend on the depth, which is not known (auto_pad SAME_UPPER)",
        "strides [1, 1] are not a positive number for each of 3 axes",
        "its input has 6 dimensions",
        "its pads depend on the depth, which is not known (output_shape)",
        "output_padding [1] is not a number for each of 3 axes",
        "its window is deeper than the image",
    ]


@pytest.mark.parametrize(
    ("dim", "pooling", "advice"),
    [
        ("d", "Identity", "set the depth, for example with `--dim d=8`"),
        ("the depth", "MaxPool<kernel_shape = [2, 1, 1]>", "set the depth, for example with `--dim 'the depth=8'`"),
        ("d", 'MaxPool<kernel_shape = [2, 1, 1], auto_pad = "SAME_UPPER">', "set the sizes of inputs with --dim"),
    ],
)
def test_the_advice_for_an_unknown_depth(dim, pooling, advice):
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[n, 1, d, 8, 8] x, float[1, 1, 3, 3, 3] w) => (float[a, b, c, e, f] y) {{
            z = {pooling}(x)
            y = Conv<auto_pad = "SAME_UPPER", strides = [2, 2, 2]>(z, w)
        }}"""
    )
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = dim
    with pytest.raises(compiler.CompileError) as error:
        lowered(model)
    assert [each.help for each in error.value.diagnostics] == [advice]


OPERATORS = [
    ("Conv", [some(6, 4, 2, 3, 2), some(6)], {"pads": [1, 0, 0, 0, 0, 0]}, (6, 5, 4, 6)),
    ("ConvTranspose", [some(4, 6, 3, 2, 2)], {"strides": [2, 1, 1]}, (6, 11, 7, 8)),
    ("MaxPool", [], {"kernel_shape": [2, 2, 2]}, (4, 4, 5, 6)),
    ("GlobalAveragePool", [], {}, (4, 1, 1, 1)),
    ("InstanceNormalization", [some(4), some(4)], {}, (4, 5, 6, 7)),
]


@pytest.mark.parametrize(("op_type", "more", "attributes", "shape"), OPERATORS)
def test_no_images(op_type, more, attributes, shape):
    expected = [np.zeros((0, *shape), np.float32)]
    check(op_type, [X[:0], *more], forms=["inputs", "symbols"], expected=expected, **attributes)


def test_an_image_without_room_for_the_window_is_refused_in_a_run():
    plan = lowered(model_of("Conv", [X, some(6, 4, 3, 3, 3)], "symbols", 20, 1, {}))
    with pytest.raises(compiler.RunError):
        compiler.load(plan).run({"x0": X[:, :, :2]})
