"""The files of build/cuda-check: tools/cuda_bundle.py writes them, tools/cuda_check.py reads them elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

from compiler.files import write_whole

FOLDER = Path(__file__).resolve().parent.parent / "build/cuda-check"

Model = dict[str, Any]
"""A plan with inputs: `name`, `plan` and `cases`, and what a section of the check wants beside them."""


def write(folder: Path, name: str, models: list[Model]) -> None:
    """Writes one file of plans with inputs."""
    with gzip.open(folder / f"{name}.pickle.gz", "wb") as file:
        pickle.dump(models, file)


def read(folder: Path, name: str) -> list[Model]:
    """The plans with inputs that `write` wrote."""
    with gzip.open(folder / f"{name}.pickle.gz") as file:
        models: list[Model] = pickle.load(file)
    return models


def pack(extension: Path, folder: Path) -> None:
    """Puts an extension into the folder, without what a debugger needs."""
    stripped = folder / extension.name
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, extension], check=True)
    (folder / f"{extension.name}.xz").write_bytes(lzma.compress(stripped.read_bytes()))
    stripped.unlink()


def beside(folder: Path) -> Path:
    """The folder for what is made of a bundle where it is used; it stays there, and is not carried."""
    made = folder.with_name(f"{folder.name}-unpacked")
    made.mkdir(parents=True, exist_ok=True)
    return made


def unpacked(folder: Path) -> Path:
    """The folder of a bundle's extensions, which are unpacked once; those of former bundles are removed."""
    packed = {file: file.read_bytes() for file in sorted(folder.glob("*.so.xz"))}
    target = beside(folder) / f"extensions-{hashlib.sha256(b''.join(packed.values())).hexdigest()[:12]}"
    for former in beside(folder).glob("extensions-*"):
        if former != target:
            shutil.rmtree(former, ignore_errors=True)
    target.mkdir(exist_ok=True)
    for file, data in packed.items():
        if not (extension := target / file.stem).exists():
            write_whole(extension, lzma.decompress(data))
    return target
