"""The bundle's files: `gather` writes them, and the checks read them on another machine."""

from __future__ import annotations

import hashlib
import json
import lzma
import pickle
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compiler.files import write_whole

FOLDER = Path(__file__).resolve().parents[2] / "build/cuda-check"

Model = dict[str, Any]
"""A plan with inputs: `name`, `plan` and `cases`, and what its section needs beside them."""

FILTERS: list[dict[str, Any]] = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 2, "lp": 2, "pb": 2}]
"""A compression that knows of numbers of four bytes."""


def write(folder: Path, section: str, models: Iterable[Model]) -> list[str]:
    """Writes the models of a section, a file each, and returns their names."""
    (folder / section).mkdir(parents=True)
    names = []
    for model in models:
        names.append(model["name"])
        packed = lzma.compress(pickle.dumps(model), format=lzma.FORMAT_XZ, filters=FILTERS)
        _file(folder, section, model["name"]).write_bytes(packed)
    return names


def read(folder: Path, section: str, name: str) -> Model:
    """One model of a section."""
    model: Model = pickle.loads(lzma.decompress(_file(folder, section, name).read_bytes()))
    return model


def _file(folder: Path, section: str, name: str) -> Path:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    if plain != name:  # another name may give the same
        plain += "-" + hashlib.sha256(name.encode()).hexdigest()[:6]
    return folder / section / f"{plain}.pickle.xz"


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Writes the facts about a bundle, as the last of its files."""
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def about(folder: Path) -> dict[str, Any]:
    """The facts about a bundle: `commit`, `command`, `made` (seconds since 1970), `sections` and `kernels`."""
    found: dict[str, Any] = json.loads((folder / "about.json").read_text())
    return found


def names(folder: Path, section: str) -> list[str]:
    """The names of a section's models."""
    listed: list[str] = about(folder)["sections"].get(section, [])
    return listed


def origin(folder: Path) -> str:
    """The command that made a bundle, its commit, and its age."""
    facts = about(folder)
    hours = max(time.time() - facts["made"], 0) / 3600
    age = f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
    return f"The bundle is {age} old; `{facts['command']}` made it at {facts['commit']}."


def pack(extension: Path, folder: Path) -> None:
    """Puts an extension into the folder, without its symbols for debuggers."""
    stripped = folder / extension.name
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, extension], check=True)
    (folder / f"{extension.name}.xz").write_bytes(lzma.compress(stripped.read_bytes()))
    stripped.unlink()


def beside(folder: Path) -> Path:
    """The folder for unpacked extensions and translated kernels; it stays where the bundle is used."""
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
