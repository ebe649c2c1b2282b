"""The release: its workflow is sound, its scripts run without GitHub, and the source distribution is complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sources import files
from tests.test_rust_manifests import MANIFESTS, RUNTIME, needed
from tests.workflows import lint, program, schema_errors
from tools.wheels import sizes

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github/workflows/release.yml"
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text())["jobs"]
SCRIPTS = {
    f"{job}: {step.get('name')}": step["run"] for job, each in JOBS.items() for step in each["steps"] if "run" in step
}
MATRIX: list[dict[str, Any]] = JOBS["wheel"]["strategy"]["matrix"]["include"]
MATURIN = shutil.which("maturin", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def script(name: str) -> str:
    """The script of the step with this name."""
    (found,) = (text for each, text in SCRIPTS.items() if each.endswith(f": {name}"))
    return found


def run(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does, with the programs of `folder`/bin first on PATH."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    own = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "CALLS": str(folder / "calls.txt"), **environment}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(command, env=own, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with programs that record their calls, and with `candlec`, which is this checkout's."""
    (tmp_path / "bin").mkdir()
    for name in ("apk", "gh", "maturin", "pip", "rustup"):
        program(tmp_path / "bin", name, f'echo {name} "$@" >>"$CALLS"')
    program(tmp_path / "bin", "candlec", f'exec "{sys.executable}" -m compiler "$@"')
    return tmp_path


def test_the_workflow_has_the_structure_that_github_reads() -> None:
    assert not schema_errors("workflows", WORKFLOW)


def test_the_workflow_is_sound() -> None:
    assert not lint("actionlint", str(WORKFLOW))


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_sound(name: str) -> None:
    assert "${{" not in SCRIPTS[name], "a value of GitHub comes in a variable, because it may contain commands"
    assert not lint("bash", "-n", "-", text=SCRIPTS[name])
    assert not lint("shellcheck", "--shell=bash", "-", text=SCRIPTS[name])


def test_only_the_last_job_may_publish() -> None:
    publish = JOBS["publish"]
    before, waiting = {"publish"}, ["publish"]
    while waiting:
        needs = JOBS[waiting.pop()].get("needs", [])
        new = {needs} if isinstance(needs, str) else set(needs)
        waiting += new - before
        before |= new
    assert before == set(JOBS), "it waits for every other job"
    assert publish["if"] == "github.event_name == 'push'"
    assert all("permissions" not in job for name, job in JOBS.items() if name != "publish")
    assert not [step for step in publish["steps"] if step.get("uses", "").startswith("actions/checkout")]


def test_a_change_of_what_the_jobs_use_runs_them() -> None:
    paths: list[str] = yaml.load(WORKFLOW.read_text(), yaml.BaseLoader)["on"]["pull_request"]["paths"]
    assert all(list(ROOT.glob(path)) for path in paths)
    used = {f"tools/{name}" for name in ("demo.py", "release.mk", "tests.mk", "wheels.py")} | {
        "Makefile",
        "pyproject.toml",
    }
    used |= {f"runtime/{path}/Cargo.toml" for path in MANIFESTS} | {"models/digits.onnx", "models/digits.npz"}
    found = {path.relative_to(ROOT) for pattern in paths for path in ROOT.glob(pattern)}
    assert {Path(path) for path in used} <= found


