"""Builds the program in `candle/`, which has Candle's CUDA backend and runs on the stand-in.

`python -m tests.standin.program clippy` lints it, and with it what the crate `candle-plan` has for Candle's tensors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.standin import build

FOLDER = Path(__file__).parent / "candle"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", build.ROOT / "runtime/target"))
"""The build folder of `tools/build_cuda.py`. It contains the kernels and most crates, built with the same profile."""


def built() -> Path:
    """The program. Builds it if a source has changed.

    Raises:
        SystemExit: NVIDIA's compiler is not installed.
        RuntimeError: cargo refuses it.
    """
    done = cargo("build", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(done.stdout)
    return TARGET / "release/candle-tensors"


def cargo(verb: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Calls cargo for the program. Candle links the stand-in's libraries, and its kernels are not built."""
    toolkit = Path(os.environ.get("CUDA_HOME") or _wheels())
    variables = {
        **os.environ,
        "CUDA_HOME": str(build.toolkit()),
        "CUDARC_CUDA_VERSION": "13000",
        "NVCC": str(toolkit / "bin/nvcc"),
    }
    places = ("--manifest-path", str(FOLDER / "Cargo.toml"), "--target-dir", str(TARGET))
    command = ["cargo", verb, "--release", "--locked", *places, *arguments]
    return subprocess.run(command, env=variables, text=True, **options)


def _wheels() -> Path:
    """The folder of NVIDIA's compiler, as `make cuda` finds it."""
    sys.path.insert(0, str(build.ROOT / "tools"))
    try:
        from build_cuda import wheels  # type: ignore[import-not-found,unused-ignore]
    finally:
        sys.path.pop(0)
    return Path(wheels())


if __name__ == "__main__":
    packages = ("--package", "candle-tensors", "--package", "candle-plan", "--", "-D", "warnings")
    sys.exit(cargo(sys.argv[1], *packages).returncode)
