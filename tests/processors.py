"""The compiler and the runtime on other x86-64 processors than this machine's, described to the emulator qemu.

Only `make test-processors` runs these tests. qemu emulates the programs that a test starts, but not the test itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
ZOO = Path(os.environ.get("ZOO", ROOT.parent / "shared/zoo"))
LISTED = ROOT / "build/rust-tests.json"
"""The list of the Rust tests that `cargo nextest list` writes."""

HASWELL = "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm"
"""AVX2 and FMA, without AVX-512 and VNNI. The names after the minus signs are features that qemu does not have."""
NEHALEM = "Nehalem"
"""SSE4.2, without AVX."""
SANDY_BRIDGE = "SandyBridge,-x2apic,-tsc-deadline"
"""AVX, without AVX2."""

pytestmark = pytest.mark.skipif(QEMU is None, reason="qemu-x86_64 is not installed (Debian: qemu-user-static)")


def emulated(cpu: str, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this machine on another processor."""
    assert QEMU is not None
    # On some hosts, NumPy's OpenBLAS takes an emulated Nehalem for a processor with AVX, and ends with an illegal
    # instruction. Its names of cores are those of qemu.
    core = cpu.partition(",")[0].upper()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_CORETYPE": core, **variables}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [QEMU, "-cpu", cpu, *map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def python(cpu: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return emulated(cpu, sys.executable, *arguments, **variables)


def assert_tests_pass(cpu: str, arguments: Sequence[str]) -> None:
    """Run pytest with these arguments on the processor. No test may fail or be skipped."""
    done = python(cpu, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout[-2000:]


INTEGERS = [
    "tests/lower/test_integer.py",
    "tests/test_unsigned.py",
    "tests/passes/test_fuse_quantization.py",
    "tests/test_suite.py::test_a_plan_computes_the_row[int8_matmul_128x768x3072]",
    "tests/test_suite.py::test_a_plan_computes_the_row[qdq_conv_1x1_256_to_64_at_56]",
]
"""The tests that compare products of integers with onnxruntime's."""


def test_integers_and_each_family_of_operators_run_at_avx2() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "tests/lower"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    tests = [line for line in listed if "::" in line]
    families = [next(group) for _, group in groupby(tests, lambda line: line.partition("::")[0])]
    assert len(families) > 50
    once = ["--first-cases", "tests/passes", "--first-cases", "tests/test_unsigned.py"]
    assert_tests_pass(HASWELL, [*INTEGERS, *families, *once])


@pytest.mark.parametrize(("cpu", "level"), [(HASWELL, "avx2"), (NEHALEM, "scalar"), (SANDY_BRIDGE, "scalar")])
def test_the_level_is_what_the_processor_has(cpu: str, level: str) -> None:
    done = python(cpu, "-c", "from compiler.runtime.processor import levels; print(*levels())")
    assert done.stdout.split()[-1:] == [level], done.stderr


@pytest.mark.parametrize("cpu", [HASWELL, NEHALEM])
def test_each_family_of_kernels_runs(cpu: str) -> None:
    suites = json.loads(LISTED.read_text())["rust-suites"]
    kernels = suites["candle-plan-kernels"]
    names = sorted(kernels["testcases"])
    tests = [next(group) for _, group in groupby(names, lambda name: name.partition("::")[0])]
    assert len(tests) > 20
    done = emulated(cpu, kernels["binary-path"], "--exact", "--test-threads", "1", *tests)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert f"{len(tests)} passed; 0 failed" in done.stdout


MODELS = [  # model, case, whether onnxruntime is given other codes
    (ROOT / "models/digits.onnx", ROOT / "models/digits.npz", False),
    (ZOO / "mobilenetv2_int8_maui.onnx", ZOO / "inputs/mobilenetv2_int8_maui.real1.npz", True),
    (ZOO / "silero_vad_op18_ifless.onnx", ZOO / "inputs/silero_vad_op18_ifless.real0.npz", False),
]


@pytest.mark.parametrize(("model", "case", "is_rewritten"), MODELS, ids=lambda value: getattr(value, "stem", ""))
def test_trained_models_equal_onnxruntimes(model: Path, case: Path, is_rewritten: bool) -> None:
    if not model.exists():
        pytest.skip(f"{model} is missing: set ZOO to a folder of models")
    done = python(HASWELL, "-m", "compiler", "verify", model, "--input", case, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["equal"], done.stdout
    assert ("saturate" in report["note"]) is is_rewritten


UNREWRITTEN = """
import pytest, sys
from compiler.accuracy import reference
reference.saturates = lambda: False
sys.exit(pytest.main(["-q", "-p", "no:xdist", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_these_tests_fail_where_the_reference_is_not_rewritten() -> None:
    done = python(HASWELL, "-c", UNREWRITTEN, "tests/lower/test_integer.py::test_qlinear_conv")
    assert done.returncode == 1, done.stdout
    assert "4 failed" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("cpu", [NEHALEM, SANDY_BRIDGE])
def test_a_processor_without_avx2_runs_everything_slowly(cpu: str) -> None:
    model = ROOT / "models/digits.onnx"
    done = python(cpu, "-m", "compiler", "verify", model, "--input", model.with_suffix(".npz"), "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["equal"], done.stderr


def test_a_level_that_the_processor_lacks_is_refused_in_a_sentence() -> None:
    done = python(NEHALEM, "-m", "compiler", "bench", "models/digits.onnx", CANDLE_PLAN_ISA="avx2")
    assert done.returncode == 1
    assert 'CANDLE_PLAN_ISA is "avx2", and this processor has scalar' in done.stderr
