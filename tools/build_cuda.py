"""Builds `compiler/_runtime_cuda.abi3.so` without a GPU, a driver or a toolkit: nvcc comes from NVIDIA's wheels.

`make cuda` calls it in an environment with the extra `cuda-build`, `make quick-cuda` with the argument `quick`.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "runtime"
EXTENSION = ROOT / "compiler/_runtime_cuda.abi3.so"


def main() -> None:
    """Builds the extension, and prints its size and the time of the build."""
    start = time.perf_counter()
    profile = "quick" if sys.argv[1:] == ["quick"] else "release"
    command = ["cargo", "build", "--profile", profile, "--package", "candle-plan-cuda"]
    command += ["--features", "extension-module,kernels"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", RUNTIME / "target"))
    environment = {**os.environ, "NVCC": str(nvcc())}
    for file in target.glob("maturin/pyo3-config-*.txt"):  # with other settings, cargo would compile pyo3 again
        environment["PYO3_CONFIG_FILE"] = str(file)
    try:
        code = subprocess.run(command, cwd=RUNTIME, env=environment).returncode
    except FileNotFoundError:
        sys.exit("cargo is missing: install Rust from https://rustup.rs")
    if code:
        sys.exit(f"`cargo build` failed with exit code {code}: fix the errors above, and run this again")
    EXTENSION.unlink(missing_ok=True)  # a process may have it loaded: copying over it would change the mapped pages
    shutil.copy2(target / profile / "lib_runtime_cuda.so", EXTENSION)
    size = EXTENSION.stat().st_size / 1e6
    print(f"{EXTENSION.relative_to(ROOT)}: {size:.1f} MB in {time.perf_counter() - start:.0f} s")


def nvcc() -> Path:
    """The path of nvcc, from the toolkit in CUDA_HOME or from the wheels."""
    home = os.environ.get("CUDA_HOME")
    program = Path(home or wheels()) / "bin/nvcc"
    if not os.access(program, os.X_OK):
        advice = "set CUDA_HOME to a CUDA 13 toolkit, or unset it to use the wheels of the extra cuda-build"
        sys.exit(f"{program} is not an executable file: {advice}")
    return program


def wheels() -> Path:
    """The folder of the toolkit from the wheels of the extra `cuda-build`; makes its programs executable."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc") or []
    except importlib.metadata.PackageNotFoundError:
        sys.exit("nvcc is missing: pip install 'candle-compiler[cuda-build]', or set CUDA_HOME to a CUDA 13 toolkit")
    nvcc = next(Path(str(file.locate())).resolve() for file in files if file.name == "nvcc")
    toolkit = nvcc.parent.parent
    for folder in ("bin", "nvvm/bin"):
        for program in (toolkit / folder).iterdir():
            if program.is_file():
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return toolkit


if __name__ == "__main__":
    main()
