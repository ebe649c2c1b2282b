"""The action for GitHub and the workflow of this project: they are sound, and their scripts run without GitHub.

Of the tools that lint them, shellcheck and check-jsonschema come with the extra `test`. A program actionlint is used if
there is one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
import yaml

from tests.cli.command import MODEL, N, X, run
from tests.workflows import lint, program, schema_errors

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOW = ROOT / ".github/workflows/zoo.yml"
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SCRIPTS = {step["name"]: step for step in STEPS if "run" in step}
INSTALL, CHECK, COMPARE, COMMENT = SCRIPTS
EXPRESSION = re.compile(r"\${{ (.*?) }}")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_sound(name: str) -> None:
    script = SCRIPTS[name]["run"]
    assert "${{" not in script, "a value of GitHub comes in a variable, because it may contain commands"
    assert not lint("bash", "-n", "-", text=script)
    assert not lint("shellcheck", "--shell=bash", "-", text=script)


def test_the_workflow_and_the_action_have_the_structure_that_github_reads() -> None:
    assert not schema_errors("workflows", WORKFLOW)
    assert not schema_errors("actions", ROOT / "action.yml")


def test_the_workflow_is_sound() -> None:
    assert not lint("actionlint", str(WORKFLOW))


def test_the_steps_of_the_action_are_sound(tmp_path: Path) -> None:
    inputs = {name: {"type": "string", "default": ""} for name in ACTION["inputs"]}
    jobs = {"action": {"runs-on": "ubuntu-latest", "steps": STEPS}}
    made = tmp_path / "action.yml"
    made.write_text(yaml.safe_dump({"on": {"workflow_call": {"inputs": inputs}, "pull_request": None}, "jobs": jobs}))
    assert not lint("actionlint", str(made))


def test_the_workflow_gives_inputs_that_the_action_has() -> None:
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["models"]
    [given] = [step["with"] for step in job["steps"] if step["uses"] == "./"]
    assert given.keys() <= ACTION["inputs"].keys()
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text()))
    assert used == ACTION["inputs"].keys()
    for name in ("zoo", "facts"):
        assert (ROOT / ACTION["inputs"][name]["default"]).exists(), "the defaults are those of this project"


class Job:
    """A checkout on a pull request, and the environment of a job that runs the action in it."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder / "checkout"
        self.summary, self.calls = folder / "summary.md", folder / "calls.txt"
        self.out = folder / "temp/zoo"
        defaults = {name: each["default"] for name, each in ACTION["inputs"].items()}
        level = {"level": "scalar"}
        self.values = {f"inputs.{name}": text for name, text in {**defaults, **level, **inputs}.items()}
        github = {"action_path": ROOT, "base_ref": "main", "repository": "own/er", "event.pull_request.number": 7}
        self.values |= {f"github.{name}": str(each) for name, each in github.items()}
        self.values["runner.temp"] = str(folder / "temp")
        self._programs = folder / "bin"

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run the script of a step as GitHub does."""
        step = SCRIPTS[name]
        given = {key: EXPRESSION.sub(lambda found: self.values[found[1]], text) for key, text in step["env"].items()}
        path = os.pathsep.join([str(self._programs), os.environ["PATH"]])
        own = {
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "CALLS": str(self.calls),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        environment = {**os.environ, **own, "GITHUB_ACTIONS": "true", **given}
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)


def git(folder: Path, *arguments: str) -> None:
    user = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *user, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a checkout of a repository with a model and its facts, and of programs that record their calls."""
    monkeypatch.setenv("CANDLE_PLAN_ISA", "scalar")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    folder = tmp_path / "checkout"
    (folder / "models").mkdir(parents=True)
    monkeypatch.chdir(folder)
    onnx.save(onnx.parser.parse_model(MODEL), "models/echo.onnx")
    np.savez("models/echo.npz", x=X, n=N)
    assert run("zoo", "index", "--zoo", "models") == 0
    assert run("zoo", "update", "--zoo", "models", "--facts", "models/facts.toml", "--jobs", "1") == 0
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "begin")
    git(folder, "clone", "--quiet", "--bare", ".", "../origin.git")
    git(folder, "remote", "add", "origin", "../origin.git")
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "candlec", f'exec "{sys.executable}" -m compiler "$@"')
    for name in ("pip", "gh"):
        program(tmp_path / "bin", name, f'echo {name} "$@" >>"$CALLS"')
    return tmp_path


def change_model() -> None:
    onnx.save(
        onnx.parser.parse_model(MODEL.replace("y = Identity(x)", "z = Sin (x)  y = Floor (z)")), "models/echo.onnx"
    )


def test_a_job_without_changes_is_green(checkout: Path) -> None:
    job = Job(checkout, slice="true")
    for name in SCRIPTS:
        assert job.run(name).returncode == 0, name
    assert "In all runs: 1 of 1 model equals onnxruntime's." in job.summary.read_text()
    assert "nothing has changed in 1 model" in (job.out / "changes.txt").read_text()
    assert {"page.html", "zoo.xml", "zoo.jsonl"} <= {each.name for each in job.out.iterdir()}
    install, comment = job.calls.read_text().splitlines()
    assert install == f"pip install {ROOT}[check]"
    assert comment == f"gh pr comment 7 --body-file {job.out}/changes.txt --edit-last"


def test_a_changed_model_makes_the_job_red_until_somebody_accepts_it(checkout: Path) -> None:
    change_model()
    job = Job(checkout)
    done = job.run(CHECK)
    assert done.returncode == 1
    assert "::error title=echo::pinned: steps:" in done.stderr and "::error title=echo::unpinned: steps:" in done.stderr
    assert "candlec zoo update --zoo models --facts models/facts.toml --only echo" in done.stderr
    assert job.run(COMPARE).returncode == 0
    told = (job.out / "changes.txt").read_text()
    assert "nothing has changed in 1 model" in told and "## Problems" in told and "## Models" not in told
    assert told in job.summary.read_text()
    assert run("zoo", "update", "--zoo", "models", "--facts", "models/facts.toml", "--jobs", "1") == 0
    assert job.run(COMPARE).returncode == 0
    changes = (job.out / "changes.txt").read_text()
    assert "## Changes of the facts since main\n" in changes and re.search(r"echo +pinned, cpu +plan_bytes", changes)


def test_a_file_of_measures_makes_the_job_red(checkout: Path) -> None:
    measures = Path("models/measures.toml")
    job = Job(checkout, measures=str(measures))
    task = 'task = [{{ measure = "cosine", output = "y", at_least = {} }}]'
    measures.write_text("[echo]\n" + task.format(0.9))
    assert job.run(CHECK).returncode == 0
    measures.write_text("[echo]\n" + task.format(1.1))
    done = job.run(CHECK)
    assert done.returncode == 1 and "::error title=echo::it is not equal" in done.stderr
    assert "cosine of y: 1, and at least 1.1 is required" in (job.out / "zoo.xml").read_text()


def test_a_job_without_facts_or_permission_says_so(checkout: Path) -> None:
    job = Job(checkout, facts="models/new.toml", level="")
    done = job.run(CHECK)
    assert done.returncode == 1 and "models/new.toml: No such file or directory" in done.stderr
    assert job.run(COMPARE).returncode == 0
    assert "main has no file models/new.toml" in (job.out / "changes.txt").read_text()
    program(checkout / "bin", "gh", "exit 1")
    done = job.run(COMMENT)
    assert done.returncode == 0 and done.stdout.startswith("::notice::No comment: the job needs the permission")
