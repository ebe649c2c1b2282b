"""The messages of the build of the module for CUDA if a tool is missing or fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.running import SOON

ROOT = Path(__file__).resolve().parent.parent


def built(**variables: str) -> subprocess.CompletedProcess[str]:
    """A build, as it ended."""
    command = [sys.executable, str(ROOT / "tools/build_cuda.py")]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=SOON)


def program(file: Path, text: str) -> None:
    """Writes a program for the shell."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_a_toolkit_that_is_not_there(tmp_path: Path) -> None:
    done = built(CUDA_HOME=str(tmp_path))
    advice = "set CUDA_HOME to a CUDA 13 toolkit, or unset it to use the wheels of the extra cuda-build"
    assert done.stderr == f"{tmp_path}/bin/nvcc is not an executable file: {advice}\n"
    assert (done.returncode, done.stdout) == (1, "")


def test_a_build_that_fails_ends_in_what_cargo_says(tmp_path: Path) -> None:
    program(tmp_path / "bin/nvcc", "exit 0")
    program(tmp_path / "bin/cargo", 'echo "error: of $NVCC" >&2; exit 101')
    found = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    done = built(CUDA_HOME=str(tmp_path), PATH=found, CARGO_TARGET_DIR=str(tmp_path))
    sentence = "`cargo build` failed with exit code 101: fix the errors above, and run this again"
    assert done.stderr == f"error: of {tmp_path}/bin/nvcc\n{sentence}\n"
    assert done.returncode == 1


def test_a_machine_without_cargo(tmp_path: Path) -> None:
    program(tmp_path / "bin/nvcc", "exit 0")
    done = built(CUDA_HOME=str(tmp_path), PATH=str(tmp_path / "bin"))
    assert (done.returncode, done.stderr) == (1, "cargo is missing: install Rust from https://rustup.rs\n")


def test_no_target_overwrites_a_module_that_may_be_loaded() -> None:
    """`install` replaces the file, but `cp` writes into the file that other processes have mapped."""
    recipes = (ROOT / "Makefile").read_text().splitlines()
    copied = [line for line in recipes if ".so" in line and line.startswith("\tcp ")]
    assert not copied, f"use `install -m 755` in {copied}"
