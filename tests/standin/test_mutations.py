"""The tests on the stand-in find what a module would do wrong: each mutation makes an ordinary test fail."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.standin import build, device

pytestmark = pytest.mark.skipif(device.reason() is not None, reason=str(device.reason()))

TESTS = (
    "tests/test_emulator.py::test_models[cuda-digits]",
    "tests/test_emulator.py::test_operators[cuda-test_gemm_all_attributes]",
)
"""A trained model, and a product alone."""


def tested(configuration: str) -> subprocess.CompletedProcess[str]:
    """The outcome of the tests with what the stand-in is to do."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    variables = {**device.environment(configuration), "STANDIN": configuration}
    return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=build.ROOT, timeout=300)


@pytest.mark.parametrize("configuration", ["", "seed=7", "download=late"])
def test_they_pass_without_a_mutation(configuration: str) -> None:
    done = tested(configuration)
    assert done.returncode == 0, done.stdout


@pytest.mark.xfail(reason="the module frees the sources of uploads before the copies have run")
def test_they_pass_where_uploads_are_late() -> None:
    done = tested("upload=late")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("mutation", "found"),
    [
        ("mutate=wait", "AssertionError|max_abs"),
        ("mutate=wait,download=late", "a kernel found a fault"),
        ("mutate=arguments", "CUBLAS_STATUS_INVALID_VALUE"),
        ("mutate=source,upload=late", "the source of an upload of .* bytes changed before the copy ran"),
        ("mutate=past", "wrote past the end of a block of"),
    ],
)
def test_a_mutation_is_found(mutation: str, found: str) -> None:
    done = tested(mutation)
    assert done.returncode == 1, done.stdout + done.stderr
    assert " failed" in done.stdout.splitlines()[-1], done.stdout
    assert re.search(found, done.stdout), done.stdout
