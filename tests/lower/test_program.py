"""Graphs of elementwise functions as programs: the code of small ones, and random ones against the unfused steps."""

import numpy as np
import pytest
from onnx import helper, parser

import compiler
from compiler.frontend.load import load_model
from compiler.lower.program import is_elementwise, program_of
from compiler.plan import ops
from tests.scratch.row import KEEP, KEPT, ONE, TWO, rows

Save, Load, Unary = ops.Instruction.Save, ops.Instruction.Load, ops.Instruction.Unary
Binary, Reverse, Select = ops.Instruction.Binary, ops.Instruction.Reverse, ops.Instruction.Select
Input, Saved, Constant = ops.Operand.Input, ops.Operand.Saved, ops.Operand.Constant


def graph_of(nodes, inputs, numbers=""):
    given = ", ".join(f"float[N] {name}" for name in inputs.split())
    text = f'<ir_version: 10, opset_import: ["" : 20]> g ({given}) => (float[N] y) <{numbers}> {{ {nodes} }}'
    return load_model(parser.parse_model(text)).model.graph


@pytest.mark.parametrize(
    ("nodes", "inputs", "code"),
    [
        ("y = Relu(a)", "a", [Load(Input(0)), Unary("Relu")]),
        ("y = Sub(a, b)", "a b", [Load(Input(0)), Binary("Sub", Input(1))]),
        ("t = Exp(b)  y = Sub(a, t)", "a b", [Load(Input(1)), Unary("Exp"), Reverse("Sub", Input(0))]),
        ("t = Exp(a)  y = Mul(t, t)", "a", [Load(Input(0)), Unary("Exp"), Save(0), Reverse("Mul", Saved(0))]),
        (
            "s = Exp(a)  t = Tanh(b)  y = Div(s, t)",
            "a b",
            [Load(Input(0)), Unary("Exp"), Save(0), Load(Input(1)), Unary("Tanh"), Reverse("Div", Saved(0))],
        ),
        (
            "t = Exp(a)  u = Neg(t)  v = Abs(t)  y = Sum(u, v, t)",
            "a",
            [
                *(Load(Input(0)), Unary("Exp"), Save(0), Unary("Abs"), Save(1), Load(Saved(0)), Unary("Neg")),
                *(Binary("Add", Saved(1)), Binary("Add", Saved(0))),
            ],
        ),
        (
            "t = Less(a, b)  u = Exp(b)  y = Where(t, u, a)",
            "a b",
            [
                *(Load(Input(1)), Unary("Exp"), Save(0)),
                *(Load(Input(0)), Binary("Less", Input(1)), Select(Saved(0), Input(0))),
            ],
        ),
    ],
)
def test_code(nodes, inputs, code):
    graph = graph_of(nodes, inputs)
    assert all(is_elementwise(node) for node in graph)
    assert program_of(graph, range(len(graph.inputs)), has_result=False).code == code


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ("y = Relu(r)", [Unary("Relu")]),
        ("t = Sigmoid(r)  y = Mul(r, t)", [Save(0), Unary("Sigmoid"), Reverse("Mul", Saved(0))]),
        ("t = Add(r, b)  y = Relu(t)", [Binary("Add", Input(3)), Unary("Relu")]),
        ("t = Exp(b)  y = Add(t, r)", [Save(0), Load(Input(3)), Unary("Exp"), Binary("Add", Saved(0))]),
    ],
)
def test_code_of_epilogues(nodes, code):
    assert program_of(graph_of(nodes, "r b"), [3], has_result=True).code == code


def test_numbers_are_constants():
    graph = graph_of(
        "t = Pow(a, two)  u = Clip(t, low, )  y = Mul(u, half)", "a", "float two={2}, float low={-1}, float half={0.5}"
    )
    code = [Load(Input(0)), Unary("Square"), Binary("Max", Constant(-1.0)), Binary("Mul", Constant(0.5))]
    assert program_of(graph, [0], has_result=False).code == code


UNARY = ["Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Softplus", "Erf", "HardSwish", "Floor", "Sin", "LeakyRelu"]
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"]


