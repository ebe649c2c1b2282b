"""Checkouts whose speed is compared: folders with a built extension, or commits, which are built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Unusable", "checkout"]

ROOT = Path(__file__).parent.parent.parent
BUILD = ROOT / "build/commits"
"""Contains a folder for each commit, and the folder `target`: commits share most compiled crates."""
EXTENSION = "compiler/_runtime.abi3.so"


class Unusable(Exception):
    """A checkout cannot be used. The text gives the reason."""


def checkout(name: str) -> Path:
    """The folder of a checkout: `name` itself if it is a folder, or the folder of the commit `name`.

    The sources of a commit are exported and its extension is built once, which takes some minutes.

    Raises:
        Unusable: the folder has no extension, there is no such commit, or the build fails.
    """
    folder = Path(name)
    if folder.is_dir():
        if not (folder / EXTENSION).exists():
            raise Unusable(f"{folder} has no {EXTENSION}: run `make build` there")
        return folder.resolve()
    commit = _output(["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"])
    if not commit:
        raise Unusable(f"{name} is neither a folder nor a commit")
    folder = BUILD / commit
    if not (folder / EXTENSION).exists():
        _export(commit, folder)
        _build(folder)
    return folder


def _output(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _export(commit: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sources = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=sources, check=True)


def _build(folder: Path) -> None:
    """Builds the extension from the package that maturin builds, with the settings of `make build`.

    Raises:
        Unusable: cargo is missing or fails.
    """
    print(f"building the extension in {folder}", file=sys.stderr)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(BUILD / "target"), "PYO3_PYTHON": sys.executable}
    manifest = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["maturin"]["manifest-path"]
    command = ["cargo", "build", "--quiet", "--release", "--features", "extension-module"]
    try:
        done = subprocess.run(command, cwd=(folder / manifest).parent, env=environment, check=False)
    except OSError as error:
        raise Unusable(f"cargo does not run: {error}") from None
    if done.returncode:
        raise Unusable(f"cargo ends with exit code {done.returncode} in {(folder / manifest).parent}")
    built = BUILD / "target/release/lib_runtime.so"
    shutil.copyfile(built, folder / f"{EXTENSION}.new")
    (folder / f"{EXTENSION}.new").replace(folder / EXTENSION)  # whole, or not at all
