"""Runs with chosen outputs, with a time limit, and in asyncio tasks. Calls of sessions."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler

SEVERAL = """(float[4, 8] x, int64[2] i) => (float[4, 8] a, float[4, 8] b, float[2, 8] g, float[4] s) {
    t = Exp (x) a = Neg (t) u = Softmax (t) b = Add (u, a) g = Gather (b, i) s = ReduceSum <keepdims = 0> (t, last)
}"""
"""Outputs that need each other, and steps that take over the storage of their inputs."""

NEG = "(float[2] x) => (float[2] y) { y = Neg (x) }"
FOREVER = """(float[64, 64] x) => (float[64, 64] y, float[64, 64] z) {
    z = Neg (x)
    y = Loop (count, go, x) <body = each (int64 at, bool before, float[64, 64] v)
        => (bool after, float[64, 64] w) { after = Identity (before) q = MatMul (v, v) w = Tanh (q) }>
}"""


def session(text: str, device: str = "cpu", **constants: Any) -> compiler.Session:
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    for name, value in constants.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    return compiler.load(compiler.compile(made), device, threads=1)


@pytest.fixture(scope="module")
def several() -> compiler.Session:
    return session(SEVERAL, last=np.array([1]))


@pytest.fixture(scope="module")
def forever() -> compiler.Session:
    return session(FOREVER, count=np.int64(2**62), go=np.bool_(True))


def given(i: tuple[int, int] = (0, 3)) -> dict[str, Any]:
    return {"x": np.random.default_rng(0).standard_normal((4, 8), np.float32), "i": np.array(i)}


SUBSETS = [names for count in range(5) for names in itertools.permutations("abgs", count)]


@pytest.mark.parametrize("names", SUBSETS, ids="".join)
def test_some_outputs_equal_those_of_a_whole_run(several: compiler.Session, names: tuple[str, ...]) -> None:
    expected = several.run(given())
    found = several.run(given(), outputs=names)
    assert list(found) == list(names)
    for name, value in found.items():
        assert value.tobytes() == expected[name].tobytes()


@pytest.mark.parametrize("device_outputs", [False, True])
def test_some_outputs_on_a_gpu(device_outputs: bool) -> None:
    pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    emulated = session(SEVERAL, "emulator", last=np.array([1]))
    expected = emulated.run(given())
    for names in SUBSETS:
        found = emulated.run(given(), names, device_outputs=device_outputs)
        assert list(found) == list(names)
        for name, value in found.items():
            assert np.asarray(value).tobytes() == expected[name].tobytes()


def test_steps_that_no_output_needs_do_not_run(several: compiler.Session, forever: compiler.Session) -> None:
    out_of_range = given((0, 4))
    with pytest.raises(compiler.RunError, match="Gather"):
        several.run(out_of_range)
    with pytest.raises(compiler.RunError, match="Gather"):
        several.run(out_of_range, ["g"])
    assert several.run(out_of_range, ["b", "s"]).keys() == {"b", "s"}
    x = np.ones((64, 64), np.float32)
    np.testing.assert_array_equal(forever.run({"x": x}, ["z"])["z"], -x)


def test_an_output_may_be_named_twice(several: compiler.Session) -> None:
    assert list(several.run(given(), ["s", "s", "a"])) == ["s", "a"]
    assert several.run(given(), iter(["s"])).keys() == {"s"}


@pytest.mark.parametrize(
    ("outputs", "error", "said"),
    [
        (["a", "c"], ValueError, "outputs: expected some of a, b, g, s, found 'c'"),
        ("a", TypeError, "outputs: expected a list of names, found 'a'"),
        (1, TypeError, "outputs: expected a list of names, found 1"),
        ([1], TypeError, "outputs: expected a list of names"),
    ],
)
def test_outputs_that_do_not_exist_are_refused(
    several: compiler.Session, outputs: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        several.run(given(), outputs)


def test_a_run_ends_at_its_time_limit(forever: compiler.Session, several: compiler.Session) -> None:
    for timeout in (0, 0.01):
        with pytest.raises(TimeoutError, match="the run reached its time limit"):
            forever.run({"x": np.ones((64, 64), np.float32)}, timeout=timeout)
    assert several.run(given(), timeout=60).keys() == set("abgs")
    assert several.run(given(), timeout=float("inf")).keys() == set("abgs")
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout: expected a number of seconds, found"):
            several.run(given(), timeout=wrong)
    with pytest.raises(TypeError, match="timeout: expected a number of seconds, found '1'"):
        several.run(given(), timeout="1")  # type: ignore[arg-type]


def test_another_thread_ends_a_run(forever: compiler.Session, several: compiler.Session) -> None:
    cancel = forever.new_cancel()
    ending = threading.Timer(0.1, cancel.set)
    ending.start()
    for _ in range(2):  # the second run has an object that is set already
        with pytest.raises(RuntimeError, match="the run was canceled"):
            forever.run({"x": np.ones((64, 64), np.float32)}, cancel=cancel)
    ending.join()
    with pytest.raises(RuntimeError, match="the run was canceled"):  # also a run that takes no time
        several.run(given(), cancel=cancel)
    assert several.run(given(), cancel=several.new_cancel()).keys() == set("abgs")


def test_a_session_is_called_with_its_inputs_in_order(several: compiler.Session) -> None:
    inputs = given()
    expected = several.run(inputs)
    found = several(inputs["x"], inputs["i"])
    assert isinstance(found, tuple) and len(found) == 4
    for value, name in zip(found, "abgs", strict=True):
        assert value.tobytes() == expected[name].tobytes()
    assert several(*inputs.values(), outputs=["s"]).tobytes() == expected["s"].tobytes()
    with pytest.raises(TypeError, match="the plan has 2 inputs, found 3"):
        several(1, 2, 3)
    with pytest.raises(compiler.InputError, match="is missing"):
        several(inputs["x"])


def test_runs_in_tasks(several: compiler.Session) -> None:
    async def both() -> list[dict[str, Any]]:
        return await asyncio.gather(several.run_async(given()), several.run_async(given(), ["a"], timeout=60))

    whole, part = asyncio.run(both())
    expected = several.run(given())
    assert list(whole) == list("abgs") and list(part) == ["a"]
    for name, value in expected.items():
        assert whole[name].tobytes() == value.tobytes()
    assert part["a"].tobytes() == expected["a"].tobytes()


def test_an_error_reaches_the_awaiting_task(several: compiler.Session, forever: compiler.Session) -> None:
    with pytest.raises(compiler.RunError, match="Gather"):
        asyncio.run(several.run_async(given((0, 4))))
    with pytest.raises(compiler.InputError, match="is missing"):
        asyncio.run(several.run_async({}))
    with pytest.raises(TimeoutError):
        asyncio.run(forever.run_async({"x": np.ones((64, 64), np.float32)}, timeout=0.01))


def test_a_canceled_task_ends_its_run(forever: compiler.Session) -> None:
    async def begun_and_canceled() -> int:
        task = asyncio.create_task(forever.run_async({"x": np.ones((64, 64), np.float32)}))
        await asyncio.sleep(0.1)
        assert not task.done(), "the loop goes on during the run"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return threading.active_count()

    before = threading.active_count()
    assert asyncio.run(begun_and_canceled()) <= before + 1, "only the idle thread of the executor is left"


def test_a_task_ends_after_its_run_alone(
    several: compiler.Session, forever: compiler.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits although it is canceled twice, and other runs with its argument `cancel` go on."""
    cancel, run, ended = forever.new_cancel(), forever.run, threading.Event()

    def slow(*arguments: Any, **options: Any) -> Any:
        try:
            return run(*arguments, **options)
        finally:
            time.sleep(0.2)
            ended.set()

    async def canceled_twice() -> None:
        task = asyncio.create_task(forever.run_async({"x": np.ones((64, 64), np.float32)}, cancel=cancel))
        for _ in range(2):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(forever, "run", slow)
    asyncio.run(canceled_twice())
    assert ended.is_set()
    assert several.run(given(), cancel=cancel).keys() == set("abgs")
    cancel.set()
    with pytest.raises(RuntimeError, match="the run was canceled"):
        asyncio.run(several.run_async(given(), cancel=cancel))


def test_the_class_still_makes_sessions() -> None:
    plan = compiler.compile(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {NEG}'))
    with pytest.warns(DeprecationWarning, match="use compiler.load"):
        made = compiler.Session(plan, threads=1)
    assert made.threads == 1
    assert made.run({"x": np.float32([1, -2])})["y"].tolist() == [-1, 2]
