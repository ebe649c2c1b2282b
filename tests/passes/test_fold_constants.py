import numpy as np
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest

import compiler
from compiler.errors import CompileError
from compiler.ir.text import graph_text
from compiler.passes.fold_constants import fold_constants
from compiler.passes.infer_shapes import infer_shapes


def fold(check_pass, evaluate, model, **options):
    infer_shapes.run(model)
    return check_pass(fold_constants(evaluate, **options), model, same_results=None)


def test_constants_are_computed(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            two = Constant<value_float=2.0>()
            a = Mul(w, two)
            b = Add(a, w)
            y = Add(x, b)
        }
        """
    )
    report = fold(check_pass, evaluate, model)
    text = graph_text(model.graph)
    assert text.endswith("constant b = float[2] {3, 6}\ny = Add(x, b)\nreturn y\n")
    assert len(report.fired) == 2


def test_shapes_become_constants(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[2, 6] x) => (float[3, 4] y) <int64[1] head = {3}, int64[1] rest = {-1}> {
            s = Shape(x)
            t = Concat<axis=0>(head, rest)
            y = Reshape(x, t)
        }
        """
    )
    fold(check_pass, evaluate, model, only_indices=True)
    assert "constant t = int64[2] {3, -1}" in graph_text(model.graph)


def test_results_that_grow_are_left(check_pass, parse, evaluate):
    model = parse(
        "agraph (float[1] x) => (float[4000000] y) <float[1] w = {1}, int64[1] n = {4000000}> "
        "{ a = Expand(w, n)  y = Add(x, a) }"
    )
    report = fold(check_pass, evaluate, model)
    assert not report.changed
    assert [missed.reason for missed in report.missed] == ["the result is much larger than the inputs"]


def test_random_values_are_left(check_pass, parse, evaluate):
    model = parse(
        "agraph (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = RandomNormalLike(w)  y = Add(x, a) }"
    )
    assert not fold(check_pass, evaluate, model).changed


def test_an_output_that_is_constant(check_pass, parse, evaluate):
    model = parse("agraph (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Neg(w) }")
    fold(check_pass, evaluate, model)
    assert "constant y = float[2] {-1, -2}\nreturn y" in graph_text(model.graph)


def test_inside_nested_graphs(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
            y = If(c) <
                then_branch = g1 () => (float[2] t) { n = Neg(w)  t = Add(x, n) },
                else_branch = g2 () => (float[2] e) { e = Exp(x) }
            >
        }
        """
    )
    fold(check_pass, evaluate, model)
    assert "    constant n = float[2] {-1, -2}\n    t = Add(x, n)" in graph_text(model.graph)


def test_a_node_that_fails_is_left(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            a = other.Thing(w)
            b = Neg(w)
            c = Add(a, b)
            y = Add(x, c)
        }
        """,
        domains="other",
    )
    for node in model.graph:
        node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    report = fold(check_pass, evaluate, model)
    assert "constant b = float[2] {-1, -2}" in graph_text(model.graph)
    assert len(report.missed) == 1


@pytest.mark.parametrize("dtype", ["float16", "int64", "bool"])
def test_types(check_pass, parse, evaluate, dtype):
    from compiler.lower import evaluate as our_own

    array = np.array([0, 1], dtype)
    value = ir.Value(name="w", const_value=ir.tensor(array), type=ir.TensorType(ir.DataType.from_numpy(array.dtype)))
    node = ir.Node("", "Identity", [value])
    (found,) = our_own([node], node.outputs, {"": 20})
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_constant_that_divides_by_zero_is_refused(kind, operator, optimize):
    graph = f"({kind}[1] x) => ({kind}[1] y) <{kind}[1] a = {{1}}, {kind} b = {{0}}>"
    text = f'<ir_version: 10, opset_import: ["" : 20]> g {graph} {{ c = {operator}(a, b) y = Add(x, c) }}'
    model = onnx.parser.parse_model(text)
    with pytest.raises(CompileError) as error:
        compiler.compile(model, compiler.Options(optimize=optimize))
    [found] = error.value.diagnostics
    assert found.code == "CC0210"
    assert found.message == f"{operator}: an integer is divided by zero (element 0 of the divisor)"
    assert found.origin.nodes == (f"{operator}(c)",)


