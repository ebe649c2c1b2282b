import pytest

from compiler.passes.absorb_transposes import absorb_transposes

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


def test_products_of_stacks_stay(check_pass):
    text = """
        agraph (float[2,3,4] a, float[2,5,4] b) => (float[2,3,5] y) {
            t = Transpose<perm = [0, 2, 1]>(b)
            y = MatMul(a, t)
        }
    """
    report = check_pass(absorb_transposes, text)
    assert not report.fired and report.missed[0].reason == "not both sides are matrices"


def test_attention_with_values_as_they_are_stays(check_pass):
    text = ATTENTION.format(kv=4, perm=[0, 2, 1, 3]).replace("vt = Transpose<perm = [0, 2, 1, 3]>(v)", "")
    text = text.replace("(qt, kt, vt)", "(qt, kt, v)").replace("float[B,6,4,5] v", "float[B,4,6,5] v")
    report = check_pass(absorb_transposes, text, opset=23)
    assert not report.fired
    assert report.missed[0].reason == "queries, keys and values are not all transposed"
