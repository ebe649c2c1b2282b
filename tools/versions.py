"""Runs tests with the lowest or the newest versions of the compiler's dependencies.

`make test-lowest` and `make test-newest` call it with the options of pytest that select tests that need no PyTorch.
The environments build/lowest and build/newest contain the dependencies of pyproject.toml, onnxruntime and packages for
tests, but neither PyTorch nor Ray, because the tests that use them take long. The tests use the extension in the
checkout. With the lowest versions, other packages have the versions of tests/constraints.txt; one of them is
onnxruntime, because the tests compare with a known version. The newest versions are the current ones. If the
environment that runs this program has them already, its own tests are those with the newest versions, and the program
runs none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import tomlkit

ROOT = Path(__file__).parent.parent
EXTRAS = ("batch", "check", "test")
"""The extras whose packages the tests use."""


def main() -> None:
    """Create the environment, run the tests in it, and exit with the exit code of pytest."""
    which, *options = sys.argv[1:] or [""]
    if which not in ("lowest", "newest"):
        sys.exit("usage: python tools/versions.py lowest|newest [OPTIONS OF PYTEST]")
    if which == "newest":
        newer = newer_versions()
        if not newer:
            print("The newest versions are those in this environment, with which `make test-python` runs the tests")
            return
        print(f"Newer than in this environment: {', '.join(newer)}", flush=True)
    folder = ROOT / "build" / which
    python = folder / "bin/python"
    if not has_pip(python):
        venv.create(folder, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    wanted = [*runtime_requirements(), *test_requirements()]
    if which == "lowest":
        install += ["--constraint", str(lowest_versions(folder / "lowest.txt"))]
    else:
        install += ["--upgrade", "--upgrade-strategy", "eager"]
    if subprocess.run([*install, *wanted], check=False).returncode:
        sys.exit(f"the {which} versions could not be installed: pip's message is above")
    environment = {**os.environ, "WITHOUT_TORCH": "1"}
    tests = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *options]
    sys.exit(subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode)


def newer_versions() -> list[str]:
    """The newest versions of the dependencies, and of what they need, that this environment lacks: `["numpy 2.5.0"]`.

    Raises:
        subprocess.CalledProcessError: pip cannot find them.
    """
    resolve = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
    resolve += ["--ignore-installed", "--report", "-", *product_requirements()]
    found = json.loads(subprocess.run(resolve, capture_output=True, check=True).stdout)["install"]
    newest = {package["metadata"]["name"]: package["metadata"]["version"] for package in found}
    return [f"{name} {version}" for name, version in sorted(newest.items()) if installed(name) != version]


def installed(name: str) -> str | None:
    """The version of a package in this environment."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def has_pip(python: Path) -> bool:
    """Whether an environment is complete: an interrupted run or a new Python leaves one that is not."""
    try:
        return subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    return dict(tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()["project"])


def runtime_requirements() -> list[str]:
    """The dependencies of pyproject.toml, such as `numpy>=1.26`."""
    return [str(each) for each in project()["dependencies"]]


def product_requirements() -> list[str]:
    """The packages that results can depend on: `dependencies`, onnxruntime, and those that read and write data."""
    extras = project()["optional-dependencies"]
    return [*runtime_requirements(), *(str(each) for extra in ("batch", "check") for each in extras[extra])]


def test_requirements() -> list[str]:
    """The packages of `EXTRAS`; the compiler itself is the checkout."""
    wanted = (str(each) for extra in EXTRAS for each in project()["optional-dependencies"][extra])
    return [each for each in wanted if not each.startswith("candle-compiler")]


def lowest_versions(path: Path) -> Path:
    """Write the constraints: lower bounds of dependencies and of the extra `batch`, otherwise versions of the tests.

    Raises:
        ValueError: a dependency has no lower bound.
    """
    lines = []
    for requirement in [*runtime_requirements(), *project()["optional-dependencies"]["batch"]]:
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
