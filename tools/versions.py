"""Runs a part of the tests with the lowest or the newest versions of the compiler's dependencies.

`make test-lowest` and `make test-newest` call it. The environments build/lowest and build/newest contain the
dependencies of pyproject.toml, onnxruntime and pytest, but not PyTorch. The tests use the extension in the checkout.
With the lowest versions, other packages have the versions of tests/constraints.txt. The newest versions are the current
ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import tomlkit

ROOT = Path(__file__).parent.parent
TESTED_WITH = ("onnxruntime", "pytest", "pytest-xdist", "tomli; python_version < '3.11'")
TESTS = (
    *("tests/golden", "tests/cli", "tests/test_arguments.py", "tests/test_attributes_of_plans.py"),
    *("tests/test_bad_input.py", "tests/test_verify.py", "tests/test_crash.py", "tests/test_declarations.py"),
    *("tests/test_diagnostics.py", "tests/test_external.py", "tests/test_imports.py", "tests/test_load_model.py"),
    *("tests/test_loading.py", "tests/test_pipeline.py", "tests/test_sympy_later.py", "tests/test_invariants.py"),
    *("tests/passes/test_fold_constants.py", "tests/passes/test_infer_shapes.py"),
    *("tests/lower/test_conv.py", "tests/lower/test_shape.py"),
)
"""Tests of the command line, compilation, plans and errors, which use onnx, onnx_ir and NumPy most."""


def main() -> None:
    """Create the environment, run the tests in it, and exit with the exit code of pytest."""
    which = sys.argv[1:]
    if which not in (["lowest"], ["newest"]):
        sys.exit("usage: python tools/versions.py lowest|newest")
    folder = ROOT / "build" / which[0]
    python = folder / "bin/python"
    if not has_pip(python):
        venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = [*runtime_requirements(), *TESTED_WITH]
    if which == ["lowest"]:
        install += ["--constraint", str(lowest_versions(folder / "lowest.txt"))]
    else:
        install += ["--upgrade", "--upgrade-strategy", "eager"]
    if subprocess.run([*install, *wanted], check=False).returncode:
        sys.exit(f"the {which[0]} versions could not be installed: pip's message is above")
    sys.exit(subprocess.run([str(python), "-m", "pytest", "-q", "-n", "2", *TESTS], cwd=ROOT, check=False).returncode)


def has_pip(python: Path) -> bool:
    """Whether an environment is complete: an interrupted run or a new Python leaves one that is not."""
    try:
        return subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def runtime_requirements() -> list[str]:
    """The dependencies of pyproject.toml, such as `numpy>=1.26`."""
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()["project"]
    return [str(each) for each in project["dependencies"]]


def lowest_versions(path: Path) -> Path:
    """Write the constraints: the lower bound of each dependency, and the versions of the tests for other packages.

    Raises:
        ValueError: a dependency has no lower bound.
    """
    lines = []
    for requirement in runtime_requirements():
        found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
        if found is None:
            raise ValueError(f"{requirement} has no lower bound: state the tested version in pyproject.toml")
        lines.append(f"{found[1]}=={found[2]}")
    names = {normalized(line) for line in lines}
    others = (ROOT / "tests/constraints.txt").read_text(encoding="utf-8").splitlines()
    lines += [line for line in others if not line.startswith("#") and normalized(line) not in names]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def normalized(requirement: str) -> str:
    """The normalized name of a requirement's package."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    main()
