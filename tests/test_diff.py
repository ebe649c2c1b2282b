"""Differences between two models or plans: nodes, constants, inputs and outputs, facts, and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import compiler
from compiler.diff import Difference, difference

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
m (float[n, 4] x) => (float[n, 4] y)
<float[4] scale = {1, 2, 3, 4}, float[4] shift = {3, 1, 1, 1}>
{
    floor = Floor (x)
    scaled = Mul (floor, scale)
    soft = Softmax <axis = 1> (scaled)
    moved = Add (soft, shift)
    y = Neg (moved)
}
"""
X = {"x": np.array([[1.5, -2.5, 3, 4], [0, 1, -2, 3]], np.float32)}


def model(*changes: tuple[str, str]) -> onnx.ModelProto:
    """The model with changes of its text."""
    text = MODEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return onnx.parser.parse_model(text)


def found(*changes: tuple[str, str], **options: Any) -> Difference:
    """The difference of the model with these changes from the model."""
    return difference(model(), model(*changes), **options)


def nodes(made: Difference) -> list[tuple[str, str, str]]:
    return [(each.change, each.op, each.name) for each in made.nodes]


def test_equal_models_do_not_differ() -> None:
    made = found(inputs=X)
    assert made.is_equal and made.shared == (2, 32)
    assert not (made.nodes or made.constants or made.ends or made.facts)
    assert [each.max_abs for each in made.numbers.outputs] == [0.0] if made.numbers else False


def test_names_of_intermediate_values_do_not_count() -> None:
    shifted = [("moved", "a"), ("soft", "moved"), ("scaled", "soft"), ("floor", "scaled"), ("shift", "b")]
    made = found(*shifted)
    assert made.is_equal and made.shared == (2, 32)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("<axis = 1>", "<axis = 0>"), [("changed", "Softmax", "soft")]),
        (("Neg", "Abs"), [("removed", "Neg", "y"), ("added", "Abs", "y")]),
        (("Add (soft, shift)", "Add (scaled, shift)"), [("changed", "Add", "moved")]),
        (("y = Neg (moved)", "b = Abs (moved)\n y = Neg (b)"), [("changed", "Neg", "y"), ("added", "Abs", "b")]),
        (("Mul (floor, scale)", "Mul (scale, floor)"), [("changed", "Mul", "scaled")]),
        (("Floor (x)", "private.Floor (x)"), [("removed", "Floor", "floor"), ("added", "private.Floor", "floor")]),
    ],
)
def test_a_changed_node_is_found(change: tuple[str, str], expected: list[tuple[str, str, str]]) -> None:
    made = found(change)
    assert nodes(made) == expected
    assert not made.is_equal and not made.constants and not made.ends


def test_the_attributes_and_inputs_that_differ_are_listed() -> None:
    [softmax] = found(("<axis = 1>", "<axis = 0>")).nodes
    assert softmax.details == (("axis", "1", "0"),)
    [add] = found(("Add (soft, shift)", "Add (scaled, shift)")).nodes
    assert add.details == (("input 0", "soft", "scaled"),)


def test_a_node_between_others_does_not_change_later_ones() -> None:
    later = [("moved", "v4"), ("soft", "v3"), ("scaled", "v2"), ("floor", "v1")]
    before = model(*later)
    after = model(
        ("floor = Floor (x)", "v1 = Abs (x)\n v2 = Floor (v1)"),
        *[(old, new[0] + str(int(new[1]) + 1)) for old, new in later],
    )
    made = difference(before, after)
    assert nodes(made) == [("changed", "Floor", "v1"), ("added", "Abs", "v1")]
    assert [(each.op, each.before, each.after) for each in made.operators if each.added] == [("Abs", 0, 1)]


def test_constants_are_compared_by_their_elements() -> None:
    [changed] = found(("{3, 1, 1, 1}", "{3, 1, 1.5, 1}")).constants
    assert (changed.change, changed.name, changed.max_abs) == ("changed", "shift", 0.5)
    made = found(("float[4] shift = {3, 1, 1, 1}", "float[1] shift = {3}"))
    assert made.constants[0].types == ("float32 [4]", "float32 [1]") and made.shared == (1, 16)
    removed = found((", float[4] shift = {3, 1, 1, 1}", ""), ("Add (soft, shift)", "Identity (soft)"))
    assert [(each.change, each.name, each.bytes) for each in removed.constants] == [("removed", "shift", (16, None))]


