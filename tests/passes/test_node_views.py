"""Views of nodes: the meaning of attributes and inputs in every opset."""

import onnx_ir as ir
import pytest

import compiler
from compiler.ir.views.blocks import BlocksView
from compiler.ir.views.clip import ClipView
from compiler.ir.views.einsum import EinsumView
from compiler.ir.views.gather import GatherNdView
from compiler.ir.views.grid_sample import GridSampleView
from compiler.ir.views.hard_sigmoid import HardSigmoidView
from compiler.ir.views.norm import BatchNormView, NormView
from compiler.ir.views.pad import PadView
from compiler.ir.views.product import ProductView
from compiler.ir.views.quantize import QuantizeView
from compiler.ir.views.reduce import ReduceView, axes_of
from compiler.ir.views.reshape import SqueezeView
from compiler.ir.views.resize import Changes, ResizeView
from compiler.ir.views.scan import ScanView
from compiler.ir.views.shape import ShapeView
from compiler.ir.views.slice import Range, SliceView, ranges_of
from compiler.ir.views.softmax import SoftmaxView
from compiler.ir.views.split import Part, SplitToSequenceView
from compiler.ir.views.transpose import TransposeView
from compiler.ir.views.triangle import TriangleView
from compiler.ir.views.window import WindowView
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


WINDOWS = {
    "y = Conv<strides=[2], pads=[1, 0], group=3>(x, s)": ("s", None, (2,), (1,), (1, 0), 3, False, False),
    "y = Conv<kernel_shape=[3], dilations=[2]>(x, s)": ("s", (3,), (1,), (2,), (0, 0), 1, False, False),
    "y = QLinearConv(x, k, k, s, k, k, k, k)": ("s", None, (1,), (1,), (0, 0), 1, False, False),
    "y = MaxPool<kernel_shape=[2], ceil_mode=1>(x)": (None, (2,), (1,), (1,), (0, 0), 1, True, False),
    "y = AveragePool<kernel_shape=[2], count_include_pad=1>(x)": (None, (2,), (1,), (1,), (0, 0), 1, False, True),
    "y = MaxUnpool<kernel_shape=[2], pads=[0, 1]>(x, k)": (None, (2,), (1,), (1,), (0, 1), 1, False, False),
    "y = Col2Im<strides=[3]>(x, k, k)": (None, None, (3,), (1,), (0, 0), 1, False, False),
}


@pytest.mark.parametrize("text", WINDOWS)
def test_windows(parse, text):
    view = WindowView.of(last(parse, text), complete=True)
    weights = None if view.weights is None else view.weights.name
    sizes = view.strides_of(1), view.dilations_of(1), view.pads_of(1)
    assert (weights, view.kernel, *sizes, view.groups, view.rounds_up, view.counts_pads) == WINDOWS[text]


def test_no_view_of_a_window_without_sizes(parse):
    assert WindowView.of(last(parse, "y = MaxPool(x)")) is None
    assert WindowView.of(last(parse, 'y = Conv<auto_pad="VALID">(x, s)')).auto_pad == "VALID"


TRANSPOSED = {
    "y = ConvTranspose(x, s)": ((0,), None),
    "y = ConvTranspose<output_padding=[2], output_shape=[9]>(x, s)": ((2,), (9,)),
    "y = ConvTranspose<output_shape=[2, 6, 9]>(x, s)": ((0,), (9,)),
    "y = ConvTranspose<output_shape=[1, 9]>(x, s)": ((0,), (1, 9)),
}


@pytest.mark.parametrize("text", TRANSPOSED)
def test_sizes_of_transposed_convolutions(parse, text):
    view = WindowView.of(last(parse, text), complete=True)
    assert (view.output_padding_of(1), view.output_sizes_of(1)) == TRANSPOSED[text]


def test_the_order_of_the_indices_of_maxima(parse):
    pooling = "y, i = MaxPool<kernel_shape=[2], storage_order={}>(x)"
    assert [WindowView.of(last(parse, pooling.format(order))).column_major for order in (0, 1)] == [False, True]


