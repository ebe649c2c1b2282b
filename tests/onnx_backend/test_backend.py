"""The onnx package's backend tests against the ledger: an unlisted failure fails, and so does a passing test's line."""

from __future__ import annotations

import pytest

import compiler
from tests.onnx_backend import ledger
from tests.onnx_backend.cases import load_cases, run_case

CASES = load_cases()
FAILING = ledger.read()


@pytest.mark.parametrize("name", sorted(CASES))
def test_backend(name: str) -> None:
    try:
        run_case(CASES[name])
    except Exception as error:
        if name not in FAILING:
            raise
        assert FAILING[name].reason, f"{name} fails ({error}), and its line gives no reason"
        assert not (wrong := ledger.contradiction(FAILING[name], error)), f"{name}: {wrong}"
    else:
        assert name not in FAILING, f"{name} passes: take its line out of failing.toml"


@pytest.mark.parametrize("name", sorted(ledger.lowered(FAILING)))
def test_backend_with_three_dimensions_lowered(name: str) -> None:
    run_case(CASES[name], compiler.Options(lower_3d=True))


def test_enough_pass_with_three_dimensions_lowered() -> None:
    assert len(ledger.lowered(FAILING)) == 31


def test_ledger_names_tests() -> None:
    assert set(FAILING) <= set(CASES)


def test_most_pass() -> None:
    assert len(CASES) == 2024
    assert len(FAILING) <= len(CASES) - 1000
