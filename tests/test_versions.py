"""The packages and versions that `make test-lowest` and `make test-newest` install."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools/versions.py"))


def test_the_lowest_versions_are_those_of_the_project(tmp_path: Path) -> None:
    lines = TOOL["lowest_versions"](tmp_path / "lowest.txt").read_text().splitlines()
    for requirement in TOOL["runtime_requirements"]():
        versions, _, _ = requirement.partition(";")
        name, _, bound = versions.partition(",")[0].partition(">=")
        assert f"{name}=={bound}" in lines
    names = [TOOL["normalized"](line) for line in lines]
    assert len({*names}) == len(names), "pip refuses two constraints of one package"
    assert any(line.startswith("onnxruntime==") for line in lines)


def test_a_dependency_needs_a_lower_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = TOOL["lowest_versions"]
    monkeypatch.setitem(function.__globals__, "runtime_requirements", lambda: ["numpy"])
    with pytest.raises(ValueError, match=r"numpy has no lower bound: state the tested version"):
        function(tmp_path / "lowest.txt")


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("ml_dtypes>=0.5", "ml-dtypes"), ("onnx-ir>=1.1,<2", "onnx-ir"), ("numpy==2.4; python_version > '3'", "numpy")],
)
def test_names_are_compared_as_pip_does(requirement: str, name: str) -> None:
    assert TOOL["normalized"](requirement) == name


def test_an_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    assert not TOOL["has_pip"](broken)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert not TOOL["has_pip"](broken)
    assert TOOL["has_pip"](Path(sys.executable))


def test_the_packages_of_the_tests_are_installed_but_not_the_compiler() -> None:
    names = {TOOL["normalized"](each) for each in TOOL["test_requirements"]()}
    assert {"onnxruntime", "pytest", "hypothesis"} <= names
    assert not {"candle-compiler", "torch"} & names


def test_newest_versions_are_tested_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    main = TOOL["main"]
    monkeypatch.setattr(sys, "argv", ["versions.py", "newest"])
    monkeypatch.setitem(main.__globals__, "newer_versions", list)
    main()
    assert "the newest versions are those in this environment" in capsys.readouterr().out.lower()


def test_versions_that_are_not_installed_are_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    function = TOOL["newer_versions"]
    packages = {"numpy": "99.0", "pytest": TOOL["installed"]("pytest"), "absent-package": "1.0"}
    report = {"install": [{"metadata": {"name": name, "version": version}} for name, version in packages.items()]}
    text = json.dumps(report).encode()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=text))
    assert function() == ["absent-package 1.0", "numpy 99.0"]


def test_results_depend_on_the_dependencies_and_the_reference() -> None:
    names = {TOOL["normalized"](each) for each in TOOL["product_requirements"]()}
    assert {"numpy", "onnx", "onnx-ir", "click", "onnxruntime", "pyarrow"} <= names
    assert "pytest" not in names
