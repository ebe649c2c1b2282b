"""Views of nodes: the meaning of attributes and inputs in every opset."""

import onnx_ir as ir
import pytest

from compiler.ir.views.pad import PadView
from compiler.ir.views.reduce import ReduceView, axes_of
from compiler.ir.views.reshape import SqueezeView
from compiler.ir.views.resize import Changes, ResizeView
from compiler.ir.views.slice import Range, SliceView, ranges_of
from compiler.ir.views.split import Part, SplitToSequenceView
from compiler.ir.views.transpose import TransposeView
from compiler.lower import refusals

X = "float[2, 6, 8] x, float[N, 6] s"


def last(parse, text, opset=18, constants=""):
    model = parse(f"agraph ({X}, int64[1] k) => (float y) {constants and f'<{constants}>'} {{ {text} }}", opset=opset)
    return list(model.graph)[-1]


SLICES = {
    ("y = Slice<starts=[1, -3], ends=[5, 100], axes=[1, -1]>(x)", 9, ""): {1: Range(1, 5), 2: Range(5, 8)},
    ("y = Slice<starts=[1], ends=[2]>(x)", 9, ""): {0: Range(1, 2)},
    ("y = Slice(x, a, b, c, d)", 13, "int64[1] a={1}, int64[1] b={-1}, int64[1] c={-2}, int64[1] d={2}"): {
        1: Range(1, 5, 2)
    },
    ("y = Slice(x, a, b)", 13, "int64[2] a={0, 7}, int64[2] b={1, 2}"): {0: Range(0, 1), 1: Range(6, 6)},
    ("y = Slice(s, a, b)", 13, "int64[2] a={2, -1}, int64[2] b={4, 9}"): {0: Range(2, 4), 1: Range(5, 6)},
    ("y = Slice(s, a, b)", 13, "int64[1] a={-1}, int64[1] b={4}"): None,
    ("y = Slice(x, a, b, a, d)", 13, "int64[1] a={1}, int64[1] b={0}, int64[1] d={-1}"): None,
    ("y = Slice(x, a, b, c)", 13, "int64[2] a={1, 1}, int64[2] b={2, 2}, int64[2] c={1, -2}"): None,
    ("y = Slice(x, a, b, c)", 13, "int64[1] a={1}, int64[1] b={2}, int64[1] c={3}"): None,
    ("y = Slice(x, k, b)", 13, "int64[1] b={2}"): None,
    ("y = Exp(x)", 13, ""): None,
}


@pytest.mark.parametrize(("text", "opset", "constants"), SLICES)
def test_ranges_of_slices(parse, text, opset, constants):
    assert ranges_of(last(parse, text, opset, constants)) == SLICES[text, opset, constants]


def test_each_axis_of_a_slice_is_known_by_itself(parse):
    node = last(parse, "y = Slice(s, a, b)", 13, "int64[2] a={-1, 0}, int64[2] b={9, 4}")
    assert SliceView.of(node).ranges(node.inputs[0].shape.dims) == {0: None, 1: Range(0, 4)}


@pytest.mark.parametrize(
    ("text", "opset"), [("a, y = Split<axis=-1, split=[3, 5]>(x)", 11), ("a, y = Split<axis=2>(x, p)", 18)]
)
def test_parts_of_splits(parse, text, opset):
    node = last(parse, text, opset, "int64[2] p={3, 5}" if opset == 18 else "")
    for value, size in zip(node.outputs, (3, 5), strict=True):
        value.shape = ir.Shape([2, 6, size])
    assert Part.of(node.outputs[1]) == Part(node.inputs[0], 2, 3, 8)
    node.outputs[0].shape = None
    assert Part.of(node.outputs[1]) is None


SEQUENCES = {
    ("y = SplitToSequence(x)", ""): (0, (1, 1, 1), True),
    ("y = SplitToSequence<axis=-1, keepdims=0>(x)", ""): (-1, (1, 1, 1), False),
    ("y = SplitToSequence<keepdims=0>(x, n)", "int64 n={2}"): (0, (2, 1), True),
    ("y = SplitToSequence(x, n)", "int64[2] n={1, 2}"): (0, (1, 2), True),
    ("y = SplitToSequence(x, n)", "int64 n={0}"): (0, None, True),
    ("y = SplitToSequence(x, k)", ""): (0, None, True),
}


@pytest.mark.parametrize(("text", "constants"), SEQUENCES)
def test_parts_of_sequences(parse, text, constants):
    view = SplitToSequenceView.of(last(parse, text, 11, constants))
    assert (view.axis, view.sizes(3), view.keeps_axis) == SEQUENCES[text, constants]