def test_grid_samples(parse):
    view = GridSampleView.of(last(parse, 'y = GridSample<mode="bicubic", align_corners=1>(x, s)', 16), complete=True)
    assert (view.x.name, view.grid.name, view.mode, view.padding, view.align_corners) == (
        "x",
        "s",
        "cubic",
        "zeros",
        True,
    )
    view = GridSampleView.of(last(parse, 'y = GridSample<padding_mode="border">(x, s)', 20))
    assert (view.mode, view.padding, view.align_corners) == ("linear", "border", False)
    assert GridSampleView.of(last(parse, "y = GridSample<mode=1>(x, s)", 20)) is None


REDUCED = {
    ("y = ReduceMean<axes=[0]>(x)", 11, ""): ([], {"axes": [1, 2]}),
    ("y = ReduceMean(x, a)", 18, "int64[1] a={0}"): ([[1, 2]], {}),
    ("y = ReduceMean(x)", 18, ""): ([], {}),
}


@pytest.mark.parametrize(("text", "opset", "constants"), REDUCED)
def test_a_reduction_of_other_axes(parse, text, opset, constants):
    arrays, attributes = ReduceView.of(last(parse, text, opset, constants)).with_axes([1, 2])
    assert ([array.tolist() for array in arrays], attributes) == REDUCED[text, opset, constants]
    assert all(array.dtype == "int64" for array in arrays)


BOUNDS = {
    ("y = Clip<min=-1.0>(x)", 6, ""): (-1.0, "absent"),
    ("y = Clip<max=6.0>(x)", 6, ""): ("absent", 6.0),
    ("y = Clip(x)", 13, ""): ("absent", "absent"),
    ("y = Clip(x, , h)", 13, "float h={2.5}"): ("absent", 2.5),
    ("y = Clip(x, h, k)", 13, "float[1] h={2.5}"): (2.5, None),
    ("y = Clip(x, h)", 13, "float[2] h={1, 2}"): (None, "absent"),
}


@pytest.mark.parametrize(("text", "opset", "constants"), BOUNDS)
def test_bounds_of_clips(parse, text, opset, constants):
    view = ClipView.of(last(parse, text, opset, constants))
    found = tuple("absent" if bound is None else bound.number for bound in (view.low, view.high))
    assert found == BOUNDS[text, opset, constants]


def test_attributes_of_products(parse):
    assert ProductView.of(last(parse, "y = Gemm<transB=1, alpha=0.5>(s, s, k)")) == ProductView(False, True, 0.5)
    assert ProductView.of(last(parse, "y = MatMul(s, s)")) == ProductView(False, False)
    own = ir.Node("candle.plan", "MatMul", [], [ir.AttrInt64("trans_a", 1)])
    assert ProductView.of(own) == ProductView(True, False)
    assert [ProductView(False, False, *factors).is_scaled for factors in ((1.0, 1.0), (2.0,), (1.0, 0.0))] == [
        False,
        True,
        True,
    ]


def test_attributes_of_quantizations(parse):
    view = QuantizeView.of(last(parse, "y = QuantizeLinear<axis=0, saturate=0, output_dtype=3>(x, s, k)", 23))
    assert (view.zero.name, view.axis, view.block, view.to, view.saturate) == ("k", 0, 0, "int8", False)
    view = QuantizeView.of(last(parse, "y = DequantizeLinear<block_size=16>(x, s)", 23), complete=True)
    assert (view.zero, view.axis, view.block, view.to, view.precision) == (None, 1, 16, None, None)
    assert QuantizeView.of(last(parse, "y = QuantizeLinear<output_dtype=99>(x, s)", 23)) is None
    assert QuantizeView.of(last(parse, "y = DequantizeLinear<saturate=1>(x, s)", 23), complete=True) is None


def test_attributes_of_shapes_norms_and_indices(parse):
    shape = ShapeView.of(last(parse, "y = Shape<start=-2>(x)"))
    assert (shape.x.name, shape.start, shape.end) == ("x", -2, None)
    assert GatherNdView.of(last(parse, "y = GatherND<batch_dims=1>(x, k)")).batch_axes == 1
    assert NormView.of(last(parse, "y = InstanceNormalization<epsilon=0.5>(x, k, k)")).epsilon == 0.5
    assert NormView.of(last(parse, "y = LayerNormalization(x, k)")) == NormView(1e-5, -1)
    norm = BatchNormView.of(last(parse, "y = BatchNormalization<spatial=0>(x, k, k, k, k)", 7))
    assert (norm.is_spatial, norm.is_training, norm.momentum) == (False, False, 0.9)
    assert [SoftmaxView.of(last(parse, "y = Softmax(x)")).axis(version) for version in (11, 13)] == [1, -1]