def test_a_constant_of_a_node_equals_an_initializer() -> None:
    made = found(
        (", float[4] shift = {3, 1, 1, 1}", ""),
        ("moved =", "shift = Constant <value_floats = [3., 1., 1., 1.]> ()\n moved ="),
    )
    assert made.is_equal


def test_inputs_and_outputs_are_compared() -> None:
    made = found(("float[n, 4] x", "float[2, 4] x"))
    [end] = made.ends
    assert (end.which, end.before, end.after) == ("input", ("x", "float32 [n, 4]"), ("x", "float32 [2, 4]"))
    made = found(("(float[n, 4] y)", "(float[n, 4] y, float[n, 4] soft)"))
    assert [(each.which, each.before, each.after) for each in made.ends] == [
        ("output", None, ("soft", "float32 [n, 4]"))
    ]
    renamed = found(("float[n, 4] x", "float[n, 4] z"), ("Floor (x)", "Floor (z)"), inputs=X)
    assert [each.after for each in renamed.ends] == [("z", "float32 [n, 4]")] and not renamed.nodes
    assert renamed.numbers is not None and renamed.numbers.is_equal


def test_outputs_at_other_places_are_found() -> None:
    two = ("(float[n, 4] y)", "(float[n, 4] y, float[n, 4] soft)")
    other = ("(float[n, 4] y)", "(float[n, 4] soft, float[n, 4] y)")
    notes = [each.note for each in difference(model(two), model(other)).ends]
    assert notes == ["it is at another place"] * 2


def test_another_value_of_an_output_is_found() -> None:
    two = ("(float[n, 4] y)", "(float[n, 4] y, float[n, 4] z)")
    ends = ("y = Neg (moved)", "y = Neg (moved)\n z = Neg (soft)")
    swapped = ("y = Neg (moved)", "z = Neg (moved)\n y = Neg (soft)")
    made = difference(model(two, ends), model(two, swapped))
    assert [each.note for each in made.ends] == ["it is another value"] * 2


def test_nested_graphs_and_functions_are_compared() -> None:
    branches = """y = If (b) <
        then_branch = g () => (float[4] t) { t = Neg (moved) }, else_branch = h () => (float[4] e) { e = Abs (moved) }
    >"""
    before = model(("(float[n, 4] x)", "(float[n, 4] x, bool b)"), ("y = Neg (moved)", branches))
    after = model(("(float[n, 4] x)", "(float[n, 4] x, bool b)"), ("y = Neg (moved)", branches.replace("Abs", "Exp")))
    [changed] = difference(before, after).nodes
    assert [each[0] for each in changed.details] == ["else_branch"]
    plans = difference(before, after, plans=True)
    assert [each.op for each in plans.nodes] == ["If"]
    assert difference(before, before).is_equal and difference(before, before, plans=True).is_equal


@pytest.mark.parametrize("plans", [False, True])
def test_names_that_look_like_places_are_names(plans: bool) -> None:
    other = model()
    for node in other.graph.node:
        for names in (node.input, node.output):
            names[:] = [{"floor": "%1", "soft": "%%2"}.get(name, name) for name in names]
    assert difference(model(), other, plans=plans).nodes == () and difference(other, other, plans=plans).is_equal


def test_opsets_differ() -> None:
    assert found(('"": 20', '"": 21')).facts == (("opsets", {"ai.onnx": 20}, {"ai.onnx": 21}),)


def test_plans_are_compared_by_steps_and_facts() -> None:
    plain, fused = (compiler.compile(model(), compiler.Options(optimize=each)) for each in (False, True))
    made = difference(plain, fused, inputs=X)
    assert made.kind == "plan" and not made.is_equal
    facts = {name: (old, new) for name, old, new in made.facts}
    assert facts["plan_bytes"] == (len(plain.data), len(fused.data)) and "steps" not in facts
    assert made.numbers is not None and all(each.ok for each in made.numbers.outputs)
    assert difference(fused, model()).is_equal, "a model is compiled and compared with the plan"
    assert difference(model(), fused).is_equal


