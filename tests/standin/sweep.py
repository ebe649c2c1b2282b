"""Loads and runs a small plan while calls fail, many times in one separate process.

`python -m tests.standin.sweep PLAN` reads lines "FIRST LAST PATTERN". It puts each number from FIRST to LAST into the
pattern, as in "fail=cuMemAllocAsync:{}:2", and prints what becomes of the plan, a JSON line each; then a dot.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import compiler
from compiler.runtime.devices import CUDA
from tests.standin import build
from tests.standin.device import CONFIGURATION, StandIn

MODEL = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n, 4] x, int64[m] i) => (float[m, 3] y, float[n, 4] z) <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    p = MatMul(x, w)
    q = Softmax(p)
    y = Gather(q, i)
    e = Exp(x)
    z = Mul(e, x)
}"""
"""A product, kernels of three modules, a program of instructions, and two outputs."""


class Sweeper:
    """Runs sweeps in a separate process. Starts a new process if the last one ended."""

    def __init__(self, plan: Path) -> None:
        self.plan = plan
        self._errors = plan.with_suffix(".errors")
        self._process: subprocess.Popen[str] | None = None

    def run(self, pattern: str, first: int, last: int) -> list[dict[str, Any]]:
        """The outcomes of the plan for each number in the pattern.

        Raises:
            AssertionError: the process panicked or ended.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{first} {last} {pattern}\n")
        process.stdin.flush()
        found = []
        while (line := process.stdout.readline().strip()) not in ("", "."):
            found.append(json.loads(line))
        said = self._errors.read_text()
        if line != "." or "panicked" in said:
            code = process.poll()
            self.end()
            raise AssertionError(f"exit code {code} after {found[-1:]}: {said}")
        return found

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-m", "tests.standin.sweep", str(self.plan)]
            with self._errors.open("w") as errors:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=build.ROOT
                )
        return self._process


def given() -> dict[str, Any]:
    """The inputs of the model."""
    return {"x": np.arange(8, dtype=np.float32).reshape(2, 4) / 8, "i": np.array([1, 0, 1])}


def wanted_of(plan: str) -> dict[str, Any]:
    """The outputs on the CPU."""
    return compiler.load(plan).run(given())


def outcome(plan: str, wanted: dict[str, Any]) -> str:
    """Loads and runs the plan on the stand-in. Returns "right", "wrong", or the exception."""
    try:
        found = compiler.load(plan, device="cuda", threads=1).run(given())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "right" if all(np.allclose(found[name], wanted[name]) for name in wanted) else "wrong"


def tries(standin: StandIn, plan: str, pattern: str, first: int, last: int) -> Iterator[dict[str, Any]]:
    """The outcome of the plan for each number, then the outcome without a failing call, and the report."""
    wanted = wanted_of(plan)
    for number in range(first, last + 1):
        standin.configure(f"{CONFIGURATION},{pattern.format(number)}")
        found = outcome(plan, wanted)
        calls = standin.calls()
        standin.configure(CONFIGURATION)
        then = outcome(plan, wanted)
        yield {"number": number, "found": found, "then": then, "calls": calls, "report": standin.report()}


def serve(plan: str) -> None:
    """Reads a sweep per line from the standard input, and prints its outcomes."""
    standin = StandIn()
    sys.modules[CUDA] = standin.module
    for line in sys.stdin:
        first, last, pattern = line.strip().split(" ", 2)
        for each in tries(standin, plan, pattern, int(first), int(last)):
            print(json.dumps(each), flush=True)
        print(".", flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
