import warnings

import onnx_ir as ir
import pytest

import compiler
from compiler.frontend.load import load_model
from compiler.ir import origin
from compiler.lower import refusals
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.reject_3d import reject_3d

X = "float[1, 2, 4, 4, 4] x"
NODES = {
    "y = Conv<kernel_shape=[3, 3, 3]>(x, w)": "3-D convolution is not supported (kernel 3×3×3)",
    "y = ConvTranspose(x, w)": "3-D transposed convolution is not supported (kernel 3×3×3)",
    "y = MaxPool<kernel_shape=[2, 2, 2]>(x)": "3-D max pooling is not supported (kernel 2×2×2)",
    "y = AveragePool<kernel_shape=[2, 2, 2]>(x)": "3-D average pooling is not supported (kernel 2×2×2)",
    "y = GlobalAveragePool(x)": "3-D global average pooling is not supported",
    "y = BatchNormalization(x, v, v, v, v)": "3-D batch normalization is not supported",
    "y = InstanceNormalization(x, v, v)": "3-D instance normalization is not supported",
    "y = Resize(x, , s)": "3-D resizing is not supported",
    "y = GridSample(x, grid)": "3-D grid sampling is not supported",
}
FINE = [
    "y = ReduceMean<keepdims=1>(x, axes)",
    "y = Transpose<perm=[0, 1, 4, 2, 3]>(x)",
    "y = Resize(x, , two)",
    "y = Add(x, x)",
]


def check(model):
    infer_shapes.run(model)
    return reject_3d.run(model).refused


@pytest.mark.parametrize("node", NODES)
def test_every_operator(parse, node):
    inputs = f"{X}, float[2, 2, 3, 3, 3] w, float[2] v, float[1, 2, 2, 2, 3] grid"
    constants = "<float[5] s = {1, 1, 2, 2, 2}>"
    model = parse(f"agraph ({inputs}) => (float[a, b, c, d, e] y) {constants} {{ {node} }}")
    (diagnostic,) = check(model)
    assert (diagnostic.code, diagnostic.message) == ("CC0301", NODES[node])


@pytest.mark.parametrize("node", FINE)
def test_five_dimensions_without_three_spatial_ones(parse, node):
    constants = "<float[5] two = {1, 1, 1, 2, 2}, int64[3] axes = {2, 3, 4}>"
    model = parse(f"agraph ({X}) => (float[a, b, c, d, e] y) {constants} {{ {node} }}")
    infer_shapes.run(model)
    assert not reject_3d.run(model).changed


def test_attributes_give_unknown_shapes(parse):
    model = parse("agraph (float x) => (float y) { y = MaxPool<kernel_shape=[2, 2, 2]>(x) }")
    model.graph.inputs[0].shape = None
    assert len(check(model)) == 1


RESIZES = {
    "shape arithmetic": """(float[1, 2, 3, 4] x, float[1, 3, 1] z) => (float y)
        <float[3] scales = {2, 2, 2}, int64[1] zero = {0}, int64[1] one = {1}> {
            part = Slice(x, zero, one, zero)
            row = Squeeze(part, zero)
            small = Min(row, z)
            product = Mul(row, small)
            angle = Atan(product)
            y = Resize(angle, , scales)
        }""",
    "rank 3": "(float[2, 3, 4] x) => (float y) <float[3] scales = {2, 2, 2}> { y = Resize(x, , scales) }",
    "rank 4": "(float[2, 3, 4, 1] x) => (float y) <int64[4] s = {4, 6, 8, 1}> { y = Resize(x, , , s) }",
    "unknown rank": """(float[n] x, int64[k] t) => (float y) <float[3] scales = {2, 2, 2}> {
        a = Reshape(x, t)
        y = Resize(a, , scales)
    }""",
    "computed sizes": """(float[2, 3, 4] x) => (float y) <int64[3] z = {2, 3, 4}> {
        sizes = Add(z, z)
        y = Resize<axes=[0, 1, 2]>(x, , , sizes)
    }""",
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", RESIZES)
def test_no_plan_resizes_three_axes(parse, case, optimize):
    model = ir.to_proto(parse(f"agraph {RESIZES[case]}"))
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(model, compiler.Options(optimize=optimize))
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("CC0301", "3-D resizing is not supported")
    assert diagnostic.help
    assert diagnostic.origin.nodes == ("Resize(y)",)


@pytest.mark.parametrize("node", NODES)
def test_the_lowering_refuses_three_dimensions_that_the_pass_did_not_see(parse, node):
    inputs = f"{X}, float[2, 2, 3, 3, 3] w, float[2] v, float[1, 2, 2, 2, 3] grid"
    model = parse(f"agraph ({inputs}) => (float y) <float[5] s = {{1, 1, 2, 2, 2}}> {{ {node} }}")
    (diagnostic,) = refusals(model)
    assert diagnostic.code in ("CC0205", "CC0210", "CC0301")
    assert diagnostic.origin == origin.of(model.graph[0])


def test_four_dimensions_of_unknown_factors_are_taken(parse):
    model = parse("agraph (float[1, 2, 4, 4] x, float[4] s) => (float[a, b, c, d] y) { y = Resize(x, , s) }")
    assert not check(model)


@pytest.mark.parametrize("late", [False, True])
def test_the_lowering_refuses_three_axes_by_itself(parse, late):
    values = "(float[2, 3, 4] x, float[3] s) => (float[4, 6, 8] y) <float[3] two = {2, 2, 2}>"
    (diagnostic,) = refusals(parse(f"agraph {values} {{ y = Resize(x, , {'s' if late else 'two'}) }}"))
    assert (diagnostic.code, diagnostic.message) == ("CC0301", "3-D resizing is not supported")


def test_all_layers_with_module_and_line():
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv3d(1, 2, 3)
            self.pool = torch.nn.MaxPool3d(2)

        def forward(self, x):
            y = self.conv(x)
            return self.pool(y)

    module = torch.nn.Sequential(Block(), torch.nn.ConvTranspose3d(2, 1, 2)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto = torch.onnx.export(module, (torch.randn(1, 1, 8, 8, 8),), dynamo=True, verbose=False).model_proto
    diagnostics = check(load_model(proto).model)
    found = [(item.origin.module, item.origin.layer) for item in diagnostics]
    assert found == [("0.conv", "Conv3d"), ("0.pool", "MaxPool3d"), ("1", "ConvTranspose3d")]
    line = Block.forward.__code__.co_firstlineno + 1
    assert diagnostics[0].origin.source == f"test_reject_3d.py:{line} in Block.forward"
    assert str(diagnostics[0]).splitlines()[:2] == [
        "error[CC0301]: 3-D convolution is not supported (kernel 3×3×3)",
        f"  --> test_reject_3d.py:{line} in Block.forward   0.conv : Conv3d   Conv(node_conv3d)",
    ]
