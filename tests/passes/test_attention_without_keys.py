"""The fusion of attention that gives zeros to a query without a key, as `compiler.export` writes it."""

import pytest

from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.recognize_attention import recognize_attention

CLOSE = (1e-5, 1e-5)
CONSTANTS = "float lowest = {-inf}, float zero = {0.0}, int64[1] last = {-1}, int64[1] rows = {-2}"
BLIND = "h = ReduceMax(a, last)  e = Equal(h, lowest)"
ROWS = ", ".join(["-inf"] * 6 + ["0.0"] * 12)
A = f"float[3,6] a = {{{ROWS}}}"


def text(mask="", blind=BLIND, given="", constants=""):
    """An attention with the mask `a`. Its weights are zero where `e` is true."""
    return f"""
        agraph (float[2,4,3,8] q, float[2,4,6,8] k, float[2,4,6,5] v{given and f", {given} m"}) => (float[2,4,3,5] y)
        <{CONSTANTS}{constants and f", {constants}"}> {{
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            p = MatMul(q, kt)
            {mask}
            s = Add(p, a)
            {blind}
            w = Softmax<axis = -1>(s)
            g = Where(e, zero, w)
            y = MatMul(g, v)
        }}"""


CASES = {
    "a mask of numbers": ({"mask": "a = Mul(m, m)", "given": "float[2,1,3,6]"}, "a"),
    "a mask of booleans": ({"mask": "a = Where(m, zero, lowest)", "given": "bool[2,1,3,6]"}, "m"),
    "a mask of two axes": ({"mask": "a = Where(m, zero, lowest)", "given": "bool[3,6]"}, "m"),
    "a constant": ({"constants": A}, "a"),
    "a constant, folded": ({"blind": "", "constants": f"{A}, bool[3,1] e = {{1, 0, 0}}"}, "a"),
}


@pytest.mark.parametrize("name", CASES)
def test_queries_without_a_key_give_zeros(check_pass, parse, name):
    """This is what ONNX's operator does."""
    options, mask = CASES[name]
    model = parse(text(**options), opset=23)
    infer_shapes.run(model)
    assert check_pass(recognize_attention, model, same_results=CLOSE).fired
    node = model.graph[-1]
    assert (node.domain, node.op_type, node.inputs[3].name) == ("", "Attention", mask)


OTHERS = {
    "smallest elements": {"blind": BLIND.replace("Max", "Min")},
    "elements of the queries": {"blind": BLIND.replace("a,", "q,")},
    "another number": {"blind": BLIND.replace("lowest", "zero")},
    "another axis": {"blind": BLIND.replace("last", "rows"), "given": "float[2,4,3,6]"},
    "another comparison": {"blind": "e = Less(a, zero)"},
    "another constant": {"mask": "", "blind": "", "given": "", "constants": f"{A}, bool[3,1] e = {{1, 1, 0}}"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_zeros_stay(check_pass, parse, name):
    given = {"mask": "a = Mul(m, m)", "given": "float[2,1,3,6]", **OTHERS[name]}
    model = parse(text(**given), opset=23)
    infer_shapes.run(model)
    report = check_pass(recognize_attention, model)
    assert not report.fired and "leaves no key" in report.missed[0].reason
