import pytest

from compiler.ir.text import graph_text
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.raise_legacy import raise_legacy

CASES = {
    "y = Add<broadcast=1, axis=1>(x, c)": ["aligned = Reshape:7(c, broadcast)", "y = Add:7(x, aligned)"],
    "y = Mul<broadcast=1, axis=-1>(x, w)": ["y = Mul:7(x, w)"],
    "y = Sub<broadcast=1>(x, w)": ["y = Sub:7(x, w)"],
    "y = PRelu(x, c)": ["aligned = Reshape:7(c, broadcast)", "y = PRelu:7(x, aligned)"],
    "y = Dropout<is_test=1>(x)": ["y = Dropout:7(x)"],
    "y = BatchNormalization<is_test=1, spatial=1, consumed_inputs=[0, 0, 0, 1, 1]>(x, c, c, c, c)": [
        "y = BatchNormalization:7(x, c, c, c, c)"
    ],
    "y = Relu(x)": ["y = Relu(x)"],
}


def model_of(parse, node):
    model = parse(
        f"agraph (float[2, 3, 4, 5] x, float[3] c, float[5] w) => (float[2, 3, 4, 5] y) {{ {node} }}", opset=6
    )
    infer_shapes.run(model)
    return model


@pytest.mark.parametrize("node", CASES)
def test_operators_before_opset_7(check_pass, parse, node):
    model = model_of(parse, node)
    check_pass(raise_legacy, model, same_results=None)
    lines = [line for line in graph_text(model.graph).splitlines() if " = " in line and not line.startswith("constant")]
    name = lines[0].split(" = ")[0]
    assert [line.replace(name, "aligned") if name != "y" else line for line in lines] == CASES[node]


def test_the_second_operand_is_aligned_at_the_axis(check_pass, parse):
    model = model_of(parse, "y = Add<broadcast=1, axis=1>(x, c)")
    check_pass(raise_legacy, model, same_results=None)
    assert "int64[3] {0, 1, 1}" in graph_text(model.graph)


def test_statistics_for_every_pixel_are_refused(parse):
    report = raise_legacy.run(model_of(parse, "y = BatchNormalization<spatial=0>(x, c, c, c, c)"))
    assert [item.code for item in report.refused] == ["CC0202"]


@pytest.mark.parametrize(("shape", "axis"), [("2, 3, 4, 5", 4), ("2, 3, 4, 5", -5), ("", 1), ("", -1)])
def test_an_axis_that_the_first_operand_lacks_is_refused(parse, shape, axis):
    one = f"float[{shape}]" if shape else "float"
    model = parse(f"agraph ({one} x, float c) => ({one} y) {{ y = Add<broadcast=1, axis={axis}>(x, c) }}", opset=6)
    infer_shapes.run(model)
    report = raise_legacy.run(model)
    assert ["outside" in item.message for item in report.refused] == [True]


def test_scalars_may_name_axis_0(check_pass, parse):
    model = parse("agraph (float x, float c) => (float y) { y = Add<broadcast=1, axis=0>(x, c) }", opset=6)
    infer_shapes.run(model)
    check_pass(raise_legacy, model, same_results=None)