def random_model(seed):
    """A graph of elementwise nodes on inputs of several shapes; every second model has symbolic sizes."""
    random = np.random.default_rng(seed)
    shapes = [(2, 3, 5), (3, 1), (5,), ()]
    dims = [["N", "C", "L"][-len(shape) or 3 :] if seed % 2 else list(shape) for shape in shapes]
    dims[1] = ["C", 1] if seed % 2 else [3, 1]
    values, bools, nodes = [f"x{i}" for i in range(4)], [], []
    for index in range(int(random.integers(2, 30))):
        name = f"v{index}"
        pick = lambda: str(random.choice(values))  # noqa: E731
        kind = random.integers(8)
        if kind == 0:
            nodes.append(helper.make_node(str(random.choice(["Less", "Greater", "Equal"])), [pick(), pick()], [name]))
            bools.append(name)
            continue
        if kind == 1 and bools:
            nodes.append(helper.make_node("Where", [str(random.choice(bools)), pick(), pick()], [name]))
        elif kind == 2:
            nodes.append(helper.make_node("Sum", [pick() for _ in range(3)], [name]))
        elif kind <= 4:
            nodes.append(helper.make_node(str(random.choice(UNARY)), [pick()], [name]))
        else:
            function = str(random.choice(BINARY))
            # PRelu's slope has to fit the input: a scalar always does.
            nodes.append(helper.make_node(function, [pick(), "x3" if function == "PRelu" else pick()], [name]))
        values.append(name)
    inputs = [helper.make_tensor_value_info(f"x{i}", 1, dim) for i, dim in enumerate(dims)]
    outputs = [
        helper.make_empty_tensor_value_info(name) for name in {values[-1], str(random.choice(values[4:] or values))}
    ]
    graph = helper.make_graph(nodes, "random", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    feeds = {f"x{i}": (random.standard_normal(shape) * 2).astype("f4") for i, shape in enumerate(shapes)}
    return model, feeds


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_compute_the_same_fused(seed):
    model, feeds = random_model(seed)
    plans = [compiler.compile(model, compiler.Options(optimize=optimize)) for optimize in (True, False)]
    fused, plain = (compiler.load(plan, threads=1).run(feeds) for plan in plans)
    for name, expected in plain.items():
        np.testing.assert_array_equal(fused[name], expected, err_msg=f"seed {seed}, {name}")


@pytest.mark.parametrize(
    ("nodes", "inputs", "constants"),
    [
        # A number of more dimensions than its operand gives them to the result.
        ("t = Mul(x, n)  y = Relu(t)", "float[3] x", "float[1, 1] n = {2}"),
        ("t = Relu(x)  y = Add(t, n)", "float[M] x", "float[1, 1, 1] n = {2}"),
        ("t = Mul(x, n)  y = Add(t, x)", "float x", "float[1] n = {2}"),
        ("t = Neg(x)  y = Clip(t, low, high)", "float[3] x", "float low = {-inf}, float high = {0.5}"),
        ("t = Mul(x, big)  y = Sub(t, x)", "float[3] x", "float big = {inf}"),
        ("t = Neg(x)  y = Sum(t, n, n, n, n, n, n, n)", "float[3] x", "float n = {2}"),
    ],
)
def test_constants_with_a_catch(nodes, inputs, constants):
    text = f'<ir_version: 10, opset_import: ["" : 20]> g ({inputs}) => (float y) <{constants}> {{ {nodes} }}'
    model = parser.parse_model(text.replace("-inf", "-9").replace("inf", "9"))
    for value in model.graph.initializer:
        if value.float_data and abs(value.float_data[0]) == 9:
            value.float_data[0] *= np.inf
    dims = [dim.dim_value or 3 for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.random.default_rng(0).standard_normal(dims).astype("f4")}
    found, expected = (
        compiler.load(compiler.compile(model, compiler.Options(optimize=optimize)), threads=1).run(feeds)["y"]
        for optimize in (True, False)
    )
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


SCRATCH = [
    *rows("float", f"{ONE}, {KEEP}", f"u = Exp(x) y = Tanh(u) {KEPT}", options={"optimize": True}),
    *rows("float", f"{TWO}, {KEEP}", f"u = Exp(x) y = Mul(u, z) {KEPT}", options={"optimize": True}),
    *rows("float", f"T[n, 1] x, T[1, m] z, {KEEP}", f"u = Exp(x) y = Mul(u, z) {KEPT}", options={"optimize": True}),
]