@pytest.mark.parametrize(
    ("tag", "crates", "changes", "error"),
    [
        ("v1.2.0", "1.2.0", "## Unreleased\n\n## 1.2.0\n", ""),
        ("v1.2.1", "1.2.0", "## 1.2.0\n", "the tag is v1.2.1, and the version in pyproject.toml is 1.2.0"),
        ("v1.2.0", "1.1.0", "## 1.2.0\n", "the tag is v1.2.0, and the version in runtime/Cargo.toml is 1.1.0"),
        ("v1.2.0", "1.2.0", "## Unreleased\n", "CHANGELOG.md has no section 1.2.0"),
        ("v1.2.0", "1.2.0", "## 1.2.01\n## 1x2.0\n", "CHANGELOG.md has no section 1.2.0"),
    ],
)
def test_a_tag_names_the_version(tag: str, crates: str, changes: str, error: str, folder: Path) -> None:
    (folder / "runtime").mkdir()
    for name, version in (("pyproject.toml", "1.2.0"), ("runtime/Cargo.toml", crates)):
        text = re.sub(r'(?m)^version = ".*"', f'version = "{version}"', (ROOT / name).read_text())
        (folder / name).write_text(text)
    (folder / "CHANGELOG.md").write_text(changes)
    done = run(script("Compare the tag with the version"), folder, TAG=tag)
    assert (done.returncode, done.stdout.strip()) == (int(bool(error)), error and f"::error::{error}")


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row["name"])
def test_a_wheel_is_built_from_the_source_distribution(row: dict[str, Any], folder: Path) -> None:
    (folder / "dist").mkdir()
    with tarfile.open(folder / "dist/candle_compiler-1.tar.gz", "w:gz") as archive:
        archive.add(ROOT / "pyproject.toml", "candle_compiler-1/pyproject.toml")
    values = {"TARGET": row["target"], "FOR_PLATFORM": row["options"]}
    done = run(script("Build the wheel from the source distribution"), folder, **values)
    assert done.returncode == 0, done.stderr
    assert (folder / "source/pyproject.toml").exists()
    _, rustup, maturin = (folder / "calls.txt").read_text().splitlines()
    assert rustup == f"rustup toolchain install stable --profile minimal --target {row['target']}"
    options = f"--profile wheel --strip --target {row['target']} {row['options']} --out ../wheels"
    assert maturin == f"maturin build {options}"
    if MATURIN:
        known = subprocess.run([MATURIN, "build", "--help"], capture_output=True, text=True, check=True).stdout
        assert set(re.findall(r"--[a-z-]+", options)) <= set(re.findall(r"--[a-z-]+", known))


def test_alpine_runs_a_model(folder: Path) -> None:
    """With stand-ins for docker, which runs the commands here, and for the installers."""
    project = f'printf %s "$last" | sed "s,/project,{ROOT},g"'
    program(folder / "bin", "docker", f'for last in "$@"; do :; done\nsh -euxc "$({project})"')
    done = run(script("Install the wheel in Alpine, without Rust, and run a model"), folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "outputs.npz").exists()
    assert (folder / "calls.txt").read_text().splitlines()[1] == f"pip install --quiet {ROOT}/wheels/*.whl"


def test_the_files_are_given_to_the_release(folder: Path) -> None:
    for name in ("dist/a.whl", "crates/b.crate"):
        (folder / name).parent.mkdir()
        (folder / name).touch()
    assert run(script("Make the release on GitHub"), folder, TAG="v1.2.0").returncode == 0
    call = "gh release create v1.2.0 --verify-tag --generate-notes dist/a.whl crates/b.crate\n"
    assert (folder / "calls.txt").read_text() == call


def test_all_crates_of_plans_are_packaged() -> None:
    (line,) = re.findall(r"(?m)^CRATES := (.*)$", (ROOT / "tools/release.mk").read_text())
    assert line.split() == sorted(needed("candle-plan"))


@pytest.mark.skipif(MATURIN is None, reason="maturin is not installed")
def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    """It has the package, the crates that the extension needs, and the program cc, but nothing that was built."""
    done = subprocess.run([str(MATURIN), "sdist", "--out", tmp_path], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    crates = {manifest["package"]["name"]: RUNTIME / path for path, manifest in MANIFESTS.items() if path != "."}
    used = [crates.pop(name) for name in needed("candle-plan-python")]
    wanted = {path for each in (ROOT / "compiler", ROOT / "wheel-data", RUNTIME / "src", *used) for path in files(each)}
    wanted -= {path for each in crates.values() for path in files(each)}
    missing = {path.relative_to(ROOT).as_posix() for path in wanted if path.suffix != ".so"} - packed
    assert not missing
    assert {"LICENSE-APACHE", "LICENSE-MIT", "README.md", "pyproject.toml", "runtime/Cargo.lock"} <= packed
    assert not {name for name in packed if name.endswith((".so", ".pyc")) or name.startswith(("tests/", "models/"))}


def test_sizes_are_a_table(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.so", bytes(3_000_000))
    (tmp_path / "a.tar.gz").write_bytes(bytes(1_500_000))
    rows = sizes([tmp_path / "a.whl", tmp_path / "a.tar.gz"]).splitlines()[2:]
    assert rows == ["| a.tar.gz | 1.5 | — |", "| a.whl | 0.0 | 3.0 |"]
