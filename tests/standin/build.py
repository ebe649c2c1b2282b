"""Builds the stand-in: `libcuda.so.1`, `libcublas.so.13` and `libcurand.so.10`, which need no GPU.

`python -m tests.standin.build` prints the folder of the libraries. Results are kept under build/standin, by the hash of
the sources and the flags.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent
KERNELS = ROOT / "runtime/device/kernels"
CACHE = ROOT / "build/standin"
CARGO = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "runtime/target")) / "release/build"
"""The folder of what build scripts make, such as the kernels of the emulator."""

FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", f"-I{KERNELS}", "-pthread")
KERNEL_FLAGS = ("-Wno-unknown-pragmas", "-Wno-unused")
"""The flags of the emulator in `runtime/device/emulator/build.rs`."""
OWN_FLAGS = ("-Wall", "-Wextra", "-Wno-missing-field-initializers", "-fvisibility=default")
MODULE = '#define MODULE "{name}"\n#include "device.cuh"\nnamespace {{\n#include "{name}.cu"\n}}\n'
"""The text that makes a C++ source of a kernel file, as in `runtime/device/emulator/build.rs`."""
FUNCTIONS = """namespace standin {{
extern const char* const FUNCTIONS[];
const char* const FUNCTIONS[] = {{{names}nullptr}};
}}
"""
"""The text that makes a C++ source of the names of the stand-in's functions."""
JOBS = 2

LIBRARIES = {"libcuda.so.1": "", "libcublas.so.13": "blas", "libcurand.so.10": "rand"}
"""The libraries, with the source file that only this library has."""
OWN_NAMES = dict(zip(LIBRARIES, ("libcuda-s.so", "libcublas-si.so", "libcurand-si.so"), strict=True))
"""Names that no other module opens. PyTorch loads NVIDIA's cuBLAS into a process by NVIDIA's name."""
LINK = ("-shared", "-pthread", "-Wl,-z,nodelete", "-Wl,-z,defs")


def compiler() -> str | None:
    """The C++ compiler that cargo takes too."""
    names = (os.environ.get("CXX"), "c++", "g++", "clang++")
    return next((name for name in names if name and shutil.which(name)), None)


def libraries() -> Path:
    """The folder of the libraries, with NVIDIA's names and with `OWN_NAMES`. Builds missing libraries.

    Raises:
        RuntimeError: the C++ compiler refuses a source.
    """
    objects = _kernel_objects()
    own = sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h"), SOURCES / "exports.map", Path(__file__)])
    folder = CACHE / f"libraries-{_hash(own, objects.name, *FLAGS, *OWN_FLAGS, *LINK)}"
    with _built_once(folder) as work:
        if work is not None:
            _link(work, objects)
    return folder


def toolkit() -> Path:
    """A folder with the layout of a CUDA toolkit, whose libraries are links to those of the stand-in."""
    own = {"cuda": "libcuda.so.1", "cublas": "libcublas.so.13", "cublasLt": "libcublas.so.13"}
    own |= {"curand": "libcurand.so.10", "nvrtc": "libcuda.so.1"}
    there, folder = libraries(), CACHE / "toolkit"
    with _alone():
        (folder / "lib64").mkdir(parents=True, exist_ok=True)
        for name, library in own.items():
            link = folder / f"lib64/lib{name}.so"
            if not link.exists() or link.resolve() != there / library:
                link.unlink(missing_ok=True)
                link.symlink_to(there / library)
    return folder


def extension(origin: Path) -> Path:
    """A copy of the module for CUDA. It calls `siopen` of `names.cpp`, which opens the libraries by `OWN_NAMES`."""
    module = origin.read_bytes()
    folder = CACHE / f"extension-{hashlib.sha256(module).hexdigest()[:16]}"
    with _built_once(folder) as work:
        if work is not None:
            assert module.count(b"\0dlopen\0") == 1
            (work / origin.name).write_bytes(module.replace(b"\0dlopen\0", b"\0siopen\0"))
    return folder / origin.name


def without(symbol: str, target: Path) -> Path:
    """Copies the libraries into the folder `target`, and renames one function in the copies."""
    for library in (libraries() / name for name in LIBRARIES):
        names = library.read_bytes()
        hidden = b"\0_" + symbol.encode()[1:] + b"\0"
        (target / library.name).write_bytes(names.replace(b"\0" + symbol.encode() + b"\0", hidden))
    return target


