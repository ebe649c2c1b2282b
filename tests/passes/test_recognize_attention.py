import numpy as np
import onnxruntime
import pytest

import compiler
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_attention import recognize_attention

CLOSE = (1e-5, 1e-5)
SIGNATURE = "float[2,4,3,8] q, float[2,4,6,8] k, float[2,4,6,5] v"

PLAIN = {
    "scaled before": """
        <float root = {0.5}> {
            qs = Mul(q, root)
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            ks = Mul(kt, root)
            s = MatMul(qs, ks)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, v)
        }
    """,
    "scaled before and transposed after": """
        <float root = {0.5}> {
            qs = Mul(q, root)
            ks = Mul(k, root)
            kt = Transpose<perm = [0, 1, 3, 2]>(ks)
            s = MatMul(qs, kt)
            w = Softmax<axis = 3>(s)
            y = MatMul(w, v)
        }
    """,
    "scaled after": """
        <float factor = {0.25}> {
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            p = MatMul(q, kt)
            s = Mul(p, factor)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, v)
        }
    """,
    "divided after": """
        <float factor = {4.0}> {
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            p = MatMul(q, kt)
            s = Div(p, factor)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, v)
        }
    """,
    "transposed between reshapes": """
        <float factor = {0.25}, int64[3] folded = {8, 6, 8}, int64[4] apart = {2, 4, 8, 6}> {
            k3 = Reshape(k, folded)
            t3 = Transpose<perm = [0, 2, 1]>(k3)
            kt = Reshape(t3, apart)
            qs = Mul(q, factor)
            s = MatMul(qs, kt)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, v)
        }
    """,
}


EXPORTED = """
    agraph (float[3,8,8] q3, float[6,8,8] k3, float[2,4,6,5] v) => (float[2,4,3,5] y)
    <float root = {0.5}, int64[4] queries = {2, 4, 3, 8}, int64[4] apart = {2, 4, 8, 6}> {
        qt = Transpose<perm = [1, 0, 2]>(q3)
        q = Reshape(qt, queries)
        k = Transpose<perm = [1, 0, 2]>(k3)
        t = Transpose<perm = [0, 2, 1]>(k)
        kt = Reshape(t, apart)
        qs = Mul(q, root)
        ks = Mul(kt, root)
        s = MatMul(qs, ks)
        w = Softmax<axis = -1>(s)
        y = MatMul(w, v)
    }
"""


def graph(body, signature=SIGNATURE):
    return f"agraph ({signature}) => (float[2,4,3,5] y) {body.strip()}"


def recognized(model):
    """The only node of the model after the pass."""
    infer_shapes.run(model)
    assert recognize_attention.run(model).fired
    (node,) = model.graph
    return node


def operators(model):
    return [(node.domain, node.op_type) for node in model.graph]


@pytest.mark.parametrize("form", PLAIN)
def test_forms(check_pass, parse, form):
    model = parse(graph(PLAIN[form]), opset=23)
    report = check_pass(recognize_attention, model, same_results=CLOSE)
    assert report.fired and operators(model) == [("", "Attention")]
    assert model.graph[0].attributes["scale"].as_float() == 0.25


def test_keys_of_all_batches_and_heads_in_one_axis(check_pass, parse):
    model = parse(EXPORTED, opset=23)
    check_pass(recognize_attention, model, same_results=CLOSE)
    kinds = [kind for _, kind in operators(model)]
    assert kinds == ["Transpose", "Reshape", "Transpose", "Reshape", "Attention"]


def attention(scores, guard="w", *, mask=None, constants=""):
    """The text of an attention with a mask, and with these nodes between softmax and the product with the values."""
    signature = SIGNATURE + (f", {mask} m" if mask else "")
    head = f"<{constants}>" if constants else ""
    return graph(
        f"""{head} {{
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            p = MatMul(q, kt)
            {scores}
            w = Softmax<axis = -1>(s)
            {"" if guard == "w" else "n = IsNaN(w)" + chr(10) + "g = Where(n, zero, w)"}
            y = MatMul({guard}, v)
        }}""",
        signature,
    )


