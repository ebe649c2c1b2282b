"""Tries the packages of a release: installs them and runs the demonstration. `make wheels` and the workflow call it.

    python tools/wheels.py try FILE       a wheel, without Rust; or a source distribution, which Rust builds
    python tools/wheels.py emulate FILE   a wheel for ARM, in the emulator qemu, on Debian 12 with packages for arm64
    python tools/wheels.py sizes FILE…    print a table of sizes

`try` makes a new environment in a temporary folder. The programs on its PATH are its own. `emulate` makes build/arm, a
folder with Debian's Python for ARM and the wheels that PyPI has for it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "tools/demo.py"
ARM = ROOT / "build/arm"
PYTHON = "python3.11"
"""The Python of Debian 12."""
PACKAGES = (
    f"{PYTHON}-minimal lib{PYTHON}-minimal lib{PYTHON}-stdlib libbz2-1.0 libc6 libcrypt1 libexpat1 libffi8 libgcc-s1"
    " liblzma5 libssl3 libstdc++6 libuuid1 zlib1g"
).split()
"""Debian's packages with this Python, and with the libraries that its modules and wheels from PyPI need."""
EMULATED = "onnxruntime<1.24"
"""A version that runs in Debian's emulator: 1.32 crashes when it has read the sizes of the processor's caches."""
PLATFORMS = [f"manylinux{name}_aarch64" for name in ("2014", "_2_17", "_2_27", "_2_28")]


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command. The program ends if the command fails."""
    print("$", shlex.join(map(str, command)), flush=True)
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(f"this command failed with exit code {done.returncode}: {shlex.join(map(str, command))}")


def attempt(file: Path) -> None:
    """Install a wheel or a source distribution in a new environment, and run the demonstration with it."""
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = programs / ("python.exe" if os.name == "nt" else "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if file.suffix == ".whl":
            run(*install, "--only-binary", ":all:", f"{file}[check]", PATH=str(programs))
        else:
            run(*install, f"{file}[check]")
        run(python, DEMO, PATH=str(programs), PYTHONUTF8="1")


def emulate(file: Path) -> None:
    """Install a wheel for ARM beside a Python for ARM, and run the demonstration with both in the emulator."""
    debs, root, packages = (ARM / name for name in ("debs", "root", "packages"))
    if not (root / "usr/bin" / PYTHON).exists():
        debs.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "--quiet", *(f"{name}:arm64" for name in PACKAGES), cwd=debs)
        for deb in sorted(debs.glob("*.deb")):
            run("dpkg", "-x", deb, root)
    shutil.rmtree(packages, ignore_errors=True)
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    version = ["--python-version", PYTHON.removeprefix("python"), "--only-binary", ":all:"]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    run(*install, *platforms, *version, "--target", packages, f"{file}[check]", EMULATED)
    # With -P, Python does not look for the package in the current folder, the checkout.
    python = ["qemu-aarch64-static", "-L", str(root), str(root / "usr/bin" / PYTHON), "-P"]
    candlec = ARM / "candlec"
    candlec.write_text(f'#!/bin/sh\nexec {shlex.join(python)} -m compiler "$@"\n')
    candlec.chmod(0o755)
    run(*python, DEMO, candlec, PYTHONPATH=str(packages))


def sizes(files: list[Path]) -> str:
    """A table of the sizes of packages, and of what a wheel holds when it is installed."""
    lines = ["| file | size in MB | installed, in MB |", "|---|---:|---:|"]
    for file in sorted(files):
        installed = "—"
        if file.suffix == ".whl":
            with zipfile.ZipFile(file) as archive:
                installed = f"{sum(each.file_size for each in archive.infolist()) / 1e6:.1f}"
        lines.append(f"| {file.name} | {file.stat().st_size / 1e6:.1f} | {installed} |")
    return "\n".join(lines)


def main() -> None:
    """Do what the first argument says with the files of the others."""
    verb, *names = sys.argv[1:] or [""]
    files = [Path(name).resolve() for name in names]
    if verb == "sizes" and files:
        print(sizes(files))
    elif verb in ("try", "emulate") and len(files) == 1:
        (attempt if verb == "try" else emulate)(files[0])
    else:
        sys.exit("usage: python tools/wheels.py try FILE | emulate FILE | sizes FILE…")


if __name__ == "__main__":
    main()
