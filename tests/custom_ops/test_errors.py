"""Errors of custom operators: in the function, in its results, and without a registration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import PlanError, RunError
from tests.custom_ops.models import DOUBLE, Array, like, plan_of, register_double

X = np.ones((3, 2), np.float32)

RESULTS: dict[str, tuple[Any, str]] = {
    "dtype": (X.astype(np.float64), "expected float32 [n, 2], found float64 [3, 2]"),
    "integers": (X.astype(np.int64), "expected float32 [n, 2], found int64 [3, 2]"),
    "rank": (X[0], "expected float32 [n, 2], found float32 [2]"),
    "size": (np.ones((3, 3), np.float32), "expected float32 [n, 2], found float32 [3, 3]"),
    "symbol": (X[:2], "expected float32 [n, 2] with n = 3, found float32 [2, 2]"),
    "nothing": (None, "expected float32 [n, 2], found none"),
    "strings": (np.full((3, 2), "a", object), "expected float32 [n, 2], found string [3, 2]"),
    "complex numbers": (X.astype(np.complex64), "complex64 is not a supported element type"),
    "objects": (np.full((3, 2), object(), object), "an array of objects that are not all texts, one is object"),
}


@pytest.mark.parametrize(("result", "said"), RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_wrong_result_is_an_error_of_its_node(result: Any, said: str, optimize: bool) -> None:
    compiler.custom_op("own::Double", like)(lambda x: result)
    session = compiler.load(plan_of(DOUBLE, optimize=optimize))
    with pytest.raises(RunError) as raised:
        session.run({"x": X})
    error = raised.value
    assert (error.op, error.origin, error.kind) == ("Custom", "Double(y)", "op")
    assert error.message.startswith("output 0 of own::Double: ") and error.message.endswith(said)
    assert error.__cause__ is None


@pytest.mark.parametrize(("results", "count"), [([], 0), ([X, X], 2), ((X, X, X), 3)])
def test_a_wrong_number_of_results(results: Any, count: int) -> None:
    compiler.custom_op("own::Double", like)(lambda x: results)
    with pytest.raises(RunError, match=f"own::Double has 1 output, and its function returned {count}"):
        compiler.load(plan_of(DOUBLE)).run({"x": X})


def test_an_exception_is_the_cause_of_the_error() -> None:
    failure = ValueError("no such row")

    @compiler.custom_op("own::Double", like)
    def double(x: Array) -> Array:
        raise failure

    session = compiler.load(plan_of(DOUBLE))
    for call in (lambda: session.run({"x": X}), lambda: session.run({"x": X}, timeout=60.0)):
        with pytest.raises(RunError) as raised:
            call()
        said = "the function of own::Double raised ValueError: no such row"
        assert str(raised.value) == f"step 0 Custom(float32 [3, 2]) from Double(y): {said}"
        assert raised.value.__cause__ is failure
    register_double()  # a later run has no cause
    with pytest.raises(compiler.InputError) as wrong:
        session.run({"x": X.astype(np.float64)})
    assert wrong.value.__cause__ is None


def test_wrong_arguments_are_an_exception() -> None:
    compiler.custom_op("own::Double", lambda x, **_: x)(lambda x: x)
    plan = plan_of("(float[n, 2] x) => (float[n, 2] y) { y = own.Double <factor = 1> (x) }")
    with pytest.raises(RunError, match=r"raised TypeError: .*unexpected keyword argument 'factor'"):
        compiler.load(plan).run({"x": X})


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_that_ends_programs_is_raised_itself(failure: BaseException) -> None:
    @compiler.custom_op("own::Double", like)
    def double(x: Array) -> Array:
        raise failure

    session = compiler.load(plan_of(DOUBLE))
    with pytest.raises(type(failure)) as raised:
        session.run({"x": X})
    assert raised.value is failure


def test_a_step_of_a_block_is_named_with_its_blocks() -> None:
    compiler.custom_op("own::Double", like)(lambda x: x[0])
    graph = """(float[n, 2] x, bool c) => (float[n, 2] y) {
        y = If (c) <
            then_branch = t () => (float[n, 2] a) { a = own.Double (x) },
            else_branch = e () => (float[n, 2] b) { b = Relu (x) }>
    }"""
    session = compiler.load(plan_of(graph))
    np.testing.assert_array_equal(session.run({"x": X, "c": np.array(False)})["y"], X)
    with pytest.raises(RunError, match=r"in block 0 of step 0 If from Double\(a\): output 0 of own::Double: expected"):
        session.run({"x": X, "c": np.array(True)})


def test_a_run_has_a_limit_of_memory() -> None:
    compiler.custom_op("own::Many", lambda x: ("float32", (None,)))(lambda x: np.ones(1 << 20, np.float32))
    plan = plan_of("(float[2] x) => (float[k] y) { y = own.Many (x) }", max_memory=1 << 16)
    with pytest.raises(RunError) as raised:
        compiler.load(plan).run({"x": np.zeros(2, np.float32)})
    assert (raised.value.kind, raised.value.op) == ("memory", "Custom")


def test_a_plan_needs_its_registrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_double()
    compiler.custom_op("own::Half", like)(lambda x: x / 2)
    graph = "(float[n, 2] x) => (float[n, 2] y) { a = own.Double (x) b = own.Double (a) y = own.Half (b) }"
    plan = plan_of(graph)
    path = tmp_path / "m.plan"
    plan.save(path)
    session = compiler.load(plan)
    monkeypatch.setattr(compiler.custom, "_REGISTERED", {})
    read = compiler.Plan.load(path)
    assert read.custom_ops == ["own::Double", "own::Half"]
    for again in (lambda: compiler.load(path), lambda: compiler.load(read)):
        with pytest.raises(
            PlanError, match="it needs the custom operators own::Double, own::Half, which are"
        ) as raised:
            again()
        assert raised.value.kind == "custom_op"
    np.testing.assert_array_equal(session.run({"x": X})["y"], 2 * X)
    register_double()
    with pytest.raises(PlanError, match="it needs the custom operator own::Half, which is not registered"):
        compiler.load(plan)