def test_attributes_of_blocks_triangles_and_equations(parse):
    assert BlocksView.of(last(parse, "y = SpaceToDepth<blocksize=2>(x)")) == BlocksView(2, "DCR")
    assert BlocksView.of(last(parse, 'y = DepthToSpace<mode="CRD">(x)')) is None
    triangle = TriangleView.of(last(parse, "y = Trilu<upper=0>(x, k)"))
    assert (triangle.x.name, triangle.diagonal.name, triangle.is_upper) == ("x", "k", False)
    assert TriangleView.of(last(parse, "y = Trilu(x)")).is_upper
    assert EinsumView.of(last(parse, 'y = Einsum<equation="bij->bji">(x)')).equation == "bij->bji"
    assert EinsumView.of(last(parse, "y = Einsum(x)")) is None
    assert HardSigmoidView.of(last(parse, "y = HardSigmoid<beta=0.25>(x)")) == HardSigmoidView(pytest.approx(0.2), 0.25)


def test_attributes_of_scans(parse):
    scan = last(parse, "y = Scan<num_scan_inputs=2, scan_input_axes=[1, -1], scan_output_directions=[1]>(s, x, x)", 9)
    assert ScanView.of(scan) == ScanView(2, (1, -1), (), (), (1,))
    assert ScanView.of(last(parse, "y = Scan<num_scan_inputs=2>(x, x)", 9)).axes_of_inputs() == (0, 0)
    batch = last(parse, "y = Scan<num_scan_inputs=1, directions=[1]>(, x)", 8)
    assert ScanView.of(batch, complete=True) == ScanView(1, (), (1,), (), ())
    assert ScanView.of(last(parse, "y = Scan(x)", 9)) is None


UNKNOWN = {
    "DepthToSpace": "a = Unsqueeze(x, zero_axis)  b = DepthToSpace<blocksize=1, other=1>(a)  y = Squeeze(b, zero_axis)",
    "Einsum": 'y = Einsum<equation="bij,bkj->bik", other=1>(x, x)',
    "HardSigmoid": "a = HardSigmoid<alpha=0.16666667, other=1>(x)  y = Mul(x, a)",
    "Gemm": "a = Reshape(x, flat)  b = Gemm<other=1>(a, weights)  y = Reshape(b, full)",
    "GatherND": "y = GatherND<other=1>(x, rows)",
    "BatchNormalization": "a = Conv(x, kernel)  y = BatchNormalization<other=1>(a, ones, ones, ones, ones)",
    "Clip": "a = Add(x, three)  b = Clip<other=1>(a, zero, six)  c = Mul(x, b)  y = Div(c, six)",
    "DequantizeLinear": """
        a = QuantizeLinear(x, half)  b = DequantizeLinear<other=1>(a, half)  c = Add(b, b)
        d = QuantizeLinear(c, half)  y = DequantizeLinear(d, half)
    """,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_no_pass_drops_an_unknown_attribute(parse, name):
    constants = """
        int64[2] flat = {-1, 4}, int64[3] full = {2, 6, 4}, int64[2, 1] rows = {1, 0}, float[1] ones = {1},
        float[4, 4] weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7},
        float[1, 6, 1] kernel = {1, 2, 3, 4, 5, 6}, float three = {3}, float zero = {0},
        float six = {6}, float half = {0.5}, int64[1] zero_axis = {0}
    """
    model = parse(f"agraph (float[2, 6, 4] x) => (float[A, B, C] y) <{constants}> {{ {UNKNOWN[name]} }}", opset=18)
    with pytest.raises(compiler.CompileError) as raised:
        compiler.compile(ir.serde.serialize_model(model), compiler.Options(skip_passes=["check_nodes"]))
    (found,) = raised.value.diagnostics
    assert found.code == "CC0203" and f"{name}-" in found.message and "the attribute other" in found.message


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
