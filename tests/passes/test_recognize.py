"""Operators that consist of several nodes: the passes recognize all forms of exporters, and keep the results."""

import pytest

from compiler.passes.recognize_activations import recognize_activations
from compiler.passes.recognize_gelu import recognize_gelu
from compiler.passes.recognize_layer_norm import recognize_layer_norm
from compiler.passes.recognize_rms_norm import recognize_rms_norm
from compiler.passes.recognize_softmax import recognize_softmax

CLOSE = (1e-5, 1e-6)
CONSTANTS = """float zero = {0}, float half = {0.5}, float one = {1}, float two = {2}, float three = {3},
    float twenty = {20}, float six = {6}, float sixth = {0.16666667}, float eps = {0.001}, float root = {1.4142135},
    float tip = {0.70710677}, float cubic = {0.044715}, float scale = {0.7978846}, float alpha = {1.702},
    float[1] cube = {3}, float[4] g = {1, 2, 3, 4}, float[1, 4] b = {5, 6, 7, 8}, int64[1] last = {-1},
    int64[2] both = {1, 2}"""
HEAD = f"agraph (float[N, 3, 4] x) => (float[N, 3, 4] y) <{CONSTANTS}>"


def nodes(model):
    """The remaining operators, with their inputs."""
    return [f"{node.op_type}({', '.join(value.name for value in node.inputs if value)})" for node in model.graph]


def check(check_pass, parse, pass_, body, expected, opset=24):
    model = parse(f"{HEAD} {{ {body} }}", opset=opset)
    report = check_pass(pass_, model, same_results=CLOSE)
    assert nodes(model) == expected
    return report


MEAN = "m = ReduceMean(x, last)  d = Sub(x, m)"
VARIANCE = "q = Pow(d, two)  v = ReduceMean(q, last)  w = Add(v, eps)  s = Sqrt(w)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{MEAN} {VARIANCE} y = Div(d, s)", ["LayerNormalization(x, ones)"]),
        (f"{MEAN} {VARIANCE} r = Reciprocal(s)  y = Mul(r, d)", ["LayerNormalization(x, ones)"]),
        (f"{MEAN} {VARIANCE} r = Div(one, s)  y = Mul(d, r)", ["LayerNormalization(x, ones)"]),
        (f"{MEAN} {VARIANCE} n = Div(d, s)  y = Mul(n, g)", ["LayerNormalization(x, g)"]),
        (f"{MEAN} {VARIANCE} n = Div(d, s)  k = Mul(n, g)  y = Add(b, k)", ["LayerNormalization(x, g, b_1)"]),
        (f"{MEAN} {VARIANCE} n = Div(d, s)  y = Add(b, n)", ["LayerNormalization(x, ones, b_1)"]),
        (f"{MEAN} {VARIANCE} n = Div(d, s)  y = Mul(n, two)", ["LayerNormalization(x, ones)", "Mul(val_0, two)"]),
        (
            "m = ReduceMean(x, both)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean(q, both)  w = Add(v, eps)"
            " s = Pow(w, half)  y = Div(d, s)",
            ["LayerNormalization(x, ones)"],
        ),
    ],
)
def test_layer_norm(check_pass, parse, body, expected):
    check(check_pass, parse, recognize_layer_norm, body, expected)


def test_layer_norm_with_axes_as_attributes(check_pass):
    check_pass(
        recognize_layer_norm,
        """
        agraph (float[N, 4] x, float[4] g, float[4] b) => (float[N, 4] y) <float two = {2}, float eps = {0.00001}> {
            m = ReduceMean<axes=[-1]>(x)
            d = Sub(x, m)
            q = Pow(d, two)
            v = ReduceMean<axes=[1]>(q)
            w = Add(v, eps)
            s = Sqrt(w)
            n = Div(d, s)
            k = Mul(n, g)
            y = Add(k, b)
        }
        """,
        """
        input x: float[N, 4]
        input g: float[4]
        input b: float[4]
        constant two = float[] {2}
        constant eps = float[] {1e-05}
        constant ones = float[4] {1, 1, 1, 1}
        y = LayerNormalization:17(x, g, b, axis=-1, epsilon=1e-05)
        return y
        """,
        opset=17,
        same_results=CLOSE,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            f"m = ReduceMean<keepdims=1>(x, both) d = Sub(x, m) {VARIANCE} y = Div(d, s)",
            "the axes differ or are not known",
        ),
        (
            "first = Constant<value_ints=[1]>()  m = ReduceMean(x, first)  d = Sub(x, m)  q = Pow(d, two)"
            " v = ReduceMean(q, first)  w = Add(v, eps)  s = Sqrt(w)  y = Div(d, s)",
            "the axes [-2] are not the last ones",
        ),
        (
            "all = Constant<value_ints=[0, 1, 2]>()  m = ReduceMean(x, all)  d = Sub(x, m)  q = Pow(d, two)"
            " v = ReduceMean(q, all)  w = Add(v, eps)  s = Sqrt(w)  y = Div(d, s)",
            "the sizes of the axes are not known",
        ),
        (
            f"{MEAN} q = Pow(d, two)  v = ReduceMean(q, last)  w = Add(v, g)  s = Sqrt(w)  y = Div(d, s)",
            "ε is not one number",
        ),
    ],
)
def test_what_is_no_layer_norm(check_pass, parse, body, reason):
    report = check_pass(recognize_layer_norm, parse(f"{HEAD} {{ {body} }}"), same_results=None)
    assert [missed.reason for missed in report.missed] == [reason]
    assert not report.changed


