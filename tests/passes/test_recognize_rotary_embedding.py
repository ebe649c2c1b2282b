"""Rotary position embeddings in the forms that exporters write become one node, and give the same results."""

import numpy as np
import onnx_ir as ir
import pytest

import compiler
from compiler.accuracy.reference import Reference
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_rotary_embedding import recognize_rotary_embedding

CONSTANTS = """int64[1] none = {0}, int64[1] half = {4}, int64[1] all = {8}, int64[1] end = {9223372036854775807},
    int64[1] last = {-1}, int64[1] one = {1}, int64[1] two = {2}, int64[1] twelve = {12}, float scaling = {1.25},
    int64[4] whole = {0, 0, 0, 8}"""
HALVES = "a = Slice(x, none, half, last, one)  b = Slice(x, half, end, last, one)"
NEIGHBORS = "a = Slice(x, none, end, last, two)  b = Slice(x, one, end, last, two)"
DOUBLED = """f2 = Concat<axis=-1>(f, f)  c2 = Cos(f2)  s2 = Sin(f2)  c3 = Mul(c2, scaling)
    cos = Unsqueeze(c3, one)  sin = Unsqueeze(s2, one)"""
ONCE = "c = Cos(f)  s = Sin(f)  cos = Unsqueeze(c, one)  sin = Unsqueeze(s, one)"
SWAPPED = "n = Neg(b)  r = Concat<axis=-1>(n, a)  p = Mul(x, cos)  q = Mul(r, sin)  y = Add(p, q)"
TURNED = "ac = Mul(a, cos)  bs = Mul(sin, b)  as = Mul(a, sin)  bc = Mul(b, cos)  u = Sub(ac, bs)  v = Add(bc, as)"
STACKED = f"{TURNED} u1 = Unsqueeze(u, last)  v1 = Unsqueeze(v, last)  w = Concat<axis=-1>(u1, v1)"


def text(body, x="N, 3, L, 8", f="N, L, 4", y="N, 3, L, 8"):
    return f"agraph (float[{x}] x, float[{f}] f) => (float[{y}] y) <{CONSTANTS}> {{ {body} }}"


def inputs(x=(2, 3, 5, 8), f=(2, 5, 4)):
    generator = np.random.default_rng(0)
    return {name: generator.standard_normal(shape, np.float32) for name, shape in (("x", x), ("f", f))}


def agrees(model, given):
    proto = ir.to_proto(model)
    found = compiler.load(compiler.compile(proto)).run(given)["y"]
    np.testing.assert_allclose(found, Reference(proto).run(given)["y"], rtol=1e-5, atol=1e-6)


def turned(check_pass, model):
    """The rotary embeddings that the pass makes, and its report."""
    infer_shapes.run(model)
    report = check_pass(recognize_rotary_embedding, model, same_results=None)
    return [node for node in model.graph if node.op_type == "RotaryEmbedding"], report


@pytest.mark.parametrize(
    ("body", "shape", "interleaved"),
    [
        (f"{HALVES} {DOUBLED} {SWAPPED}", "N, L, 4", 0),
        (f"{HALVES} {DOUBLED} {SWAPPED}", "1, L, 4", 0),
        (f"{HALVES} {ONCE} {TURNED} y = Concat<axis=-1>(u, v)", "N, L, 4", 0),
        (f"{NEIGHBORS} {ONCE} {STACKED} y = Reshape(w, whole)", "N, L, 4", 1),
        (f"{NEIGHBORS} cos = Cos(f)  sin = Sin(f) {STACKED} y = Reshape(w, whole)", "L, 4", 1),
        (f"a, b = Split<axis=-1, num_outputs=2>(x) {DOUBLED} {SWAPPED}", "N, L, 4", 0),
    ],
)
def test_becomes_one_node(check_pass, parse, body, shape, interleaved):
    model = parse(text(body, f=shape), opset=18)
    sizes = {"N": 2, "L": 5}
    agrees(model, inputs(f=[sizes.get(dim) or int(dim) for dim in shape.split(", ")]))
    (node,), _ = turned(check_pass, model)
    assert (node.inputs[0].name, node.attributes["interleaved"].as_int()) == ("x", interleaved)


def test_a_part_that_is_not_turned(check_pass, parse):
    body = f"""head = Slice(x, none, all, last)  rest = Slice(x, all, twelve, last)
        {HALVES.replace("(x,", "(head,")} {DOUBLED} {SWAPPED.replace("(x,", "(head,").replace("y =", "z =")}
        y = Concat<axis=-1>(z, rest)"""
    model = parse(text(body, x="N, 3, L, 12", y="N, 3, L, 12"), opset=18)
    agrees(model, inputs(x=(2, 3, 5, 12)))
    (node,), _ = turned(check_pass, model)
    assert (node.inputs[0].name, node.attributes["rotary_embedding_dim"].as_int()) == ("x", 8)


def test_a_transpose_comes_after(check_pass, parse):
    body = f"x = Transpose<perm=[0, 2, 1, 3]>(t) {HALVES} {DOUBLED} {SWAPPED}"
    model = parse(text(body, x="N, L, 3, 8").replace("] x,", "] t,"), opset=18)
    given = inputs(x=(2, 5, 3, 8))
    agrees(model, {"t": given["x"], "f": given["f"]})
    (node,), _ = turned(check_pass, model)
    assert node.attributes["num_heads"].as_int() == 3
    assert model.graph[-1].op_type == "Transpose"


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        (
            f"{HALVES} cos = Cos(f)  sin = Sin(f) {SWAPPED}",
            "N, 1, L, 8",
            "the halves of a table are not known to be equal",
        ),
        (f"{HALVES} {DOUBLED} {SWAPPED.replace('(n, a)', '(a, n)')}", "N, L, 4", None),
        (f"{NEIGHBORS} {DOUBLED} {SWAPPED}", "N, L, 4", "the pairs do not form a rotation"),
        (f"{HALVES} cos = Cos(f)  sin = Sin(f) {SWAPPED}", "3, 1, 8", "a table of [3,1,8] does not fit [N,3,L,8]"),
    ],
)
def test_near_misses(check_pass, parse, body, shape, reason):
    nodes, report = turned(check_pass, parse(text(body, f=shape), opset=18))
    assert nodes == []
    assert [miss.reason for miss in report.missed] == ([reason] if reason else [])
