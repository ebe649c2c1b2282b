"""Checks that a bundle is complete and belongs to the commit of this checkout."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

from gpu.files import REMEDY, Damaged, about, file_of, names, unpacked

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ("_runtime", "_runtime_cuda")
"""The extensions of a bundle. A bundle without extensions uses those of the checkout."""
NO_COMMIT = "no commit"
_FIRST, _LAST = b"\xfd7zXZ\0", b"YZ"
"""The first and last bytes of an .xz file."""


def problem(folder: Path, device: str) -> str:
    """The reason why a bundle is unusable on a device, with advice; an empty string if it is usable."""
    if not folder.exists():
        return f"{folder} does not exist: `make cuda-bundle` writes it"
    if not (folder / "about.json").exists():
        return f"{folder} is not a bundle: it has no about.json; name the folder that `make cuda-bundle` wrote"
    try:
        refuse_damaged(folder, device)
        unpacked(folder)
    except Damaged as error:
        return str(error)
    except OSError as error:
        return f"{error.filename}: {error.strerror}; copy the bundle to a writable folder"
    return ""


def refuse_damaged(folder: Path, device: str) -> None:
    """Checks the first and last bytes of every file.

    Raises:
        Damaged: a file is damaged or missing.
    """
    if not names(folder, "small"):
        raise Damaged(f"{folder}/about.json is damaged: it names no small plan; {REMEDY}")
    packed = {name: folder / f"{name}.abi3.so.xz" for name in EXTENSIONS}
    is_packed = any(file.exists() for file in packed.values())
    needed = [name for name in EXTENSIONS if name == "_runtime" or device.startswith("cuda")]
    wanted = [file for name, file in packed.items() if is_packed or (name in needed and not is_built(name))]
    sections = about(folder)["sections"]
    for file in [*wanted, *(file_of(folder, section, name) for section in sections for name in sections[section])]:
        refuse_cut(file)


def refuse_cut(file: Path) -> None:
    """Checks the first and last bytes of an .xz file.

    Raises:
        Damaged: the file is missing, or its first or last bytes are wrong.
    """
    if not file.exists():
        raise Damaged(f"{file} is missing: {REMEDY}")
    with file.open("rb") as data:
        first = data.read(len(_FIRST))
        data.seek(max(file.stat().st_size - len(_LAST), 0))
        if (first, data.read()) != (_FIRST, _LAST):
            raise Damaged(f"{file} is damaged: {REMEDY}")


def is_built(extension: str) -> bool:
    """Whether the checkout contains the extension."""
    return importlib.util.find_spec(f"compiler.{extension}") is not None


def commit() -> str:
    """The commit of the checkout, with `-dirty` if files differ from it."""
    return git("describe", "--always", "--dirty") or NO_COMMIT


def difference(folder: Path) -> str:
    """A sentence if a bundle's commit differs from this checkout's; an empty string if not, or if git cannot tell."""
    made_at = about(folder)["commit"]
    here = git("rev-parse", "--verify", "--quiet", "HEAD")
    named = f"{made_at.removesuffix('-dirty')}^{{commit}}"
    if not here or made_at == NO_COMMIT or git("rev-parse", "--verify", "--quiet", named) == here:
        return ""
    return f"The bundle's commit is {made_at}, and this checkout's is {commit()}: use the same commit for both."


def git(*arguments: str) -> str:
    """The output of git for this checkout; an empty string without a repository or without git."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""
