"""The driver of rules and the phases: the nodes that they visit again, the reports, and termination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from compiler.errors import CompileError
from compiler.frontend.load import load_model
from compiler.ir.origin import Origin
from compiler.ir.text import graph_text
from compiler.passes.infer_shapes import infer_shapes
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.phase import Phase
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, Rule, rules_pass


def parsed(text: str) -> ir.Model:
    model = load_model(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')).model
    infer_shapes.run(model)
    return model


class ExpOfLog(Rule):
    """`Exp(Log(x))` → `Abs(x)`."""

    pattern = Op("Exp", Op("Log", Var("x")))

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        return new.op("Abs", match["x"])


class TanhOfLog(Rule):
    """`Tanh(Log(x))` → `Sqrt(x)`, whoever else reads the logarithm."""

    pattern = Op("Tanh", Op("Log", Var("x")))
    allow_shared_intermediates = True

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        return new.op("Sqrt", match["x"])


class NegOfReluOfAbs(Rule):
    """`Neg(Relu(Abs(x)))` → `Ceil(x)`."""

    pattern = Op("Neg", Op("Relu", Op("Abs", Var("x"))))

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        return new.op("Ceil", match["x"])


def test_a_lost_reader_and_a_change_deep_in_a_pattern_are_seen() -> None:
    """Tanh is replaced last. Then Log has one reader, Exp becomes Abs, and the pattern two nodes below matches."""
    model = parsed(
        "g (float[2] x) => (float[2] n, float[2] t) { l = Log(x) e = Exp(l) r = Relu(e) n = Neg(r) t = Tanh(l) }"
    )
    report = rules_pass("logs", [ExpOfLog(), TanhOfLog(), NegOfReluOfAbs()]).run(model)
    assert [each.rule for each in report.fired] == ["TanhOfLog", "ExpOfLog", "NegOfReluOfAbs"]
    assert [node.op_type for node in model.graph] == ["Ceil", "Sqrt"]


class FloorOfReadByAbs(Rule):
    """`Floor(y)` → `Round(x)`, where `y` is `Abs(Abs(x))`, which only the check reads."""

    pattern = Op("Floor", Var("y"))
    looks_above = 2

    def check(self, match: Match) -> str | None:
        """Both nodes above are Abs."""
        return None if self.source(match) is not None else "there are not two Abs above"

    def source(self, match: Match) -> ir.Value | None:
        at: ir.Value | None = match["y"]
        for _ in range(2):
            node = None if at is None else at.producer()
            at = None if node is None or node.op_type != "Abs" else node.inputs[0]
        return at

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        return new.op("Round", self.source(match))


def test_what_a_check_looks_at_above_the_pattern_is_seen() -> None:
    model = parsed(
        "g (float[2] x) => (float[2] f, float[2] t) { l = Log(x) e = Exp(l) a = Abs(e) f = Floor(a) t = Tanh(l) }"
    )
    report = rules_pass("abs", [ExpOfLog(), TanhOfLog(), FloorOfReadByAbs()]).run(model)
    assert [each.rule for each in report.fired] == ["TanhOfLog", "ExpOfLog", "FloorOfReadByAbs"]
    assert report.missed == []


@dataclass(frozen=True)
class Number:
    """The result of a check."""

    value: float


class NegToProduct(FindingRule[Number]):
    """`Neg(x)` → `relu(x) · -1`, with the factor that the check found."""

    pattern = Op("Neg", Var("x"))

    def __init__(self) -> None:
        self.checks = 0

    def check(self, match: Match) -> Number | str:
        self.checks += 1
        return "it is a scalar" if match["x"].shape == () else Number(-1)

    def rewrite(self, match: Match, found: Number, new: Rewriter) -> ir.Value:
        positive = new.op("Relu", match["x"])
        longer = new.op("Concat", positive, match["x"], axis=0)
        half = new.op("Slice", longer, *(new.constant(np.array([number])) for number in (0, 2, 0)))
        return new.op("Mul", half, new.constant(np.float32(found.value)))


def test_a_rewrite_gets_what_its_check_found() -> None:
    model, rule = parsed("g (float[2] x, float s) => (float[2] n, float m) { n = Neg(x) m = Neg(s) }"), NegToProduct()
    report = rules_pass("product", [rule]).run(model)
    assert [miss.reason for miss in report.missed] == ["it is a scalar"]
    assert (len(report.fired), rule.checks) == (1, 2)
    assert "constant constant_3 = float[] {-1}" in graph_text(model.graph)


def test_new_nodes_have_types_and_shapes_at_once() -> None:
    model = parsed("g (float[N, 3] x) => (float[N, 3] n) { n = Neg(x) }")
    rules_pass("product", [NegToProduct()]).run(model)
    shapes = {node.op_type: (node.outputs[0].dtype, str(node.outputs[0].shape)) for node in model.graph}
    kind = ir.DataType.FLOAT
    assert shapes["Relu"] == shapes["Mul"] == (kind, "[N,3]")
    assert shapes["Concat"] == (kind, "[2*N,3]")


def swap(old: str, new_type: str) -> Rule:
    """The rule that replaces an operator of one input with another."""

    class Swap(Rule):
        """`f(x)` → `g(x)`."""

        pattern = Op(old, Var("x"))

        def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
            return new.op(new_type, match["x"])

    return Swap()


def test_rules_that_undo_each_other_are_an_error() -> None:
    model = parsed("g (float[2] x) => (float[2] y) { y = Sin(x) }")
    with pytest.raises(CompileError) as error:
        rules_pass("waves", [swap("Sin", "Cos"), swap("Cos", "Sin")]).run(model)
    [found] = error.value.diagnostics
    assert found.code == "CC0506"
    assert found.message == "the pass waves does not end: Swap still applies after 1100 rewrites"
    assert found.help == "use --skip-pass waves, and report the bug"
    assert found.origin is not None and found.origin.nodes == ("Sin(y)",)


def test_a_phase_runs_until_no_pass_changes_anything() -> None:
    chain = "a = Sin(x) b = Cos(a) c = Sin(b) y = Cos(c)"
    model = parsed(f"g (float[2] x) => (float[2] y) {{ {chain} }}")

    class SinOfCos(Rule):
        """`Cos(Sin(x))` → `Tan(x)`, once `Tan` is made `Sin`."""

        pattern = Op("Cos", Op("Sin", Var("x")))

        def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
            return new.op("Tan", match["x"])

    meet = rules_pass("meet", [SinOfCos()])
    rename = rules_pass("rename", [swap("Tan", "Abs")])
    ran = [(step.name, len(report.fired)) for step, report in Phase("waves", [meet, rename]).run(model)]
    assert ran == [("meet", 2), ("rename", 2)]
    assert [node.op_type for node in model.graph] == ["Abs", "Abs"]
    assert [len(report.fired) for _, report in Phase("waves", [meet, rename]).run(model)] == [0, 0]


def test_a_phase_that_has_no_end_is_an_error() -> None:
    model = parsed("g (float[2] x) => (float[2] y) { y = Sin(x) }")
    phase = Phase("waves", [rules_pass("to_cos", [swap("Sin", "Cos")]), rules_pass("to_sin", [swap("Cos", "Sin")])])
    with pytest.raises(CompileError) as error:
        list(phase.run(model))
    [found] = error.value.diagnostics
    assert found.message == "the phase waves does not end: to_sin still changes the model after 100 rounds"
    assert found.help == "use --skip-pass to_sin, and report the bug"


def test_a_phase_has_later_rounds() -> None:
    """The second pass makes work for the first one, whose second run is reported; quiet runs after that are not."""
    left = {"first": 2, "second": 1}

    def step(name: str) -> Pass:
        def apply(_: ir.Model, report: PassReport) -> None:
            if left[name]:
                left[name] -= 1
                report.fired.append(Fired(name, ir_origin))

        return Pass(name, apply)

    ir_origin: Any = None
    model = parsed("g (float[2] x) => (float[2] y) { y = Sin(x) }")
    phase = Phase("both", [step("first"), step("second")])
    assert [each.name for each, _ in phase.run(model)] == ["first", "second", "first"]
    assert left == {"first": 0, "second": 0}
    assert [each.name for each in phase.only([phase.passes[1]]).passes] == ["second"]


def test_a_pass_that_ran_after_the_last_change_does_not_run_again() -> None:
    ran: list[str] = []

    def step(name: str, changes: int) -> Pass:
        def apply(_: ir.Model, report: PassReport) -> None:
            ran.append(name)
            report.fired += [Fired(name, Origin())] * (ran.count(name) <= changes)

        return Pass(name, apply)

    model = parsed("g (float[2] x) => (float[2] y) { y = Sin(x) }")
    infer, drop, fold = step("infer", 0), step("drop", 0), step("fold", 1)
    done: set[Pass] = set()
    reports = [
        (each.name, each.changed, each.nodes_before, each.nodes_after)
        for passes in ([infer], [drop, infer], [fold], [drop, infer])
        for _, each in Phase("phase", passes).run(model, done)
    ]
    assert ran == ["infer", "drop", "fold", "drop", "infer"]
    assert reports == [(name, name == "fold", 1, 1) for name in ("infer", "drop", "infer", "fold", "drop", "infer")]