BLIND = "float lowest = {-inf}, float zero = {0.0}"


@pytest.mark.parametrize("mask", ["float[3,6]", "float[2,1,3,6]", "float[4,1,6]", "float[6]"])
def test_masks_given_at_run_time_may_leave_no_key(parse, mask):
    node = recognized(parse(attention("s = Add(m, p)", mask=mask)))
    assert (node.domain, node.attributes["guard"].as_string()) == ("candle.plan", "nothing")


def test_guards_against_queries_without_a_key(parse):
    scores = "a = Where(m, zero, lowest)\n s = Add(p, a)"
    node = recognized(parse(attention(scores, "g", mask="bool[2,1,3,6]", constants=BLIND)))
    assert (node.domain, node.attributes["guard"].as_string()) == ("candle.plan", "undefined")
    assert node.inputs[3].name == "m"


def test_masks_of_finite_numbers_leave_every_key(check_pass, parse):
    constants = "float lowest = {-1e9}, float zero = {0.0}"
    scores = "a = Where(m, zero, lowest)\n s = Add(p, a)"
    model = parse(attention(scores, mask="bool[2,1,3,6]", constants=constants), opset=23)
    check_pass(recognize_attention, model, same_results=CLOSE)
    assert operators(model) == [("", "Where"), ("", "Attention")]


@pytest.mark.parametrize(("blind", "domain"), [(False, ""), (True, "candle.plan")])
def test_constant_masks_are_looked_at(parse, blind, domain):
    rows = np.triu(np.full((3, 6), -np.inf, "float32"), 0 if blind else 1).ravel()
    numbers = ", ".join("-inf" if number else "0.0" for number in rows)
    node = recognized(parse(attention("s = Add(p, a)", constants=f"float[3,6] a = {{{numbers}}}")))
    assert (node.domain, node.op_type) == (domain, "Attention")


FILLED = "float lowest = {-inf}, float zero = {0.0}"


@pytest.mark.parametrize(
    ("scores", "kinds"),
    [
        ("s = Where(m, p, lowest)", ["Attention"]),
        ("s = Where(m, lowest, p)", ["Not", "Attention"]),
        ("n = Not(m)  s = Where(n, lowest, p)", ["Attention"]),
    ],
)
@pytest.mark.parametrize("mask", ["bool[3,6]", "bool[2,1,3,6]"])
def test_scores_that_are_filled(parse, scores, kinds, mask):
    model = parse(attention(scores, mask=mask, constants=FILLED))
    infer_shapes.run(model)
    assert recognize_attention.run(model).fired
    assert [node.op_type for node in model.graph] == kinds
    assert model.graph[-1].attributes["guard"].as_string() == "nothing"


@pytest.mark.parametrize(("blind", "domain"), [(False, ""), (True, "candle.plan")])
@pytest.mark.parametrize("scores", ["s = Where(a, p, lowest)", "s = Where(a, lowest, p)"])
def test_constant_choices_are_looked_at(check_pass, parse, scores, blind, domain):
    seen = np.tril(np.ones((3, 6), bool), -1 if blind else 0)
    chosen = seen if scores.endswith("lowest)") else ~seen
    constants = f"{FILLED}, bool[3,6] a = {{{', '.join(str(int(item)) for item in chosen.ravel())}}}"
    model = parse(attention(scores, constants=constants), opset=23)
    check_pass(recognize_attention, model, same_results=None if blind else CLOSE)
    assert operators(model) == [(domain, "Attention")]


def test_other_numbers_fill_no_scores(parse):
    model = parse(attention("s = Where(m, low, p)", mask="bool[3,6]", constants="float low = {-1e9}"))
    infer_shapes.run(model)
    assert not recognize_attention.run(model).fired


TRIANGLE = """h = Shape(q)  l = Slice(h, two, three)  e = Shape(k)  c = Slice(e, two, three)
    size = Concat<axis = 0>(l, c)  ones = Expand(one, size)  tri = Trilu<upper = 0>(ones)"""
