"""Builds `compiler/_runtime_cuda.abi3.so` with no GPU, no driver and no toolkit: nvcc and headers are NVIDIA's wheels.

`make cuda` calls it in an environment with the extra `cuda-build`; `make lint-cuda` with the argument `clippy`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/cuda"
MANIFEST = ROOT / "runtime/cuda/Cargo.toml"
EXTENSION = ROOT / "compiler/_runtime_cuda.abi3.so"

MODULES = "AFFINE BINARY CAST CONV FILL INDEXING QUANTIZED REDUCE SORT TERNARY UNARY"
EMPTY = f"""fn main() {{
    let modules: String = "{MODULES}".split(' ').map(|name| format!("pub const {{name}}: &str = \\"\\";\\n")).collect();
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    std::fs::write(std::path::Path::new(&folder).join("ptx.rs"), modules).expect("it can be written");
}}
"""

NAMES = """    let _ = (pointer_width, minor);
    let version = match lib_name {
        "cuda" => "1",
        "curand" => "10",
        _ => major,
    };
    vec![std::format!("{DLL_PREFIX}{lib_name}{DLL_SUFFIX}.{version}")]
"""

PATCHES: dict[tuple[str, str], dict[str, list[tuple[str, str]]]] = {
    # candle links NVIDIA's libraries when it is built; this way they are opened when they are first used, so that the
    # extension loads, and says what is missing, where there is no driver.
    # Of libraries of several versions, the one that the extension is built for.
    ("cudarc", "0.19.10"): {
        "build.rs": [(r'feature = "dynamic-linking"', "any()")],
        "src/lib.rs": [(r"    \[\n        std::format!.*?    \]\n    \.into\(\)\n", NAMES)],
    },
    # None of candle's own kernels is launched: they need not be built, nor libraries linked for them.
    ("candle-kernels", "0.11.1"): {
        "build.rs": [(r"\A.*\Z", EMPTY.replace("\\", r"\\"))],
        "Cargo.toml": [(r"\[build-dependencies\.cudaforge\]\nversion = \S+\n", "")],
        "src/ffi.rs": [
            (r'extern "C" \{(.*)\}', r"\1"),
            (
                r"pub fn (\w+)\(",
                r'#[allow(unused_variables, non_snake_case, clippy::all)] pub unsafe extern "C" fn \1(',
            ),
            (r"^    \)( -> i32)?;", r'    )\1 { panic!("left out of this build") }'),
        ],
    },
}
"""What is changed in copies of two crates: by crate and file, patterns and what takes their place."""


def main() -> None:
    """Builds the extension, and says how long it took and how large it is."""
    start = time.perf_counter()
    toolkit = Path(os.environ.get("CUDA_HOME") or wheels())
    for (name, version), files in PATCHES.items():
        patch(name, version, files)
    environment = {
        **os.environ,
        "CUDA_HOME": str(toolkit),
        "CUDARC_CUDA_VERSION": "13000",
        "NVCC": str(toolkit / "bin/nvcc"),
    }
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "runtime/target"))
    is_lint = sys.argv[1:] == ["clippy"]
    verb = "clippy" if is_lint else "build"
    command = ["cargo", verb, "--release", "--manifest-path", MANIFEST, "--target-dir", target]
    if is_lint:
        command += ["--package", "candle-plan-device", "--", "-D", "warnings"]
    subprocess.run(command, env=environment, check=True)
    if is_lint:
        return
    shutil.copy2(target / "release/lib_runtime_cuda.so", EXTENSION)
    size = EXTENSION.stat().st_size / 1e6
    print(f"{EXTENSION.relative_to(ROOT)}: {size:.1f} MB in {time.perf_counter() - start:.0f} s")


def wheels() -> Path:
    """The folder of the toolkit that the wheels of the extra `cuda-build` make up, its programs ready to run."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc") or []
    except importlib.metadata.PackageNotFoundError:
        sys.exit("there is no nvcc: pip install 'candle-compiler[cuda-build]', or set CUDA_HOME to a CUDA 13 toolkit")
    nvcc = next(Path(str(file.locate())).resolve() for file in files if file.name == "nvcc")
    toolkit = nvcc.parent.parent
    for folder in ("bin", "nvvm/bin"):
        for program in (toolkit / folder).iterdir():
            if program.is_file():
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return toolkit


def patch(name: str, version: str, files: dict[str, list[tuple[str, str]]]) -> None:
    """Writes a copy of a crate, changed; stops where it is not what the changes were written for."""
    source, copy = crate(name, version), BUILD / name
    mark, state = copy / ".patched", json.dumps([str(source), files])
    if mark.exists() and mark.read_text() == state:
        return
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    for file, changes in files.items():
        text = (copy / file).read_text()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE | re.DOTALL)
            if not count:
                sys.exit(f"{name} {version}, {file}: {pattern!r} is not found: the crate is not the one that is meant")
        (copy / file).write_text(text)
    mark.write_text(state)


def crate(name: str, version: str) -> Path:
    """The folder of a crate's source, which cargo fetches."""
    manifest = BUILD / "fetch/Cargo.toml"
    (manifest.parent / "src").mkdir(parents=True, exist_ok=True)
    (manifest.parent / "src/lib.rs").touch()
    versions = "".join(f'{each} = {{ version = "={of}", default-features = false }}\n' for each, of in PATCHES)
    manifest.write_text(f'[workspace]\n[package]\nname = "fetch"\n[dependencies]\n{versions}')
    command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", manifest]
    packages = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["packages"]
    return next(Path(each["manifest_path"]).parent for each in packages if each["name"] == name)


if __name__ == "__main__":
    main()
