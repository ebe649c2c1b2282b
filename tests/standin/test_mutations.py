"""Errors in a module: each mutation makes a test fail that passes without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import compiler
from tests.running import SOON
from tests.standin import build, device
from tests.standin.sweep import MODEL, Sweeper, outcome, wanted_of

pytestmark = pytest.mark.skipif(device.reason() is not None, reason=str(device.reason()))


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "small.plan"
    compiler.compile(onnx.parser.parse_model(MODEL)).save(path)
    return path


def test_a_plan(standin: device.StandIn, plan: Path) -> None:
    assert outcome(str(plan), wanted_of(str(plan))) == "right"


@pytest.mark.parametrize("configuration", [*(f"seed={seed}" for seed in range(4)), "download=late"])
def test_a_plan_in_other_orders(configuration: str, standin: device.StandIn, plan: Path) -> None:
    standin.configure(f"{device.CONFIGURATION},{configuration}")
    assert outcome(str(plan), wanted_of(str(plan))) == "right"


def test_a_plan_whose_uploads_are_late(plan: Path) -> None:
    (found,) = swept(plan, "upload=late")
    assert (found["found"], found["report"]) == ("right", [])


def swept(plan: Path, configuration: str) -> list[dict[str, object]]:
    """Runs the plan in a separate process, and returns the outcome."""
    sweeper = Sweeper(plan)
    try:
        return sweeper.run(f"{configuration},seed={{}}", 1, 1)
    finally:
        sweeper.end()


@pytest.mark.parametrize(
    ("mutation", "found"),
    [
        ("mutate=wait", "a kernel found a fault, of no step"),
        ("mutate=wait,download=late", "a kernel found a fault, of no step"),
        (
            "mutate=arguments",
            "cublasGemmStridedBatchedEx has a matrix B: 48 bytes at 0x[0-9a-f]+ that are not in one",
        ),
        ("mutate=source,upload=late", "the source of an upload of 32 bytes changed before the copy ran"),
        ("mutate=past", "softmax/softmax_f32 wrote past the end of a block of 20 bytes, at byte 20"),
    ],
)
def test_a_mutation_is_found(mutation: str, found: str, plan: Path) -> None:
    (each,) = swept(plan, mutation)
    assert re.search(found, f"{each['found']} {each['report']}", re.DOTALL), each


def test_a_mutation_makes_a_test_fail() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_a_plan"]
    for mutation, said in (("wait", "1 failed"), ("past", "wrote past the end of a block of"), ("none", "")):
        variables = {**os.environ, "STANDIN": "" if mutation == "none" else f"mutate={mutation}"}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=build.ROOT, timeout=SOON)
        assert (done.returncode == 0) == (mutation == "none"), done.stdout
        assert said in done.stdout


def test_an_unread_report_fails_the_process(plan: Path) -> None:
    script = "import sys, compiler; compiler.load(sys.argv[1], device='cuda')"
    assert device.child(script, "", plan).returncode == 0
    # The instructions of a program fill the memory that is allocated for them.
    done = device.child(script, "mutate=past", plan)
    assert done.returncode == device.UNREAD, done.stderr
    assert "stand-in: somebody wrote past the end" in done.stderr