CONV = """
<ir_version: 9, opset_import: ["": 20]>
m (float[1, 32, 12, 12] x, int64[4] shape) => (y)
<float[1] one = {1}>
{
    w = Expand (one, shape)
    y = Conv <group = 1> (x, w)
}
"""


def test_forms_of_kernels_and_operations_differ() -> None:
    plans = []
    for group in (1, 32):
        proto = onnx.parser.parse_model(CONV.replace("group = 1", f"group = {group}"))
        shape = np.array([32, 32 // group, 3, 3])
        proto.graph.initializer.append(onnx.numpy_helper.from_array(shape, "shape"))
        plans.append(compiler.compile(proto))
    made = difference(*plans)
    facts = {name.partition(".")[2] or name: pair for name, *pair in made.facts}
    assert facts["operations"][0] > facts["operations"][1] and {"forms.Conv", "packed_bytes"} <= facts.keys()
    [conv] = made.nodes
    assert ("groups", "1", "32") in conv.details
    [weight] = made.constants
    assert weight.types == ("float32 [32, 32, 3, 3]", "float32 [32, 1, 3, 3]") and weight.max_abs is None


def test_the_first_value_that_differs_is_shown() -> None:
    made = found(("{1, 2, 3, 4}", "{1, 2, 3, 5}"), inputs=X)
    assert made.numbers is not None and made.numbers.first is not None
    assert made.numbers.first.output.name == "scaled" and made.numbers.first.output.max_abs == 4
    assert not made.numbers.is_equal
    assert {each.output.name for each in made.numbers.values} == {"floor", "scaled", "soft", "moved"}


def test_values_correspond_by_nodes_and_not_by_names() -> None:
    made = found(("floor", "%"), ("scaled", "floor"), ("%", "scaled"), inputs=X)
    assert made.is_equal and made.numbers is not None
    assert [(each.output.name, each.op, each.output.max_abs) for each in made.numbers.values] == [
        ("scaled", "Unary", 0.0),
        ("floor", "Binary", 0.0),
        ("soft", "Softmax", 0.0),
        ("moved", "Binary", 0.0),
    ]


def test_runs_that_cannot_be_compared_say_why() -> None:
    made = found(("float[n, 4] x", "float[n, 4] x, float[4] z"), ("Add (soft, shift)", "Add (soft, z)"), inputs=X)
    assert made.numbers is not None and "the second one does not run with these inputs" in made.numbers.problem
    assert "z" in made.numbers.problem and not made.is_equal
    with pytest.raises(compiler.InputError):
        found(inputs={"x": np.zeros((2, 5), np.float32)})


VOLUME = """
<ir_version: 9, opset_import: ["": 20]>
m (float[1, 1, 2, 2, 2] x, float[1, 1, 1, 1, 1] w) => (y) { y = Conv <group = 1> (x, w) }
"""


def test_a_refused_model_is_compared_by_its_nodes() -> None:
    before, after = map(onnx.parser.parse_model, (VOLUME, VOLUME.replace("group = 1", "group = 2")))
    assert [each.details for each in difference(before, after).nodes] == [(("group", "1", "2"),)]
    with pytest.raises(compiler.CompileError):
        difference(before, after, plans=True)


OTHERS = """
<ir_version: 10, opset_import: ["": 21]>
m (int64[1] i) => (string[1] y, float[1] z)
{
    s = Constant <value_strings = ["a", "b"]> ()
    y = Gather (s, i)
    f = Constant <value_floats = [1.]> ()
    q = Cast <to = 22> (f)
    z = Cast <to = 1> (q)
}
"""


@pytest.mark.parametrize("plans", [False, True])
def test_strings_and_small_integers_are_constants(plans: bool) -> None:
    before, after = map(onnx.parser.parse_model, (OTHERS, OTHERS.replace('"b"', '"é"').replace("1.", "2.")))
    made = difference(before, after, plans=plans)
    changes = {each.types[0]: (each.change, each.max_abs) for each in made.constants}
    assert len(changes) == 2 and changes["string [2]"] == ("changed", None)
    assert difference(before, before, plans=plans).is_equal
