"""The packages of the crate for Rust programs: a program outside the workspace adds them with `cargo add`, and builds.

A folder stands for crates.io: it holds the packages, and the other crates as Cargo has them already. The files that
Cargo compiles stay in build/outside, so a second run takes a few seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.test_rust_manifests import RUNTIME, needed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
OUTSIDE = ROOT / "build/outside"
REGISTRY = OUTSIDE / "registry"

SETTINGS = f"""
[source.crates-io]
replace-with = "packages"
[source.packages]
directory = {json.dumps(str(REGISTRY))}
[build]
target-dir = {json.dumps(str(OUTSIDE / "target"))}
[net]
offline = true
"""
"""The settings of a program whose crates all come from the folder."""


def cargo(folder: Path, *arguments: str) -> str:
    """Run a command of Cargo, and return its output and messages."""
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    done = subprocess.run(["cargo", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def place(name: str, version: str, checksum: str | None) -> Path:
    """The empty folder of a crate in the registry."""
    folder = REGISTRY / f"{name}-{version}"
    folder.mkdir(parents=True)
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))
    return folder


def link_other_crates() -> None:
    """The crates of crates.io that the workspace needs."""
    locked = tomllib.loads((RUNTIME / "Cargo.lock").read_text())["package"]
    checksums = {(each["name"], each["version"]): each.get("checksum") for each in locked}
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    found = json.loads(subprocess.run(command, cwd=RUNTIME, capture_output=True, check=True).stdout)
    for package in found["packages"]:
        if package["source"] is not None:
            folder = place(package["name"], package["version"], checksums[package["name"], package["version"]])
            for path in Path(package["manifest_path"]).parent.iterdir():
                (folder / path.name).symlink_to(path)


def unpack_packages() -> None:
    """The crates of this project, from their packages."""
    crates = sorted(needed("candle-plan"))
    packages = [argument for crate in crates for argument in ("--package", crate)]
    cargo(RUNTIME, "package", "--no-verify", "--allow-dirty", "--target-dir", str(OUTSIDE / "packages"), *packages)
    for path in sorted((OUTSIDE / "packages/package").glob("*.crate")):
        name, _, version = path.stem.rpartition("-")
        folder = place(name, version, hashlib.sha256(path.read_bytes()).hexdigest())
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                inside = member.name.partition("/")[2]
                if member.isfile() and (file := archive.extractfile(member)) is not None:
                    target = folder / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.read())


@pytest.fixture(scope="module")
def program() -> Path:
    """The folder of a new program, which finds crates in the registry."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on PATH")
    for folder in (REGISTRY, OUTSIDE / "packages", OUTSIDE / "program"):
        shutil.rmtree(folder, ignore_errors=True)
    link_other_crates()
    unpack_packages()
    folder = OUTSIDE / "program"
    cargo(OUTSIDE, "init", "--quiet", "--vcs", "none", "--name", "outside", str(folder))
    (folder / ".cargo").mkdir()
    (folder / ".cargo/config.toml").write_text(SETTINGS)
    # The project's workspace is not around the program.
    (folder / "Cargo.toml").write_text((folder / "Cargo.toml").read_text() + "\n[workspace]\n")
    shutil.copy(RUNTIME / "plan/examples/run.rs", folder / "src/main.rs")
    return folder


def dependency(program: Path) -> Any:
    return tomllib.loads((program / "Cargo.toml").read_text())["dependencies"]["candle-plan"]


@pytest.mark.slow
def test_a_program_outside_compiles_with_the_packages(program: Path) -> None:
    version = tomllib.loads((RUNTIME / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    said = cargo(program, "add", "candle-plan")
    assert f"Adding candle-plan v{version} to dependencies" in said
    assert dependency(program) == version
    cargo(program, "check")


@pytest.mark.slow
def test_a_program_outside_compiles_without_optional_operators(program: Path) -> None:
    cargo(program, "add", "candle-plan", "--no-default-features")
    assert dependency(program)["default-features"] is False
    cargo(program, "check")
    tree = cargo(program, "tree", "--package", "candle-plan", "--depth", "1", "--edges", "normal", "--prefix", "none")
    assert not {"rand", "regex", "rustfft"} & {line.split()[0] for line in tree.splitlines()}
