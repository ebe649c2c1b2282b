import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

import compiler
from compiler.passes.absorb_transposes import absorb_transposes
from compiler.passes.infer_shapes import infer_shapes

CLOSE = (1e-5, 1e-5)


@pytest.mark.parametrize(
    ("body", "a", "b", "flags"),
    [
        ("t = Transpose<perm = [1, 0]>(a) y = MatMul(t, b)", "[4,3]", "[4,5]", (1, 0)),
        ("t = Transpose(b) y = MatMul(a, t)", "[3,4]", "[5,4]", (0, 1)),
        ("t = Transpose(a) u = Transpose(b) y = MatMul(t, u)", "[4,3]", "[5,4]", (1, 1)),
        ("t = Transpose(b) y = Gemm<alpha = 0.5>(a, t)", "[3,4]", "[5,4]", (0, 1)),
        ("t = Transpose(a) y = Gemm<transA = 1, transB = 1>(t, b)", "[3,4]", "[5,4]", (0, 1)),
    ],
)
def test_products_of_matrices(check_pass, parse, body, a, b, flags):
    model = parse(f"agraph (float{a} a, float{b} b) => (float[3,5] y) {{ {body} }}")
    assert check_pass(absorb_transposes, model, same_results=CLOSE).fired
    (node,) = model.graph
    attributes = node.attributes
    found = tuple(attributes[name].as_int() if name in attributes else 0 for name in ("transA", "transB"))
    assert (node.op_type, found) == ("Gemm", flags)


ATTENTION = """
    agraph (float[B,3,4,8] q, float[B,6,{kv},8] k, float[B,6,{kv},5] v) => (float[B,3,4,5] y) {{
        qt = Transpose<perm = [0, 2, 1, 3]>(q)
        kt = Transpose<perm = [0, 2, 1, 3]>(k)
        vt = Transpose<perm = {perm}>(v)
        a = Attention<scale = 0.5>(qt, kt, vt)
        y = Transpose<perm = [0, 2, 1, 3]>(a)
    }}
"""


@pytest.mark.parametrize("kv", [4, 2])
def test_attention_finds_the_heads(check_pass, parse, kv):
    model = parse(ATTENTION.format(kv=kv, perm=[0, 2, 1, 3]), opset=23)
    check_pass(absorb_transposes, model, same_results=CLOSE)
    assert [node.op_type for node in model.graph] == ["Reshape", "Reshape", "Reshape", "Attention", "Reshape"]
    attributes = model.graph[3].attributes
    assert [attributes[name].as_int() for name in ("q_num_heads", "kv_num_heads")] == [4, kv]
    assert attributes["scale"].as_float() == 0.5


STACKS = [
    ("t = Transpose<perm = [0, 2, 1]>(b) y = MatMul(a, t)", "[2,3,4]", "[2,5,4]", (0, 1)),
    ("t = Transpose<perm = [0, 2, 1]>(a) y = MatMul(t, b)", "[2,4,3]", "[2,4,5]", (1, 0)),
    ("t = Transpose<perm = [0, 2, 1]>(a) u = Transpose(b) y = MatMul(t, u)", "[2,4,3]", "[5,4]", (1, 1)),
    ("t = Transpose<perm = [0, 1, 3, 2]>(b) y = MatMul(a, t)", "[3,4]", "[1,2,5,4]", (0, 1)),
]


@pytest.mark.parametrize(("body", "a", "b", "flags"), STACKS)
def test_products_of_stacks(parse, body, a, b, flags):
    model = parse(f"agraph (float{a} a, float{b} b) => (float[x,y,z] y) {{ {body} }}")
    infer_shapes.run(model)
    absorb_transposes.run(model)
    (node,) = model.graph
    found = tuple(node.attributes[name].as_int() for name in ("trans_a", "trans_b"))
    assert (node.op_identifier(), found) == (("candle.plan", "MatMul", ""), flags)
    assert not absorb_transposes.run(model).fired


@pytest.mark.parametrize(("body", "a", "b", "flags"), STACKS)
def test_results_of_products_with_epilogues(parse, body, a, b, flags):
    body = body.replace("y = MatMul", "p = MatMul") + " q = Add(p, c) y = Relu(q)"
    text = f"agraph (float{a} a, float{b} b, float[5] c) => (float y) {{ {body} }}"
    model = ir.serde.serialize_model(parse(text))
    plan = compiler.compile(model)
    (step,) = plan.document["main"]["steps"]
    assert (step["op"]["MatMul"]["trans_a"], step["op"]["MatMul"]["trans_b"]) == tuple(map(bool, flags))
    random = np.random.default_rng(0)
    feeds = {info.name: random.normal(size=info.shape).astype("float32") for info in plan.inputs}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    (found,) = compiler.load(plan, threads=1).run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_transposes_of_other_axes_stay(check_pass):
    text = """
        agraph (float[2,3,4] a, float[5,2,4] b) => (float[2,3,5] y) {
            t = Transpose<perm = [1, 2, 0]>(b)
            y = MatMul(a, t)
        }
    """
    report = check_pass(absorb_transposes, text)
    assert not report.fired
    assert "the transpose moves other axes than the last two" in [miss.reason for miss in report.missed]