PADS = {
    ("y = Pad<pads=[0, 1, 0, 0, 2, 0], value=0.5>(x)", 10, ""): (0.5, [[0, 1, 0], [0, 2, 0]]),
    ("y = Pad(x, p, , a)", 18, "int64[2] p={1, 2}, int64[1] a={-2}"): (0.0, [[0, 1, 0], [0, 2, 0]]),
    ("y = Pad(x, p, v)", 18, "int64[6] p={0, 0, 0, 0, 0, 3}, float v={2.5}"): (2.5, [[0, 0, 0], [0, 0, 3]]),
    ("y = Pad(x, p)", 18, "int64[2] p={1, 2}"): (0.0, None),
    ("y = Pad(x, p, , a)", 18, "int64[2] p={1, 2}, int64[1] a={3}"): (0.0, None),
}


@pytest.mark.parametrize(("text", "opset", "constants"), PADS)
def test_amounts_of_pads(parse, text, opset, constants):
    view, (number, amounts) = PadView.of(last(parse, text, opset, constants)), PADS[text, opset, constants]
    found = view.amounts(3)
    assert (view.number, None if found is None else found.tolist()) == (number, amounts)


AXES = {
    ("y = ReduceSum<axes=[0, -1]>(x)", 11, ""): (-3, -1),
    ("y = ReduceMean<axes=[1]>(x)", 17, ""): (-2,),
    ("y = ReduceMean(x, a)", 18, "int64[1] a={2}"): (-1,),
    ("y = ReduceSum(x)", 13, ""): (-3, -2, -1),
    ("y = ReduceSum<noop_with_empty_axes=1>(x)", 13, ""): None,
    ("y = ReduceSum(x, k)", 13, ""): None,
}


@pytest.mark.parametrize(("text", "opset", "constants"), AXES)
def test_axes_of_reductions(parse, text, opset, constants):
    assert axes_of(last(parse, text, opset, constants)) == AXES[text, opset, constants]


def test_axes_and_orders(parse):
    assert SqueezeView.of(last(parse, "y = Unsqueeze<axes=[-1, 0]>(x)", 11)).normalized_axes(5) == [4, 0]
    assert SqueezeView.of(last(parse, "y = Squeeze(x)", 13)).normalized_axes(3) is None
    assert TransposeView.of(last(parse, "y = Transpose(x)")).order(3) == (2, 1, 0)
    assert TransposeView.of(last(parse, "y = Transpose<perm=[0, 0, 1]>(x)")).order(3) is None


CHANGES = {
    ("y = Upsample<scales=[1.0, 2.0, 2.0]>(x)", 7, ""): Changes(2, 2),
    ("y = Resize(x, f)", 10, "float[3] f={2, 2, 2}"): Changes(3, 3),
    ("y = Resize(x, , f)", 18, "float[3] f={1, 1, 2}"): Changes(1, 1),
    ("y = Resize<axes=[-1, 1]>(x, , , z)", 18, "int64[2] z={8, 7}"): Changes(1, 1),
    ("y = Resize(s, , , z)", 18, "int64[2] z={1, 7}"): Changes(1, 2),
}


@pytest.mark.parametrize(("text", "opset", "constants"), CHANGES)
def test_axes_that_a_resize_changes(parse, text, opset, constants):
    node = last(parse, text, opset, constants)
    assert ResizeView.of(node, opset).changes(node.inputs[0].shape.dims, None) == CHANGES[text, opset, constants]


def test_sizes_of_the_result_show_the_changes(parse):
    view = ResizeView.of(last(parse, "y = Resize(x, , , k)"), 18)
    assert view.changes([2, 6, 8], None) == Changes(0, 3)
    assert view.changes([2, 6, 8], [4, 6, 9]) == Changes(2, 2)


def test_no_view_of_a_node_with_an_attribute_of_another_type(parse):
    node = last(parse, "y = ReduceSum<axes=[0]>(x)", 11)
    node.attributes["axes"] = ir.AttrString("axes", "rows")
    assert ReduceView.of(node) is None


UNREAD = {
    "y = Slice<starts=[0]>(x, a, b)": "Slice-13 does not support the attribute starts",
    "y = Pad<pads=[0, 0, 0, 0, 0, 1]>(x, p)": "Pad-18 does not support the attribute pads",
    "y = ReduceMean<axes=[0]>(x, a)": "ReduceMean-18 does not support the attribute axes",
}


@pytest.mark.parametrize("text", UNREAD)
def test_an_attribute_that_became_an_input_stays_unread(parse, text):
    constants = "<int64[1] a = {0}, int64[1] b = {1}, int64[6] p = {0, 0, 0, 0, 0, 1}>"
    (diagnostic,) = refusals(parse(f"agraph ({X}) => (float y) {constants} {{ {text} }}", opset=18))
    assert (diagnostic.code, diagnostic.message) == ("CC0203", UNREAD[text])
