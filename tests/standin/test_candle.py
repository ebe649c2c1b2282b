"""Plans on tensors that Candle has on the stand-in: scenarios of the program in `candle/`, each in its own process."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import onnx.parser
import pytest

import compiler
from tests.running import SOON
from tests.standin import build, device, program

KINDS = ["uint8", "uint32", "int16", "int32", "int64", "bfloat16", "float16", "float", "double", "float8e4m3fn"]
PLANS = {
    "sum": "g (float[n, m] x, float[n, m] y) => (float[n, m] sum) { sum = Add(x, y) }",
    "types": "g ({}) => ({}) {{ {} }}".format(
        ", ".join(f"{kind}[n] a{at}" for at, kind in enumerate(KINDS)),
        ", ".join(f"{kind}[n] b{at}" for at, kind in enumerate(KINDS)),
        " ".join(f"b{at} = Identity(a{at})" for at in range(len(KINDS))),
    ),
    "layer": "g (float[n, 4] x) => (float[n, 4] y) { r = Relu(x) y = Sub(r, x) }",
    "bits": "g (bool[n, m] x) => (bool[n, m] y, bool[n, m] same) { y = Not(x) same = Identity(x) }",
    "booleans": "g (bool[n] x) => (bool[n] y) { y = Not(x) }",
    "model": "g (int64[n, m] tokens) => (float[n, m] logits) { logits = Cast <to = 1> (tokens) }",
}


@pytest.fixture(scope="module")
def built() -> Path:
    """The program. Skips the tests if it cannot be built."""
    why = device.reason() or (None if shutil.which("cargo") else "cargo is not on PATH")
    if why is not None:
        pytest.skip(why)
    try:
        return program.built()
    except SystemExit as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("scenario", "plan", "configuration"),
    [
        ("shared", "sum", ""),
        *((each, "sum", f"seed={seed}") for each in ("ordered", "thread", "streams") for seed in range(3)),
        ("views", "sum", ""),
        ("outlives", "sum", "seed=1"),
        ("types", "types", ""),
        ("booleans", "booleans", ""),
        ("refused", "sum", ""),
        ("elsewhere", "sum", "devices=2"),
        ("example", "model", ""),
        *(("layer", "layer", f"seed={seed}") for seed in range(3)),
        *(("threads", "sum", f"seed={seed}") for seed in range(3)),
        ("uncopied", "sum", ""),
        ("uncopied", "sum", "pools=0"),
        *(("shared stream", "sum", f"seed={seed}") for seed in range(3)),
        ("given", "sum", "given=1"),
        ("given", "sum", "pools=0"),
        ("memory", "sum", "memory=48M"),
        ("no events", "sum", ""),
        ("parts", "sum", ""),
        *(("returned", "sum", f"seed={seed}") for seed in range(3)),
        ("typed", "bits", ""),
        ("wrong", "sum", ""),
        ("wrong device", "sum", "devices=2"),
    ],
)
def test_candle(scenario: str, plan: str, configuration: str, built: Path, tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]>\n' + PLANS[plan]
    path = tmp_path / f"{plan}.plan"
    compiler.compile(onnx.parser.parse_model(text)).save(path)
    variables = device.environment(configuration)
    done = subprocess.run(
        [built, scenario, path], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=SOON
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_the_page_shows_what_runs() -> None:
    page = (build.ROOT / "docs/candle-on-a-gpu.md").read_text()
    block = re.search(r"```rust\n(use candle_core.*?)```", page, re.DOTALL)
    assert block is not None
    source = textwrap.dedent((program.FOLDER / "src/example.rs").read_text())
    lines = {line.strip() for line in source.splitlines()}
    missing = [line for line in block[1].splitlines() if line.strip() not in lines]
    assert not missing