NUMBERS = "float one = {1}, float zero = {0}, float lowest = {-3.4028235e38}, float hidden = {-inf}"
PLACES = "bool true = {1}, int64[1] two = {2}, int64[1] three = {3}, int64 first = {1}"


def triangular(scores, triangle=TRIANGLE):
    signature = "float[2,4,L,8] q, float[2,4,S,8] k, float[2,4,S,5] v"
    body = f"""<{NUMBERS}, {PLACES}> {{
        {triangle}
        kt = Transpose<perm = [0, 1, 3, 2]>(k)
        p = MatMul(q, kt)
        {scores}
        w = Softmax<axis = -1>(s)
        y = MatMul(w, v)
    }}"""
    return f"agraph ({signature}) => (float[2,4,L,5] y) {body}"


@pytest.mark.parametrize(
    "scores",
    [
        "z = Equal(tri, zero)  m = Where(z, lowest, zero)  s = Add(p, m)",
        "z = Equal(tri, zero)  s = Where(z, hidden, p)",
        "m = Where(tri, zero, hidden)  s = Add(p, m)",
    ],
)
def test_triangles_made_at_run_time_are_causal(check_pass, parse, scores):
    triangle = TRIANGLE.replace("Expand(one", "Expand(true") if "Where(tri" in scores else TRIANGLE
    model = parse(triangular(scores, triangle), opset=23)
    infer_shapes.run(model)
    check_pass(recognize_attention, model, same_results=CLOSE)
    node = model.graph[-1]
    assert (node.domain, node.attributes["is_causal"].as_int(), len(node.inputs)) == ("", 1, 3)


@pytest.mark.parametrize(
    "change",
    [("upper = 0", "upper = 1"), ("(ones)", "(ones, first)"), ("Expand(one,", "Expand(zero,"), ("(l, c)", "(c, c)")],
)
def test_other_triangles_are_masks(parse, change):
    text = triangular("z = Equal(tri, zero)  s = Where(z, hidden, p)", TRIANGLE.replace(*change))
    model = parse(text, opset=23)
    infer_shapes.run(model)
    recognize_attention.run(model)
    assert not any("is_causal" in node.attributes for node in model.graph)


def test_heads_that_were_repeated(check_pass, parse):
    repeat = """
            {0}u = Unsqueeze({0}, axis)
            {0}e = Expand({0}u, wide{0})
            {0}r = Reshape({0}e, flat{0})
    """
    body = f"""<int64[1] axis = {{2}}, int64[5] widek = {{2, 2, 2, 6, 8}}, int64[4] flatk = {{2, 4, 6, 8}},
        int64[5] widev = {{2, 2, 2, 6, 5}}, int64[4] flatv = {{2, 4, 6, 5}}> {{
            {repeat.format("k")} {repeat.format("v")}
            kt = Transpose<perm = [0, 1, 3, 2]>(kr)
            s = MatMul(q, kt)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, vr)
        }}"""
    model = parse(graph(body, "float[2,4,3,8] q, float[2,2,6,8] k, float[2,2,6,5] v"), opset=23)
    check_pass(recognize_attention, model, same_results=CLOSE)
    assert operators(model) == [("", "Attention")]


def test_keys_with_positions_first(check_pass, parse):
    body = """{
        kt = Transpose<perm = [0, 2, 3, 1]>(k)
        s = MatMul(q, kt)
        w = Softmax<axis = -1>(s)
        y = MatMul(w, v)
    }"""
    model = parse(graph(body, "float[2,4,3,8] q, float[2,6,4,8] k, float[2,4,6,5] v"), opset=23)
    check_pass(recognize_attention, model, same_results=CLOSE)
    assert operators(model) == [("", "Transpose"), ("", "Attention")]
    assert list(model.graph[0].attributes["perm"].value) == [0, 2, 1, 3]


def test_one_axis_of_batches_and_heads(check_pass, parse):
    text = """
        agraph (float[8,3,8] q, float[8,6,8] k, float[8,6,5] v) => (float[8,3,5] y) {
            kt = Transpose<perm = [0, 2, 1]>(k)
            s = MatMul(q, kt)
            w = Softmax<axis = -1>(s)
            y = MatMul(w, v)
        }
    """
    model = parse(text, opset=23)
    check_pass(recognize_attention, model, same_results=CLOSE)
    assert [kind for _, kind in operators(model)] == ["Unsqueeze", "Unsqueeze", "Unsqueeze", "Attention", "Squeeze"]