def test_attention_with_values_as_they_are_stays(check_pass):
    text = ATTENTION.format(kv=4, perm=[0, 2, 1, 3]).replace("vt = Transpose<perm = [0, 2, 1, 3]>(v)", "")
    text = text.replace("(qt, kt, vt)", "(qt, kt, v)").replace("float[B,6,4,5] v", "float[B,4,6,5] v")
    report = check_pass(absorb_transposes, text, opset=23)
    assert not report.fired
    assert report.missed[0].reason == "queries, keys and values are not all transposed"


def test_attention_with_positions_before_batches(check_pass, parse):
    text = """
        agraph (float[3,B,4,8] q, float[6,B,4,8] k, float[6,B,4,5] v) => (float[3,B,4,5] y) {
            qt = Transpose<perm = [1, 2, 0, 3]>(q)
            kt = Transpose<perm = [1, 2, 0, 3]>(k)
            vt = Transpose<perm = [1, 2, 0, 3]>(v)
            a = Attention<scale = 0.5>(qt, kt, vt)
            y = Transpose<perm = [2, 0, 1, 3]>(a)
        }
    """
    model = parse(text, opset=23)
    check_pass(absorb_transposes, model, same_results=CLOSE)
    kinds = [node.op_type for node in model.graph]
    assert kinds == [*["Reshape", "Transpose"] * 3, "Attention", "Reshape", "Transpose"]
    assert {tuple(node.attributes["perm"].as_ints()) for node in model.graph if node.op_type == "Transpose"} == {
        (1, 0, 2),
        (1, 0, 2, 3),
    }


def torch():
    return pytest.importorskip("torch", reason="needs PyTorch")


def attention(batch_first, **options):
    """A module of self-attention, or of attention to a second input, with biases that are not 0."""

    class Attention(torch().nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch().nn.MultiheadAttention(16, 4, batch_first=batch_first)
            torch().nn.init.normal_(self.inner.in_proj_bias)
            torch().nn.init.normal_(self.inner.out_proj.bias)

        def forward(self, x, y=None):
            other = x if y is None else y
            return self.inner(x, other, other, need_weights=False, **options)[0]

    return Attention()


def encoder():
    return torch().nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


def packed(is_causal):
    """A module with packed queries, keys and values, as models for images and for text have them."""

    class Packed(torch().nn.Module):
        def __init__(self):
            super().__init__()
            self.packed = torch().nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = self.packed(x).reshape(*x.shape[:2], 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = torch().nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
            return mixed.transpose(1, 2).reshape(x.shape)

    return Packed()


def causal():
    return torch().triu(torch().ones(6, 6, dtype=torch().bool), 1)


X, Y = (np.random.default_rng(0).normal(size=shape).astype("float32") for shape in ((2, 6, 16), (2, 5, 16)))
ONE = ["MatMul", "Split", "Attention", "MatMul"]
MODULES = {
    "batches first": (lambda: attention(True), [X], ONE),
    "masked": (lambda: attention(True, attn_mask=causal()), [X], ONE),
    "batches second": (
        lambda: attention(False),
        [X],
        ["MatMul", "Split", "Transpose", "Transpose", "Transpose", "Attention", "MatMul", "Transpose"],
    ),
    "cross": (lambda: attention(True), [X, Y], ["MatMul", "MatMul", "Split", "Attention", "MatMul"]),
    "vision": (lambda: packed(False), [X], ["MatMul", "Split", "Attention"]),
    "text": (lambda: packed(True), [X], ["MatMul", "Split", "Attention"]),
    "encoder": (encoder, [X], [*ONE, "LayerNorm", "MatMul", "MatMul", "LayerNorm"]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "exporter", "dims"),
    [
        *((name, "dynamo", None) for name in MODULES),
        *((name, "script", None) for name in ("batches first", "masked", "batches second", "cross", "vision")),
        ("batches first", "dynamo", [{0: "batch", 1: "length"}]),
        *((name, "dynamo", [{0: "batch", 1: "length"}]) for name in ("vision", "text", "batches second")),
        ("text", "script", [{0: "batch", 1: "length"}]),
    ],
)
def test_exported_from_torch(check_export, name, exporter, dims):
    make, arrays, expected = MODULES[name]
    assert check_export(make(), arrays, exporter=exporter, dims=dims, tolerance=1e-5) == expected
