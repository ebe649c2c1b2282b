"""The driver: matching, near misses, origins, and its work on large graphs."""

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir._graph_containers import GraphInitializers

from compiler.ir import origin
from compiler.ir.graph import graph_of
from compiler.rewrite.pattern import AnyOf, Const, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, insert, rules_pass
from tests.running import calls_of


class SwishRule(Rule):
    """`x · sigmoid(x)` → `Swish(x)`."""

    pattern = Op("Mul", Var("x"), Op("Sigmoid", Var("x")))

    def rewrite(self, match, new):
        return new.op("Swish", match["x"], version=24)


class ScaleRule(Rule):
    """`2 · x` or `x + x` → `HardSigmoid`, which shows constants and alternatives."""

    pattern = Op("Neg", AnyOf(Op("Mul", Const("two", equal=2.0), Var("x")), Op("Add", Var("x"), Var("x"))))

    def check(self, match):
        return None if match["x"].name != "forbidden" else "it is forbidden"

    def rewrite(self, match, new):
        return new.op("Mul", match["x"], new.constant(np.float32(-2), "minus_two"))


swish = rules_pass("swish", [SwishRule()])
scale = rules_pass("scale", [ScaleRule()])


def test_operands_in_any_order(check_pass):
    for product in ("Mul(x, s)", "Mul(s, x)"):
        report = check_pass(
            swish,
            f"agraph (float[N] x) => (float[N] y) {{ s = Sigmoid(x)  y = {product} }}",
            "input x: float[N]\ny = Swish:24(x)\nreturn y\n",
            same_results=None,
        )
        assert len(report.fired) == 1


def test_one_name_one_value(check_pass):
    report = check_pass(swish, "agraph (float[N] x, float[N] z) => (float[N] y) { s = Sigmoid(z)  y = Mul(x, s) }")
    assert not report.changed and not report.missed


def test_a_value_that_is_needed_elsewhere_is_a_near_miss(check_pass):
    report = check_pass(swish, "agraph (float[N] x) => (float[N] y, float[N] s) { s = Sigmoid(x)  y = Mul(x, s) }")
    assert [missed.reason for missed in report.missed] == ["'s' is needed elsewhere too"]


def test_alternatives_and_new_constants(check_pass):
    after = "input x: float[N]\nconstant minus_two = float[] {-2}\ny = Mul(x, minus_two)\nreturn y\n"
    check_pass(scale, "agraph (float[N] x) => (float[N] y) { a = Add(x, x)  y = Neg(a) }", after)
    text = "agraph (float[N] x) => (float[N] y) <float two = {2}> { a = Mul(x, two)  y = Neg(a) }"
    check_pass(scale, text, after.replace("constant", "constant two = float[] {2}\nconstant", 1))


def test_the_condition_says_why_not(check_pass):
    report = check_pass(
        scale, "agraph (float[N] forbidden) => (float[N] y) { a = Add(forbidden, forbidden)  y = Neg(a) }"
    )
    assert [missed.reason for missed in report.missed] == ["it is forbidden"]


class NegRule(Rule):
    """A rule for a single operator, whose misses are no near misses."""

    pattern = Op("Neg", Var("x"))

    def check(self, match):
        return "it negates"

    def rewrite(self, match, new):
        return match["x"]


class NotableNegRule(NegRule):
    """The same rule, whose misses are near misses."""

    notable = True


@pytest.mark.parametrize(("rule", "near"), [(NegRule(), 0), (NotableNegRule(), 1), (ScaleRule(), 1)])
def test_a_single_operator_is_a_near_miss_only_where_the_rule_says_so(check_pass, rule, near):
    text = "agraph (float[N] forbidden) => (float[N] y) { a = Add(forbidden, forbidden)  y = Neg(a) }"
    report = check_pass(rules_pass("rule", [rule]), text)
    assert len(report.missed) == 1
    assert len(report.near_misses) == near


@pytest.mark.parametrize("results", [lambda x: None, lambda x: [], lambda x: [x, x]], ids=["None", "none", "two"])
def test_a_rewrite_returns_values_for_the_outputs(parse, results):
    class Wrong(Rule):
        pattern = Op("Neg", Var("x"))

        def rewrite(self, match, new):
            return results(match["x"])

    model = parse("agraph (float[N] x) => (float[N] y) { y = Neg(x) }")
    with pytest.raises(TypeError, match="returns one value for the outputs of Neg, not "):
        rules_pass("wrong", [Wrong()]).run(model)


def test_origins_of_all_replaced_nodes(check_pass):
    report = check_pass(
        swish, "agraph (float[N] x) => (float[N] y) { s = Sigmoid(x)  y = Mul(x, s) }", same_results=None
    )
    assert report.fired[0].origin.nodes == ("Mul(y)",)


def test_a_fused_node_has_all_origins(parse):
    model = parse("agraph (float[N] x) => (float[N] y) { s = Sigmoid(x)  y = Mul(x, s) }")
    swish.run(model)
    assert origin.of(model.graph[0]).nodes == ("Mul(y)", "Sigmoid(s)")


def test_a_node_knows_its_graph():
    node = ir.node("Relu", [ir.val("x")])
    with pytest.raises(ValueError, match="Relu is in no graph"):
        graph_of(node)
    graph = ir.Graph([], [], nodes=[node])
    assert graph_of(node) is graph


def test_names_of_many_constants_are_found_without_counting_anew(monkeypatch):
    probed, contains = [], GraphInitializers.__contains__
    monkeypatch.setattr(
        GraphInitializers, "__contains__", lambda self, name: probed.append(name) or contains(self, name), raising=False
    )
    graph = ir.Graph([ir.Value(name="c"), ir.Value(name="c_2")], [], nodes=[ir.Node("", "Neg", [None])])
    for _ in range(500):
        new = Rewriter(graph)
        new.constant(np.float32(1), "c")
        insert(graph, graph[0], new)
    assert list(graph.initializers) == [f"c_{number}" for number in (1, *range(3, 502))]
    assert len(probed) < 4 * 500


def chain(count):
    """A model of so many products of a value and its sigmoid, each followed by another node."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([3]))
    nodes, value = [], x
    for _ in range(count):
        sigmoid = ir.Node("", "Sigmoid", [value])
        product = ir.Node("", "Mul", [value, sigmoid.outputs[0]])
        relu = ir.Node("", "Relu", [product.outputs[0]])
        nodes += [sigmoid, product, relu]
        value = relu.outputs[0]
    return ir.Model(ir.Graph([x], [value], nodes=nodes, opset_imports={"": 24}), ir_version=10)


def test_the_work_of_many_rules_grows_with_the_graph_alone():
    others = [
        type(f"Rule{i}", (SwishRule,), {"pattern": Op("Mul", Var("x"), Op("Tanh", Var("x")))})() for i in range(99)
    ]

    def work(rules, count):
        reports, model = [], chain(count)
        calls = calls_of(lambda: reports.append(rules_pass("many", rules).run(model)))
        assert len(reports[0].fired) == count
        return calls

    many = work([*others, SwishRule()], 100)
    assert work([*others, SwishRule()], 1000) < 11 * many
    assert many < 5 * work([SwishRule()], 100), "a rule is tried only at nodes that it may match"
