"""Ctrl-C ends an endless run between two of its steps."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler import Plan
from tests.running import SOON

FOR_EVER = 10**12
BODIES = {
    "a step": "{ d = Identity (c)  one = Constant <value = float {1.0}> ()  e = Add (a, one) }",
    "no step": "{ d = Identity (c)  e = Identity (a) }",
}


def plan_of(body: str, count: int) -> Plan:
    """A loop of so many iterations."""
    graph = f"""(float[2] x) => (float[2] y) <int64 n = {{{count}}}> {{
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e) {body}>
    }}"""
    return compiler.compile(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> m {graph}'))


# A process that is started in the background may have been told to ignore the signal.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from compiler.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("options", [(), ("--profile",)], ids=["run", "profile"])
def test_a_command_ends(body: str, options: tuple[str, ...], tmp_path: Path) -> None:
    plan_of(BODIES[body], FOR_EVER).save(tmp_path / "loop.plan")
    command = [sys.executable, "-c", COMMAND, "run", str(tmp_path / "loop.plan"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert "the inputs are random" in process.stderr.readline()  # the run is next
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=SOON)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.strip() == "interrupted"


class Stopped(Exception):
    """The exception that the signal's handler raises."""


def stop(_number: int, _frame: object) -> None:
    raise Stopped


@pytest.fixture
def alarm() -> Iterator[Callable[[], object]]:
    """A function after whose call a signal arrives in 0.2 seconds."""
    before = signal.signal(signal.SIGALRM, stop)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("method", ["run", "profile"])
def test_what_the_handler_raises_is_raised(method: str, alarm: Callable[[], object]) -> None:
    session = compiler.load(plan_of(BODIES["a step"], FOR_EVER), threads=1)
    with pytest.raises(Stopped):
        alarm()
        getattr(session, method)({"x": np.zeros(2, np.float32)})


def test_a_run_in_another_thread_goes_on(alarm: Callable[[], object]) -> None:
    session, outputs = compiler.load(plan_of(BODIES["a step"], 100_000), threads=1), []
    thread = threading.Thread(target=lambda: outputs.append(session.run({"x": np.zeros(2, np.float32)})))
    thread.start()
    with pytest.raises(Stopped):
        alarm()
        time.sleep(SOON)
    thread.join()
    np.testing.assert_array_equal(outputs[0]["y"], [1e5, 1e5])
