"""Functions of custom operators in runs: what they get, and what they return."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from tests.custom_ops.models import DOUBLE, Array, like, model_of, plan_of, register_double

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def test_a_function_gets_the_inputs_and_attributes() -> None:
    seen: dict[str, Any] = {}

    @compiler.custom_op("own::Mix", lambda x, missing, k, **_: [("float32", x.shape)])
    def mix(x: Array, missing: None, k: Array, **attributes: Any) -> Array:
        seen.update(attributes, inputs=(missing, k.tolist(), x.dtype))
        return x + np.float32(k)

    attributes = 'a = 3, b = 0.5, c = "text", d = [1, 2], e = [0.25, 2.0], f = ["x", "y"], t = int8[2] {1, -2}'
    plan = plan_of(f"(float[n, 2] x, int64 k) => (float[n, 2] y) {{ y = own.Mix <{attributes}> (x, , k) }}")
    found = compiler.load(plan).run({"x": X, "k": np.array(10)})["y"]
    np.testing.assert_array_equal(found, X + 10)
    tensor = seen.pop("t")
    assert (tensor.dtype, tensor.tolist()) == (np.int8, [1, -2])
    assert seen == {
        "a": 3,
        "b": 0.5,
        "c": "text",
        "d": [1, 2],
        "e": [0.25, 2.0],
        "f": ["x", "y"],
        "inputs": (None, 10, np.float32),
    }


def test_absent_inputs_at_the_end_are_left_out() -> None:
    @compiler.custom_op("own::Scale", lambda x, *_, **__: x)
    def scale(x: Array, factor: float = 7.0, *, shift: Array) -> Array:
        return (factor * x + shift).astype(np.float32)

    plan = plan_of("(float[2] x) => (float[2] y) { y = own.Scale <shift = float[1] {1.0}> (x, , ) }")
    assert compiler.load(plan).run({"x": np.float32([1, 2])})["y"].tolist() == [8, 15]


def test_a_function_has_several_outputs_and_unknown_sizes() -> None:
    calls = []

    @compiler.custom_op("own::Positive", lambda x: [("float32", (None,)), ("int64", (None, 2)), ("int64", ())])
    def positive(x: Array) -> list[Array]:
        calls.append(x)
        places = np.argwhere(x > 0)
        return [x[x > 0], places, np.array(len(places))]

    graph = """(float[n, 2] x) => (float[k] y, int64[m] z) {
        found, places, count = own.Positive (x)
        y = Relu (found)
        one = Constant <value = int64[1] {1}> ()
        z = Reshape (count, one)
    }"""
    for optimize in (True, False):
        session = compiler.load(plan_of(graph, optimize=optimize))
        for rows in (1, 2, 3):
            x = X[:rows] - 2
            outputs = session.run({"x": x})
            np.testing.assert_array_equal(outputs["y"], x[x > 0])
            assert outputs["z"].tolist() == [(x > 0).sum()]
    assert len(calls) == 6


def test_a_function_takes_and_returns_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    @compiler.custom_op("own::Roll", lambda x, **_: [x, x], as_="torch")
    def roll(x: Any, *, shift: int, mask: Any) -> list[Any]:
        assert isinstance(x, torch.Tensor) and isinstance(mask, torch.Tensor)
        weight = torch.ones(2, requires_grad=True)
        return [torch.roll(x, shift, 0) * weight, (x.to(torch.float32) * mask).numpy()]

    graph = (
        "(float[n, 2] x) => (float[n, 2] y, float[n, 2] z) { y, z = own.Roll <shift = 1, mask = float[2] {0, 1}> (x) }"
    )
    outputs = compiler.load(plan_of(graph)).run({"x": X})
    np.testing.assert_array_equal(outputs["y"], np.roll(X, 1, 0))
    np.testing.assert_array_equal(outputs["z"], X * [0, 1])


def test_bfloat16_tensors_of_torch_and_strings() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    compiler.custom_op("own::Half", lambda x: ("bfloat16", x.shape), as_="torch")(lambda x: x.to(torch.bfloat16))
    compiler.custom_op("own::Upper", like)(lambda x: np.char.upper(x.astype(str)).astype(object))
    graph = "(float[n] x, string[m] s) => (bfloat16[n] y, string[m] t) { y = own.Half (x) t = own.Upper (s) }"
    outputs = compiler.load(plan_of(graph)).run({"x": np.float32([1, 0.5]), "s": np.array(["a", "bc"], object)})
    assert outputs["y"].dtype == ml_dtypes.bfloat16 and outputs["y"].tolist() == [1, 0.5]
    assert outputs["t"].tolist() == ["A", "BC"]


def test_functions_cannot_change_other_values() -> None:
    """The function writes into its input, and returns the same array each time."""
    kept = np.zeros((3, 2), np.float32)

    @compiler.custom_op("own::Fill", like)
    def fill(x: Array) -> Array:
        kept[...] = x
        x[...] = -1
        return kept

    graph = """(float[3, 2] x, float[3, 2] w) => (float[3, 2] a, float[3, 2] b, float[3, 2] c) {
        r = Relu (x)
        a = own.Fill (r)
        b = own.Fill (w)
        c = Add (r, x)
    }"""
    w = 10 * X
    outputs = compiler.load(plan_of(graph)).run({"x": X, "w": w})
    kept[...] = 99
    np.testing.assert_array_equal(outputs["a"], X)
    np.testing.assert_array_equal(outputs["b"], 10 * X)
    np.testing.assert_array_equal(outputs["c"], 2 * X)
    np.testing.assert_array_equal(w, 10 * X)


def test_the_compiler_never_calls_or_merges_functions() -> None:
    calls = []

    @compiler.custom_op("own::Count", like)
    def count(x: Array) -> Array:
        calls.append(len(calls))
        return np.full_like(x, calls[-1])

    graph = """(float[2] x) => (float[2] y, float[2] z) {
        c = Constant <value = float[2] {1, 2}> ()
        a = own.Count (c)
        b = own.Count (c)
        unused = own.Count (x)
        y = Add (x, a)
        z = Add (x, b)
    }"""
    plan = plan_of(graph)
    assert calls == [] and plan.custom_ops == ["own::Count"]
    outputs = compiler.load(plan).run({"x": np.zeros(2, np.float32)})
    assert [outputs["y"].tolist(), outputs["z"].tolist()] == [[0, 0], [1, 1]]


def test_blocks_have_custom_operators() -> None:
    register_double()
    graph = """(float[n, 2] x, int64 times, bool more) => (float[n, 2] y) {
        y = Loop (times, more, x) <body = b (int64 i, bool go, float[n, 2] a) => (bool go_on, float[n, 2] d) {
            go_on = Identity (go)
            d = own.Double (a)
        }>
    }"""
    plan = plan_of(graph)
    assert plan.custom_ops == ["own::Double"]
    found = compiler.load(plan).run({"x": X, "times": np.array(3), "more": np.array(True)})
    np.testing.assert_array_equal(found["y"], 8 * X)


def test_several_threads_call_a_function() -> None:
    barrier = threading.Barrier(2, timeout=60)

    @compiler.custom_op("own::Double", like)
    def double(x: Array) -> Array:
        barrier.wait()  # both runs are in the function at the same time
        return 2 * x

    session = compiler.load(plan_of(DOUBLE))
    found: dict[int, list[Array]] = {0: [], 1: []}

    def run(which: int) -> None:
        for rows in range(1, 50):
            x = np.full((rows, 2), which + rows, np.float32)
            found[which].append(session.run({"x": x})["y"])

    threads = [threading.Thread(target=run, args=(which,)) for which in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for which, outputs in found.items():
        assert [each.shape for each in outputs] == [(rows, 2) for rows in range(1, 50)]
        assert all((each == 2 * (which + rows)).all() for rows, each in enumerate(outputs, start=1))


def test_a_function_may_run_a_session() -> None:
    register_double()
    inner = compiler.load(plan_of(DOUBLE))
    compiler.custom_op("own::Twice", like)(lambda x: inner.run({"x": inner.run({"x": x})["y"]})["y"])
    plan = plan_of("(float[n, 2] x) => (float[n, 2] y) { y = own.Twice (x) }", max_memory=1 << 20)
    np.testing.assert_array_equal(compiler.load(plan).run({"x": X})["y"], 4 * X)


def test_sessions_keep_the_functions_that_they_were_loaded_with(tmp_path: Path) -> None:
    register_double()
    path = tmp_path / "m.plan"
    plan_of(DOUBLE).save(path)
    first = compiler.load(path)
    register_double(3.0)
    second = compiler.load(path)
    for session, factor in ((first, 2), (first.clone(), 2), (second, 3)):
        np.testing.assert_array_equal(session.run({"x": X})["y"], factor * X)


def test_a_function_reads_other_weights() -> None:
    compiler.custom_op("own::Dense", lambda x, w: ("float32", (x.shape[0], w.shape[1])))(lambda x, w: x @ w)
    model = model_of("(float[n, 2] x) => (float[n, 3] y) <float[2, 3] w = {1, 1, 1, 1, 1, 1}> { y = own.Dense (x, w) }")
    plan = compiler.compile(model, compiler.Options(keep_weights=True))
    session = compiler.load(plan)
    tuned = session.with_weights({"w": np.full((2, 3), 2, np.float32)})
    ones = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(session.run({"x": X})["y"], X @ ones)
    np.testing.assert_array_equal(tuned.run({"x": X})["y"], 2 * X @ ones)


def test_profiles_and_prepared_steps_name_the_operator() -> None:
    register_double()
    session = compiler.load(plan_of(DOUBLE))
    (step,) = session.profile({"x": X}, 1)
    assert (step.op, step.kernel, step.calls) == ("Custom", "own::Double", 1)
    (prepared,) = session.prepared().steps
    assert prepared.kernel == "own::Double"


def test_a_function_that_holds_its_session_does_not_keep_it_alive() -> None:
    """The garbage collector frees sessions and their function together, if the program holds none of them."""
    holder: dict[str, Any] = {}

    def held(holder: dict[str, Any]) -> Callable[[Array], Array]:
        return lambda x: x + np.float32(len(holder))

    compiler.custom_op("own::Held", like)(held(holder))
    plan = plan_of("(float[n, 2] x) => (float[n, 2] y) { y = own.Held (x) }")
    session = compiler.load(plan)
    holder["session"], holder["clone"] = session, session.clone(threads=1)
    gone = [weakref.ref(each) for each in holder.values()]
    compiler.custom_op("own::Held", like)(held({}))  # the list of registrations holds the function no more
    np.testing.assert_array_equal(session.run({"x": X})["y"], X + 2)
    clone = holder["clone"]
    del session, holder
    gc.collect()
    np.testing.assert_array_equal(clone.run({"x": X})["y"], X + 2)
    del clone
    gc.collect()
    assert [each() for each in gone] == [None, None]
