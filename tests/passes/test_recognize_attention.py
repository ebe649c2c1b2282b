import numpy as np
import pytest

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


def graph(body, signature=SIGNATURE):
    return f"agraph ({signature}) => (float[2,4,3,5] y) {body.strip()}"


def recognized(model):
    """The node after the pass, of a model that it makes one node of."""
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


def attention(scores, guard="w", *, mask=None, constants=""):
    """The text of an attention with a mask, and what comes between softmax and the values."""
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
