"""Plans on tensors that Candle has on the stand-in: scenarios of the program in `candle/`, each in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import compiler
from tests.standin import build, device

MANIFEST = Path(__file__).parent / "candle/Cargo.toml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", build.ROOT / "runtime/target"))
"""Where `tools/build_cuda.py` has built the kernels, which take minutes: the profile and the locked versions are its own."""

KINDS = "uint8 uint32 int16 int32 int64 bfloat16 float16 float double float8e4m3fn".split()
PLANS = {
    "sum": "g (float[n, m] x, float[n, m] y) => (float[n, m] sum) { sum = Add(x, y) }",
    "types": "g ({}) => ({}) {{ {} }}".format(
        ", ".join(f"{kind}[n] a{at}" for at, kind in enumerate(KINDS)),
        ", ".join(f"{kind}[n] b{at}" for at, kind in enumerate(KINDS)),
        " ".join(f"b{at} = Identity(a{at})" for at in range(len(KINDS))),
    ),
    "booleans": "g (bool[n] x) => (bool[n] y) { y = Not(x) }",
}


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, which is built where something has changed."""
    why = device.reason() or (None if shutil.which("cargo") else "cargo is not on PATH")
    if why is not None:
        pytest.skip(why)
    sys.path.insert(0, str(build.ROOT / "tools"))
    try:
        from build_cuda import wheels

        toolkit = Path(os.environ.get("CUDA_HOME") or wheels())
    except SystemExit as error:
        pytest.skip(str(error))
    finally:
        sys.path.pop(0)
    variables = {
        **os.environ,
        # What Candle links, it finds in the stand-in; none of its kernels is built.
        "CUDA_HOME": str(build.toolkit()),
        "CUDARC_CUDA_VERSION": "13000",
        "NVCC": str(toolkit / "bin/nvcc"),
    }
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir", TARGET]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return TARGET / "release/candle-tensors"


@pytest.mark.parametrize(
    ("scenario", "plan", "configuration"),
    [
        ("shared", "sum", ""),
        *(("ordered", "sum", f"seed={seed}") for seed in range(4)),
        ("views", "sum", ""),
        ("outlives", "sum", "seed=1"),
        ("types", "types", ""),
        ("booleans", "booleans", ""),
        ("refused", "sum", ""),
        ("elsewhere", "sum", "devices=2"),
    ],
)
def test_candle(scenario: str, plan: str, configuration: str, program: Path, tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]>\n' + PLANS[plan]
    path = tmp_path / f"{plan}.plan"
    compiler.compile(onnx.parser.parse_model(text)).save(path)
    variables = device.environment(configuration)
    done = subprocess.run([program, scenario, path], env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
