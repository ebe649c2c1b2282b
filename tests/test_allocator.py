"""Memory that nobody has written yet: what its use needs of the allocator, which the environment can change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PROGRAM = """
import json, re
from pathlib import Path
import numpy as np, onnx.parser
import compiler
from compiler import _runtime

TEXT = '<ir_version: 9, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { a = Abs (x) b = Neg (a) y = Exp (b) }'
session = compiler.load(compiler.compile(onnx.parser.parse_model(TEXT)))
before, numbers = _runtime.keeps_pages(), np.random.default_rng(0).standard_normal(20_000_000, np.float32)
for count in (1_000, 20_000_000, 3_000_000, 10_000_000, 5_000):
    x = numbers[:count]
    assert np.allclose(session.run({"x": x})["y"], np.exp(-np.abs(x)), rtol=1e-5)
rollup = Path("/proc/self/smaps_rollup")
freed = re.search(r"LazyFree:\\s+(\\d+) kB", rollup.read_text()) if rollup.exists() else None
print(json.dumps([before, _runtime.keeps_pages(), int(freed[1]) if freed else None]))
"""
"""Runs on inputs of several sizes, so that regions of memory go back to mimalloc, and come again."""


def facts(**environment: str) -> tuple[bool, bool, int | None]:
    """Whether the allocator keeps pages, before and after the runs, and the kilobytes with the advice `MADV_FREE`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIMALLOC_")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after, freed = json.loads(done.stdout)
    return before, after, freed


@pytest.mark.parametrize("environment", [{}, {"MIMALLOC_PURGE_DELAY": "0"}, {"MIMALLOC_PURGE_DECOMMITS": "1"}])
def test_pages_are_kept_on_linux(environment: dict[str, str]) -> None:
    """mimalloc then gives the advice for none of its pages."""
    before, after, freed = facts(**environment)
    assert after is (sys.platform == "linux")
    assert after >= before
    assert freed in (0, None)


@pytest.mark.parametrize("name", ["MIMALLOC_PURGE_DECOMMITS", "MIMALLOC_RESET_DECOMMITS"])
def test_pages_are_not_kept_if_the_environment_says_so(name: str) -> None:
    """mimalloc then gives the advice `MADV_FREE`, so kernels touch each page of a result first. Results are right."""
    before, after, _ = facts(**{name: "0", "MIMALLOC_PURGE_DELAY": "0"})
    assert (before, after) == (False, False)