REFUSED = [
    ("Gather(w, n)", "n = {3}", "Gather: index 3 is out of range for axis 0 of size 3 (element 0 of the indices)"),
    ("GatherElements(w, n)", "n = {3}", "GatherElements: index 3 is out of range for axis 0 of size 3"),
    ("Mod(w, n)", "n = {0}", "Mod: an integer is divided by zero (element 0 of the divisor)"),
    ("Reshape(w, n)", "n = {7}", "Reshape: cannot view [3] as [7]"),
    ("Reshape(w, n)", "n = {}", "Reshape: cannot view [3] as []"),
    ("Reshape<allowzero=1>(w, n)", "n = {0}", "Reshape: cannot view [3] as [0]"),
    ("Split(w, n)", "n = {7, 1}", "Split: sizes [7, 1] do not add up to an axis of size 3"),
    ("Split(w, n)", "n = {1, 1}", "Split: sizes [1, 1] do not add up to an axis of size 3"),
    ("Split(w, n)", "n = {4, -1}", "Split: [4, -1] is not a shape"),
    ("Squeeze(w, n)", "n = {0}", "Squeeze: axis 0 cannot be dropped: its size is not 1"),
    ("TopK(w, n)", "n = {4}", "TopK: K is 4; axis 0 has 3 elements"),
]
"""A node, its constant `n`, and the error, which is the same if `w` is a constant and if it is an input."""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("node, numbers, message", REFUSED)
def test_a_constant_number_that_an_operator_refuses(node, numbers, message, is_constant, optimize):
    size = len(numbers.split(",")) if "{}" not in numbers else 0
    given, weights = "int64[3] w", f"int64[{size}] {numbers}"
    if is_constant:
        given, weights = "int64[1] x", f"int64[3] w = {{1, 2, 3}}, {weights}"
    results = "y, z" if node.startswith(("Split", "TopK")) else "y"
    text = f'<ir_version: 10, opset_import: ["" : 20]> g ({given}) => (int64[n] y) <{weights}> {{ {results} = {node} }}'
    with pytest.raises(CompileError) as error:
        compiler.compile(onnx.parser.parse_model(text), compiler.Options(optimize=optimize))
    [found] = error.value.diagnostics
    assert found.code == "CC0210"
    assert found.message.startswith(message)


COMPUTED = [
    ("Slice(w, start, end, zero, minus)", [7, 3, 5], {"start": 2, "end": -9}),
    ("Slice(w, start, end, zero, minus)", [7, 3, 5], {"start": -9, "end": -12}),
    ("Cast<to=6>(w)", [7, 3_000_000_000], {}),
    ("Cast<to=2>(w)", [7, 300], {}),
    ("Cast<to=1>(w)", [7, (1 << 24) + 1], {}),
    ("Cast<to=11>(w)", [7, (1 << 53) + 1], {}),
]
"""A node, a constant, and its indices: the library for shapes gives such results wrong elements, or fails."""


@pytest.mark.parametrize("node, numbers, indices", COMPUTED)
def test_elements_of_vectors_of_integers_equal_those_of_onnxruntime(node, numbers, indices):
    weights = [f"int64[{len(numbers)}] w = {{{', '.join(map(str, numbers))}}}"]
    weights += [f"int64[1] {name} = {{{index}}}" for name, index in {**indices, "zero": 0, "minus": -1}.items()]
    graph = f"(float[1] x) => (int64[n] y) <{', '.join(weights)}> {{ c = {node} y = Cast<to=7>(c) }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g {graph}')
    feeds = {"x": np.zeros(1, np.float32)}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], feeds)
    np.testing.assert_array_equal(compiler.load(compiler.compile(model)).run(feeds)["y"], expected)


WORD = '<ir_version: 10, opset_import: ["" : 20]> g (int64[1] x, bool c) => (int64[1] y) <string[1] w = {"abc"}>'


@pytest.mark.parametrize("optimize", [True, False])
def test_a_constant_that_cannot_be_computed_is_refused(optimize):
    model = onnx.parser.parse_model(f"{WORD} {{ i = Cast<to=7>(w) y = Add(x, i) }}")
    with pytest.raises(CompileError) as error:
        compiler.compile(model, compiler.Options(optimize=optimize))
    [found] = error.value.diagnostics
    assert (found.code, found.message) == ("CC0401", '"abc" is not an integer')
    assert found.origin.nodes == ("Cast(i)",)


def test_a_constant_of_a_branch_that_cannot_be_computed_is_a_near_miss():
    branches = "then_branch = t () => (int64[1] p) { i = Cast<to=7>(w) p = Add(x, i) }, "
    branches += "else_branch = e () => (int64[1] q) { q = Identity(x) }"
    reports = []
    plan = compiler.compile(
        onnx.parser.parse_model(f"{WORD} {{ y = If<{branches}>(c) }}"), compiler.Options(on_pass=reports.append)
    )
    assert '"abc" is not an integer' in {each.reason for report in reports for each in report.near_misses}
    session, x = compiler.load(plan), np.array([3])
    assert session.run({"x": x, "c": np.array(False)})["y"] == 3
    with pytest.raises(compiler.RunError, match='"abc" is not an integer'):
        session.run({"x": x, "c": np.array(True)})
