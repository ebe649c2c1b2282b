"""Files and plans changed at random, each kind in a separate process. The variable FUZZ sets the number of seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

import compiler

ROOT = Path(__file__).parent.parent
SEEDS = range(int(os.environ.get("FUZZ", "1")))
FLIPS = 1000
CASES = 1500

LARGER = """<ir_version: 9, opset_import: ["": 20, "private": 1]>
g (float[batch, 3, 8] x, int64[2] n, bool c) => (float[batch, 24] y, z, w)
<float[3, 1] k = {1.0, 2.0, 3.0}, int64[2] s = {0, -1}, int64[1] axes = {0}>
{
    moved = Transpose <perm = [0, 2, 1]> (x)
    flat = Reshape (moved, s)
    y = Identity (flat)
    shape = Shape <start = 1> (x)
    z = Unsqueeze (shape, axes)
    called = private.Squeezed (x)
    w = If (c) <
        then_branch = t () => (tw) { tw = Concat <axis = -1> (called, called) },
        else_branch = e () => (ew) { ew = Slice (called, axes, n) }
    >
}
<domain: "private", opset_import: ["": 20]> Squeezed (x) => (y) { t = Squeeze (x)  y = Identity (t) }
"""


def fuzz(folder: Path, module: str, *arguments: object) -> str:
    """The last line that the process prints. The process must not crash."""
    command = [sys.executable, "-m", f"tests.{module}", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{command[2:]} at {lines[-1:]}: {done.returncode} {done.stderr[-2000:]}"
    return lines[-1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", ["fuzz_plan larger.plan", "fuzz_plan larger.plan --sign", "fuzz_model larger.onnx"])
def test_flipped_bits(tmp_path: Path, script: str, seed: int) -> None:
    onnx.save(onnx.parser.parse_model(LARGER), tmp_path / "larger.onnx")
    compiler.compile(tmp_path / "larger.onnx").save(tmp_path / "larger.plan")
    module, file, *options = script.split()
    assert "refused" in fuzz(tmp_path, module, file, FLIPS, seed, *options)


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_operations(tmp_path: Path, seed: int) -> None:
    assert "ran" in fuzz(tmp_path, "fuzz_ops", seed, CASES)
