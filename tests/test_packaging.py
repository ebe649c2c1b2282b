"""The installed commands: `cc` must be ours for our verbs, and the system's C compiler for every build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.cli import VERBS

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "wheel-data/scripts/cc"

EXTENSION = r"""
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *ignored) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "answering", 0, -1, methods};
PyMODINIT_FUNC PyInit_answering(void) { return PyModule_Create(&module); }
"""
SETUP = (
    "from setuptools import Extension, setup; setup(name='a', ext_modules=[Extension('answering', ['answering.c'])])"
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment as a virtual environment makes it: our `cc` and `candlec` in the first folder of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(SCRIPT, folder / "cc")
    (folder / "candlec").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m compiler "$@"\n')
    (folder / "candlec").chmod(0o755)
    path = os.pathsep.join([str(folder), *(each for each in os.environ["PATH"].split(os.pathsep) if not ours(each))])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def ours(folder: str) -> bool:
    return (Path(folder) / "candlec").exists()


def run(arguments: list[str], environment: dict[str, str], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_script_knows_every_verb() -> None:
    case = re.search(r"^  \"\" \| -h \| --help \| (.*)\)$", SCRIPT.read_text(), re.MULTILINE)
    assert case is not None
    assert sorted(case[1].split(" | ")) == sorted(VERBS)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["explain", "--help"]])
def test_our_verbs_are_ours(environment: dict[str, str], arguments: list[str]) -> None:
    done = run(["cc", *arguments], environment)
    assert "candlec" in done.stdout + done.stderr


def test_a_link_leads_to_our_verbs(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/cc").symlink_to(tmp_path / "bin/cc")
    environment["PATH"] = f"{tmp_path}/elsewhere:{os.environ['PATH']}"
    done = run(["cc", "explain", "CC0301"], environment)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "CC0301")


@pytest.mark.parametrize("name", ["cc", "candlec"])
def test_hints_have_the_name_that_was_called(name: str, environment: dict[str, str]) -> None:
    done = run([name, "check", "models/digits_3d.onnx"], environment)
    assert done.returncode == 1
    assert f"see `{name} explain CC0301`" in done.stderr
    assert f"Usage: {name} check " in run([name, "check"], environment).stderr


def test_the_version_is_the_c_compilers(environment: dict[str, str]) -> None:
    system = run(["cc", "--version"], {**environment, "PATH": environment["PATH"].partition(os.pathsep)[2]})
    assert system.returncode == 0
    assert run(["cc", "--version"], environment).stdout == system.stdout


def test_a_c_program_builds_from_a_folder_with_a_space(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    (folder / "a b.c").write_text("int main(void) { return 7; }\n")
    assert run(["cc", "a b.c", "-o", "a b"], environment, folder).returncode == 0
    assert subprocess.run([folder / "a b"], check=False).returncode == 7


def test_two_environments_do_not_call_each_other(environment: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "cc").symlink_to(tmp_path / "bin/cc")
    path = f"{tmp_path / 'bin'}:{other}:{environment['PATH']}"
    assert run(["cc", "--version"], {**environment, "PATH": path}).returncode == 0


def test_without_a_c_compiler_it_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    done = run([str(tmp_path / "bin/cc"), "x.c"], {**environment, "PATH": str(tmp_path / "bin")})
    assert done.returncode == 127
    assert "no C compiler" in done.stderr


def test_a_c_extension_builds(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "answering.c").write_text(EXTENSION)
    (tmp_path / "setup.py").write_text(SETUP)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = run(command, {**environment, "CC": "cc", "LDSHARED": "cc -shared"}, tmp_path)
    assert done.returncode == 0, done.stderr
    asked = run([sys.executable, "-c", "import answering; print(answering.answer())"], environment, tmp_path)
    assert asked.stdout.strip() == "42"


def test_a_crate_builds(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "greet"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n'
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text('fn main() { println!("hello"); }\n')
    plain = {key: value for key, value in environment.items() if not key.startswith("CARGO_TARGET")}
    done = run(["cargo", "run", "--quiet", "--offline"], plain, tmp_path)
    assert done.stdout.strip() == "hello", done.stderr


def test_python_and_rust_have_one_version() -> None:
    manifests = [(ROOT / name).read_text() for name in ("pyproject.toml", "runtime/Cargo.toml")]
    for key in ("version", "license"):
        python, rust = (re.search(rf'^{key} = "(.+)"', text, re.MULTILINE) for text in manifests)
        assert python is not None
        assert rust is not None
        assert python[1] == rust[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("ends", ["true", "false"])
def test_a_build_is_shown_as_it_goes_on(ends: str, tmp_path: Path) -> None:
    """The lines appear while the build goes on. The exit code of a failed build passes through the pipe."""
    (tmp_path / "build").mkdir()
    # Without the first line within minutes, the build ends with another second line.
    waiting = "for each in $$(seq 3000); do [ -e shown ] && break; sleep 0.1; done; [ -e shown ] && echo Collecting two"
    building = f"(echo Collecting one; {waiting}; echo other; {ends})"
    arguments = ["--eval", f"watched: ; @{building} $(WATCHED)", "watched"]
    command = ["make", "-C", str(tmp_path), "-f", str(ROOT / "Makefile"), "--no-print-directory", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        (tmp_path / "shown").touch()
        rest = process.stdout.read()
    assert (first, rest.splitlines()[0]) == ("Collecting one\n", "Collecting two")
    assert (process.returncode == 0) is (ends == "true")
    assert ("other" in rest) is (ends == "false"), "the log of one that failed is shown"