REFUSED = {
    "not transposed": """{ s = MatMul(q, k)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
    "along the last axis": """{ t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  w = Softmax<axis = 2>(s)
        y = MatMul(w, v) }""",
    "positive constant": """<float f = {-1.0}> { t = Transpose<perm = [0, 1, 3, 2]>(k)  p = MatMul(q, t)
        s = Mul(p, f)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
    "element for each key": """<float[1] m = {1.0}> { t = Transpose<perm = [0, 1, 3, 2]>(k)  p = MatMul(q, t)
        s = Add(p, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_why_not(check_pass, reason):
    sizes = "float[2,4,6,6] q, float[2,4,6,6] k, float[2,4,6,6] v"
    text = f"agraph ({sizes}) => (float[2,4,6,6] y) {REFUSED[reason].strip()}"
    report = check_pass(recognize_attention, text)
    assert not report.fired and reason in report.missed[0].reason


def test_scores_that_are_needed_stay(check_pass):
    text = graph(PLAIN["scaled after"]).replace("float[2,4,3,5] y", "float[2,4,3,5] y, float[2,4,3,6] w")
    report = check_pass(recognize_attention, text)
    assert not report.fired and "needed elsewhere" in report.missed[0].reason


def dot_product(**options):
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class DotProduct(torch.nn.Module):
        def forward(self, q, k, v, mask=None):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, **options)

    return DotProduct()


def self_attention():
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class SelfAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0]

    return SelfAttention()


def encoder():
    return pytest.importorskip("torch", reason="needs PyTorch").nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


X = np.random.default_rng(0).normal(size=(2, 4, 6, 8)).astype("float32")
SEEN = np.tri(6, dtype=bool)[None, None] & (np.arange(6) != 2)[:, None]


def filled(q, k, v, hidden):
    scores = (q @ k.transpose(-1, -2) / 3.0).masked_fill(hidden, -np.inf)
    return scores.softmax(-1) @ v


def by_hand():
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class ByHand(torch.nn.Module):
        def forward(self, q, k, v, hidden):
            return filled(q, k, v, hidden)

    return ByHand()


MODULES = {
    "plain": (dot_product, [X, X, X]),
    "mask of booleans": (dot_product, [X, X, X, SEEN]),
    "added mask": (dot_product, [X, X, X, X[0, 0, :, :6]]),
    "filled": (by_hand, [X, X, X, ~SEEN]),
    "causal": (lambda: dot_product(is_causal=True), [X, X, X]),
    "few heads": (lambda: dot_product(enable_gqa=True), [X, X[:, :2], X[:, 2:]]),
    "self-attention": (self_attention, [X[0, :, :, :4].reshape(2, 3, 16)]),
    "encoder": (encoder, [X[0, :, :, :4].reshape(2, 3, 16)]),
}


@pytest.mark.usefixtures("quick_exports")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dynamo", "opset"), [(True, 18), (True, 20), (False, 17)])
@pytest.mark.parametrize("name", MODULES)
def test_exported_from_torch(tmp_path, name, dynamo, opset):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    if not dynamo and name in ("few heads", "encoder"):
        pytest.skip("the TorchScript exporter cannot write it")
    make, arrays = MODULES[name]
    torch.manual_seed(0)
    path, arguments = tmp_path / "m.onnx", tuple(map(torch.from_numpy, arrays))
    torch.onnx.export(make().eval(), arguments, path, dynamo=dynamo, opset_version=opset, verbose=False)
    reports = []
    plan = compiler.compile(path, compiler.Options(on_pass=reports.append))
    assert any(report.fired for report in reports if report.name == "recognize_attention")
    session = compiler.load(plan, threads=1)
    feeds = {info.name: array for info, array in zip(session.inputs, arrays, strict=True)}
    (expected,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    (found,) = session.run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