@pytest.mark.parametrize("square", ["q = Mul(x, x)", "q = Pow(x, two)"])
@pytest.mark.parametrize(
    "rest",
    [
        "n = Div(x, s)  y = Mul(n, g)",
        "r = Reciprocal(s)  n = Mul(x, r)  y = Mul(g, n)",
        "r = Div(one, s)  n = Mul(r, x) y = Mul(g, n)",
    ],
)
def test_rms_norm(check_pass, parse, square, rest):
    body = f"{square}  m = ReduceMean(x=q, last)  w = Add(m, eps)  s = Sqrt(w)  {rest}".replace("x=q", "q")
    check(check_pass, parse, recognize_rms_norm, body, ["RMSNormalization(x, g)"])


@pytest.mark.parametrize("scaled", ["a = Div(x, root)", "a = Mul(x, tip)", "a = Mul(tip, x)"])
@pytest.mark.parametrize(
    "product",
    [
        "p = Mul(x, u)  y = Mul(p, half)",
        "p = Mul(u, x)  y = Div(p, two)",
        "p = Mul(half, x)  y = Mul(p, u)",
        "p = Div(x, two)  y = Mul(u, p)",
        "p = Mul(u, half)  y = Mul(x, p)",
        "p = Div(u, two)  y = Mul(x, p)",
    ],
)
def test_gelu(check_pass, parse, scaled, product):
    check(check_pass, parse, recognize_gelu, f"{scaled}  e = Erf(a)  u = Add(e, one)  {product}", ["Gelu(x)"])


@pytest.mark.parametrize(
    "polynomial",
    [
        "q = Pow(x, cube)  k = Mul(q, cubic)  p = Add(x, k)",
        "q = Mul(x, x)  r = Mul(q, x)  k = Mul(cubic, r)  p = Add(x, k)",
        "q = Mul(cubic, x)  r = Mul(x, q)  k = Mul(x, r)  p = Add(x, k)",
        "q = Mul(x, x)  r = Mul(x, cubic)  k = Mul(q, r)  p = Add(k, x)",
        "q = Mul(x, x)  r = Mul(q, cubic)  k = Add(one, r)  p = Mul(k, x)",
    ],
)
def test_tanh_gelu(check_pass, parse, polynomial):
    body = f"{polynomial}  s = Mul(p, scale)  t = Tanh(s)  u = Add(one, t)  h = Mul(u, half)  y = Mul(x, h)"
    check(check_pass, parse, recognize_gelu, body, ["Gelu(x)"])


def test_constants_that_enlarge_the_result_are_no_gelu(check_pass):
    text = """
        agraph (float[4] x) => (float[1, 4] y) <float[1, 1] half = {0.5}, float one = {1}, float root = {1.4142135}> {
            a = Div(x, root)  e = Erf(a)  u = Add(e, one)  p = Mul(x, u)  y = Mul(p, half)
        }
        """
    report = check_pass(recognize_gelu, text, same_results=None)
    assert [missed.reason for missed in report.missed] == ["the constants may enlarge the result"]


CLIP = "a = Add(x, three)  c = Clip(a, zero, six)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = Sigmoid(x)  y = Mul(x, s)", "Swish(x)"),
        ("a = Mul(x, alpha)  s = Sigmoid(a)  y = Mul(s, x)", "Swish(x)"),
        ("s = HardSigmoid<alpha=0.16666667, beta=0.5>(x)  y = Mul(s, x)", "HardSwish(x)"),
        (f"{CLIP}  p = Mul(x, c)  y = Div(p, six)", "HardSwish(x)"),
        (f"{CLIP}  p = Mul(x, c)  y = Mul(p, sixth)", "HardSwish(x)"),
        (f"{CLIP}  p = Div(c, six)  y = Mul(p, x)", "HardSwish(x)"),
        (f"{CLIP}  p = Mul(x, sixth)  y = Mul(p, c)", "HardSwish(x)"),
        ("p = Softplus(x)  t = Tanh(p)  y = Mul(x, t)", "Mish(x)"),
        ("p = Softplus(x)  o = Greater(x, twenty)  y = Where(o, x, p)", "Softplus(x)"),
    ],
)
def test_activations(check_pass, parse, body, expected):
    check(check_pass, parse, recognize_activations, body, [expected])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s = HardSigmoid(x)  y = Mul(s, x)", "the slope is 0.2"),
        ("a = Mul(x, g)  s = Sigmoid(a)  y = Mul(s, x)", "alpha is not one number"),
        ("a = Add(x, three)  c = Clip(a, zero, three)  p = Mul(x, c)  y = Div(p, six)", "the bounds are [0.0, 3.0]"),
        ("p = Softplus(x)  o = Greater(x, six)  y = Where(o, x, p)", "the threshold is too low"),
    ],
)
def test_what_is_no_activation(check_pass, parse, body, reason):
    report = check_pass(recognize_activations, parse(f"{HEAD} {{ {body} }}", opset=22), same_results=CLOSE)
    assert [missed.reason for missed in report.missed] == [reason]


@pytest.mark.parametrize("quotient", ["y = Div(e, s)", "r = Reciprocal(s)  y = Mul(e, r)"])
def test_softmax(check_pass, parse, quotient):
    body = f"m = ReduceMax(x, last)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum(e, last)  {quotient}"
    check(check_pass, parse, recognize_softmax, body, ["Softmax(x)"])


def test_a_sum_over_other_axes_is_no_softmax(check_pass, parse):
    body = "m = ReduceMax(x, last)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum(e, both)  y = Div(e, s)"
    report = check(
        check_pass,
        parse,
        recognize_softmax,
        body,
        ["ReduceMax(x, last)", "Sub(x, m)", "Exp(d)", "ReduceSum(e, both)", "Div(e, s)"],
    )
    assert [missed.reason for missed in report.missed] == ["the reductions are not over the same single axis"]
