"""The module for CUDA without a GPU: its kernels compile, and it loads without a driver. `standin` has its faults."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DEVICE = ROOT / "runtime/device"
SPEC = importlib.util.find_spec("compiler._runtime_cuda")
NEEDED = pytest.mark.skipif(SPEC is None, reason="the module for CUDA is not built: `make cuda`")


EXACT = ("detection", "grid_sample", "integer", "qlinear", "qlinear_elementwise", "quantize")
"""Modules without fused multiply-adds, so that their codes and indices are the same as on the CPU."""


def nvcc() -> Path:
    """The path of NVIDIA's compiler. The extra `cuda-build` installs it; `wheels` makes it executable."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from build_cuda import wheels
    finally:
        sys.path.pop(0)
    return Path(wheels()) / "bin/nvcc"


@pytest.mark.skipif(
    not any(each.name == "nvidia-cuda-nvcc" for each in importlib.metadata.distributions()),
    reason="NVIDIA's compiler is not installed: pip install 'candle-compiler[cuda-build]'",
)
@pytest.mark.parametrize("module", EXACT)
def test_no_product_is_fused_with_a_sum(module: str, tmp_path: Path) -> None:
    target = tmp_path / "kernels.ptx"
    called(nvcc(), "--options-file", DEVICE / "kernels/nvcc.flags", "-o", target, DEVICE / f"kernels/{module}.cu")
    text = target.read_text()
    assert ".visible .entry" in text
    assert "fma." not in text


def called(*command: str | Path) -> str:
    """Runs a command, which must succeed, and returns its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(shutil.which("rustc") is None, reason="Rust is not installed")
@pytest.mark.parametrize("version", ["8.8", "9.0", "9.1"])
def test_a_toolkit_of_another_version_is_refused(version: str, tmp_path: Path) -> None:
    script, toolkit = tmp_path / "build", tmp_path / "nvcc"
    source = (DEVICE / "cuda/build.rs").read_text().replace("miniz_oxide::deflate::compress_to_vec", "compressed")
    (tmp_path / "build.rs").write_text(
        f"{source}\nfn compressed(image: &[u8], _: u8) -> Vec<u8> {{ image.to_vec() }}\n"
    )
    shutil.copy(DEVICE / "cuda/versions.rs", tmp_path)
    called("rustc", "--edition", "2021", "-o", script, tmp_path / "build.rs")
    # The fourth argument is the address to write to.
    toolkit.write_text(f'#!/bin/sh\nprintf "//\\n\\n.version {version}\\n.target sm_80\\n" > "$4"\n')
    toolkit.chmod(0o755)
    out = tmp_path / "release/build/package/out"
    out.mkdir(parents=True)
    ptxas = toolkit.with_name("ptxas")
    ptxas.write_text('#!/bin/sh\nfor last; do :; done; cp "$last" "$7"\n')
    ptxas.chmod(0o755)
    environment = {**os.environ, "CARGO_FEATURE_KERNELS": "1", "OUT_DIR": str(out), "NVCC": str(toolkit)}
    done = subprocess.run([script], capture_output=True, text=True, env=environment, cwd=DEVICE / "cuda")
    assert (done.returncode == 0) == (version == "9.0"), done.stderr
    assert version == "9.0" or f"makes PTX {version} where 9.0 is needed: install the extra" in done.stderr


@NEEDED
def test_no_library_of_nvidias_is_needed_to_load_it() -> None:
    assert SPEC is not None and SPEC.origin is not None
    done = subprocess.run(["objdump", "-p", SPEC.origin], capture_output=True, text=True, check=True)
    needed = [line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("NEEDED")]
    assert needed
    assert not [name for name in needed if name.startswith(("libcuda", "libcublas", "libcurand", "libnvrtc"))]
