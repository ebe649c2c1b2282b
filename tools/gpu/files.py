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

from compiler.atomic_files import write_whole

FOLDER = Path(__file__).resolve().parents[2] / "build/cuda-check"

Model = dict[str, Any]
"""A plan with inputs: `name`, `plan` and `cases`, and other data that its section needs."""

REMEDY = "run `make cuda-bundle` on the build machine, and copy the bundle here"
"""The advice for a damaged or missing file of a bundle."""
FIELDS: dict[str, type | tuple[type, ...]] = {
    "commit": str,
    "command": str,
    "made": (int, float),
    "sections": dict,
    "tests": list,
    "kernels": dict,
}
"""The facts about a bundle, and their types."""

FILTERS: list[dict[str, Any]] = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 2, "lp": 2, "pb": 2}]
"""A compression for arrays of four-byte numbers."""


class Damaged(Exception):
    """A file of a bundle is damaged or missing."""


def write(folder: Path, section: str, models: Iterable[Model]) -> list[str]:
    """Writes each model of a section to a file, and returns their names."""
    (folder / section).mkdir(parents=True)
    names = []
    for model in models:
        names.append(model["name"])
        packed = lzma.compress(pickle.dumps(model), format=lzma.FORMAT_XZ, filters=FILTERS)
        file_of(folder, section, model["name"]).write_bytes(packed)
    return names


def read(folder: Path, section: str, name: str) -> Model:
    """One model of a section.

    Raises:
        Damaged: its file is damaged.
    """
    model: Model = pickle.loads(plain(file_of(folder, section, name)))
    return model


def plain(file: Path) -> bytes:
    """The contents of an .xz file.

    Raises:
        Damaged: the file cannot be decompressed.
    """
    try:
        return lzma.decompress(file.read_bytes())
    except lzma.LZMAError:
        raise Damaged(f"{file} is damaged: {REMEDY}") from None


def file_of(folder: Path, section: str, name: str) -> Path:
    """The file of a model."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    if stem != name:  # another name may have the same stem
        stem += "-" + hashlib.sha256(name.encode()).hexdigest()[:6]
    return folder / section / f"{stem}.pickle.xz"


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Writes the facts about a bundle, as its last file."""
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def about(folder: Path) -> dict[str, Any]:
    """The facts about a bundle: `commit`, `command`, `made` (seconds since 1970), `sections`, `tests` and `kernels`.

    Raises:
        Damaged: the file is not JSON, or a fact is missing or has the wrong type.
    """
    file = folder / "about.json"
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except ValueError:
        raise Damaged(f"{file} is damaged: it is not JSON; {REMEDY}") from None
    for field, kind in FIELDS.items():
        if not isinstance(found, dict) or not isinstance(found.get(field), kind):
            raise Damaged(f"{file} is damaged: `{field}` is missing; {REMEDY}")
    return found


def names(folder: Path, section: str) -> list[str]:
    """The names of a section's models."""
    listed: list[str] = about(folder)["sections"].get(section, [])
    return listed


def origin(folder: Path) -> str:
    """A sentence with the command that wrote a bundle, its commit, and its age."""
    facts = about(folder)
    hours = max(time.time() - facts["made"], 0) / 3600
    age = f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
    return f"The bundle is {age} old; `{facts['command']}` made it at {facts['commit']}."


def pack(extension: Path, folder: Path) -> None:
    """Writes an extension to the folder, compressed and without debug symbols."""
    stripped = folder / extension.name
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, extension], check=True)
    (folder / f"{extension.name}.xz").write_bytes(lzma.compress(stripped.read_bytes()))
    stripped.unlink()


def beside(folder: Path) -> Path:
    """The folder for unpacked extensions and compiled kernels, next to the bundle."""
    made = folder.with_name(f"{folder.name}-unpacked")
    made.mkdir(parents=True, exist_ok=True)
    return made


def unpacked(folder: Path) -> Path:
    """The folder of a bundle's extensions. Unpacks them once, and removes those of former bundles.

    Raises:
        Damaged: an extension is damaged.
    """
    packed = {file: file.read_bytes() for file in sorted(folder.glob("*.so.xz"))}
    target = beside(folder) / f"extensions-{hashlib.sha256(b''.join(packed.values())).hexdigest()[:12]}"
    for former in beside(folder).glob("extensions-*"):
        if former != target:
            shutil.rmtree(former, ignore_errors=True)
    target.mkdir(exist_ok=True)
    for file in packed:
        if not (extension := target / file.stem).exists():
            write_whole(extension, plain(file))
    return target
