"""Models that break the standard: the compiler refuses them with and without optimization, and guesses no meaning."""

import onnx.parser
import pytest

import compiler
from compiler import CompileError, Options

HEAD = '<ir_version: 10, opset_import: ["": 22]> '

NODES = {
    # inputs, nodes, code and message
    "a type that an input does not have": (
        "float[4] x, float[1] at",
        "y = Slice(x, at, at)",
        "CC0205 Slice's input starts is float32, not int32 or int64",
    ),
    "one type for two": ("float[4] x, int64[4] z", "y = Add(x, z)", "CC0205 Add's input B is int64, but A"),
    "a sequence for a tensor": (
        "float[4] x, seq(float[4]) s",
        "t = SequenceInsert(s, x, s) y = SequenceAt(t, i) i = Constant<value_int = 0>()",
        "CC0205 SequenceInsert's input position is sequence of float32, not int32 or int64",
    ),
    "a cast to no type": ("float[4] x", "y = Cast<to = 100>(x)", "CC0202 Cast has the element type 100"),
    "a flag that is none": (
        "float[2, 3] x",
        "y = ReduceMax<keepdims = -3>(x)",
        "CC0202 ReduceMax's attribute keepdims is 0 or 1, not -3",
    ),
    "an order of no axes": (
        "float[2, 3] x",
        "y = Transpose<perm = [0, -1]>(x)",
        "CC0202 perm [0, -1] is not a permutation",
    ),
    "a kernel of another rank": (
        "float[1, 1, 4, 4] x, float[1, 1, 3, 3] w",
        "y = Conv<kernel_shape = [3]>(x, w)",
        "CC0202 kernel_shape [3] differs from the weights' [3, 3]",
    ),
    "parts of an axis that there is not": (
        "float[3] x",
        "s = SplitToSequence<axis = 1>(x) i = Constant<value_int = 0>() y = SequenceAt(s, i)",
        "CC0210 SplitToSequence: axis 1",
    ),
    "a shape that is no list": ("int64 n", "y = ConstantOfShape(n)", "CC0205 ConstantOfShape's shape is a list"),
    "an image's shape that is no list": (
        "float[1, 4, 4] x, int64 n, int64[2] b",
        "y = Col2Im(x, n, b)",
        "CC0205 'n' of Col2Im is a list",
    ),
    "a loss of other places than the scores": (
        "float[3, 5, 6] x, int64[3, 2] t",
        'y = NegativeLogLikelihoodLoss<reduction = "none">(x, t)',
        (  # the words of newer and of older versions of onnx
            "CC0210 NegativeLogLikelihoodLoss: Dimension mismatch in unification between 6 and 2",
            "CC0210 NegativeLogLikelihoodLoss: Input and target dimension value mismatch.",
        ),
    ),
    "a loop whose body takes less": (
        "float[2] x, int64 n, bool c",
        """y = Loop(n, c, x, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] r) {
            l = Identity(k) r = Neg(s)
        }>""",
        "CC0205 Loop's body takes 3 inputs and gives 2 outputs, not 4 and 3 or more",
    ),
    "a scan of more than there is": (
        "float[3, 2] x",
        "y = Scan<num_scan_inputs = 2, body = b (float[2] s) => (float[2] r) { r = Neg(s) }>(x)",
        "CC0202 Scan's num_scan_inputs is 2: expected a number from 1 to 1",
    ),
    "a branch with an input": (
        "float[2] x, bool c",
        """y = If (c) <then_branch = t (float[2] s) => (float[2] r) { r = Neg(s) },
                       else_branch = e () => (float[2] q) { q = Neg(x) }>""",
        "CC0205 a branch of If must have no inputs, but has 1",
    ),
    "a map over fewer sequences than its body takes": (
        "float[2] x",
        """s = SequenceConstruct(x) i = Constant<value_int = 0>() y = SequenceAt(m, i)
        m = SequenceMap(s) <body = b (float[2] a, float[2] c) => (float[2] r) { r = Add(a, c) }>""",
        "CC0210 SequenceMap: the body takes 2 inputs, but the node has 1",
    ),
    "a map over more sequences than its body takes": (
        "float[2] x",
        """s = SequenceConstruct(x) i = Constant<value_int = 0>() y = SequenceAt(m, i)
        m = SequenceMap(s, s) <body = b (float[2] a) => (float[2] r) { r = Neg(a) }>""",
        "CC0210 SequenceMap: the body takes 1 inputs, but the node has 2",
    ),
    "a node that nobody needs": (
        "float[2] x, float[3] z",
        "y = Neg(x) unused = Add(x, z)",
        "CC0210 Add: the shapes float32 [2] and float32 [3] do not broadcast",
    ),
    "an attribute of a node that is dropped": (
        "float[2] x",
        "t = Identity<heat = 1>(x) y = Neg(t)",
        "CC0203 Identity-21 does not support the attribute heat",
    ),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", NODES)
def test_a_wrong_model_is_refused(case, optimize):
    inputs, nodes, expected = NODES[case]
    model = onnx.parser.parse_model(f"{HEAD} g ({inputs}) => (y) {{ {nodes} }}")
    with pytest.raises(CompileError) as error:
        compiler.compile(model, Options(optimize=optimize))
    found = [f"{each.code} {each.message}" for each in error.value.diagnostics]
    assert any(each.startswith(expected) for each in found), found


@pytest.mark.parametrize("optimize", [True, False])
def test_a_slice_of_more_axes_than_starts_is_refused(optimize):
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[4, 4] x) => (y) {{
            b = Constant<value_ints = [0]>() e = Constant<value_ints = [2]>() a = Constant<value_ints = [0, 1]>()
            s = Slice(x, b, e, a) y = Neg(s)
        }}"""
    )
    with pytest.raises(CompileError, match="Slice: starts, ends, axes and steps must have one length"):
        compiler.compile(model, Options(optimize=optimize))
