"""How the program ends when somebody ends it: interrupted, or with nobody reading on. Each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DIGITS = str(ROOT / "models/digits.onnx")


def start(folder: Path, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """`candlec` in a folder whose modules come first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "compiler", *arguments]
    return subprocess.run(
        command, env=environment, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


# `compiler` itself, which is imported before anything can be caught, imports none of these.
STANDARD = ["typing", "dataclasses", "inspect", "logging", "json", "shutil", "pathlib"]


@pytest.mark.parametrize("imported", ["click", "rich", "numpy", "onnx", "onnx_ir", *STANDARD])
def test_an_interrupted_import_leaves_a_word_and_no_file(imported: str, tmp_path: Path) -> None:
    module = tmp_path / f"{imported}.py"
    module.write_text("raise KeyboardInterrupt")  # as it is at Ctrl-C
    done = start(tmp_path, "compile", DIGITS, "-o", "digits.plan")
    assert done.returncode == 130
    assert done.stderr.strip() == "interrupted"
    assert not (tmp_path / "digits.plan").exists()


def test_an_interruption_is_told_to_programs_too(tmp_path: Path) -> None:
    (tmp_path / "onnx.py").write_text("raise KeyboardInterrupt")
    done = start(tmp_path, "check", DIGITS, "--json")
    assert done.returncode == 130
    assert json.loads(done.stdout) == {"ok": False, "error": "interrupted"}


@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGPIPE")
@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["check", DIGITS]], ids=" ".join)
def test_a_closed_pipe_ends_it_as_it_does_any_program(arguments: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = start(tmp_path, *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""