def _kernel_objects() -> Path:
    """The folder of the compiled kernels. The emulator's build script compiles them with the same flags."""
    sources = sorted(path for path in KERNELS.iterdir() if path.suffix in (".cu", ".cuh", ".h", ".cpp"))
    folder = CACHE / f"kernels-{_hash(sources, MODULE, *FLAGS, *KERNEL_FLAGS)}"
    with _built_once(folder) as work:
        if work is not None and (library := _of_emulator(sources)) is not None:
            subprocess.run(["ar", "x", str(library)], cwd=work, check=True)
        elif work is not None:
            for path in (each for each in sources if each.suffix == ".cu"):
                (work / f"{path.stem}.cpp").write_text(MODULE.format(name=path.stem))
            _compile([*sorted(work.glob("*.cpp")), KERNELS / "emulator.cpp"], work, KERNEL_FLAGS)
    return folder


def _of_emulator(sources: Sequence[Path]) -> Path | None:
    """The library of the emulator's kernels; `None` if it is older than a source, or not there."""
    script = ROOT / "runtime/device/emulator/build.rs"
    last = max(path.stat().st_mtime for path in (*sources, script))
    made = CARGO.glob("candle-plan-device-emulator-*/out/libcandle_plan_emulator.a")
    return next((path for path in made if shutil.which("ar") and path.stat().st_mtime > last), None)


def _link(work: Path, kernels: Path) -> None:
    """Compiles the stand-in's own sources and links the three libraries."""
    (work / "functions.cpp").write_text(_functions())
    _compile([*sorted(SOURCES.glob("*.cpp")), work / "functions.cpp"], work, OWN_FLAGS)
    apart = [work / f"{source}.o" for source in LIBRARIES.values()]
    driver = [path for path in sorted([*work.glob("*.o"), *kernels.glob("*.o")]) if path not in apart]
    for names in ({name: name for name in LIBRARIES}, OWN_NAMES):
        cuda = work / names["libcuda.so.1"]
        version_script = f"-Wl,--version-script={SOURCES / 'exports.map'}"
        _call(*LINK, f"-Wl,-soname,{cuda.name}", version_script, "-o", cuda, *driver)
        for library, source in LIBRARIES.items():
            if source:
                name = names[library]
                _call(*LINK, f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", "-o", work / name, work / f"{source}.o", cuda)
    for path in work.glob("*.o"):
        path.unlink()


def _functions() -> str:
    """A C++ source that lists the functions whose calls are counted."""
    sources = "".join(path.read_text() for path in sorted(SOURCES.glob("*.cpp")))
    names = re.findall(r'^ +ENTER\w*\("(\w+)"', sources, re.MULTILINE)
    return FUNCTIONS.format(names="".join(f'"{name}", ' for name in names))


def _compile(sources: Sequence[Path], work: Path, flags: Sequence[str]) -> None:
    print(f"Building the stand-in for CUDA: {len(sources)} C++ sources", file=sys.__stderr__, flush=True)
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = [pool.submit(_call, *FLAGS, *flags, "-c", path, "-o", work / f"{path.stem}.o") for path in sources]
    for job in jobs:
        job.result()


def _call(*arguments: str | Path) -> None:
    name = compiler()
    if name is None:
        raise RuntimeError("there is no C++ compiler: install g++")
    done = subprocess.run([name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join([name, *map(str, arguments)])}\n{done.stdout}")


@contextmanager
def _alone() -> Iterator[None]:
    """Keeps other processes that build the stand-in waiting."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _built_once(folder: Path) -> Iterator[Path | None]:
    """An empty folder to build in, which becomes `folder`; `None` if another process has built it."""
    with _alone():
        if folder.exists():
            yield None
            return
        for stale in CACHE.glob(f"{folder.name.partition('-')[0]}-*"):
            shutil.rmtree(stale)
        work = CACHE / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        yield work
        work.rename(folder)


def _hash(files: Sequence[Path], *words: str) -> str:
    digest = hashlib.sha256("\0".join([compiler() or "", *words]).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    print(libraries())
