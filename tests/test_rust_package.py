"""The packages of the crate for Rust programs: a program outside the workspace adds them with `cargo add`, and builds.

A folder stands for crates.io: it holds the packages, and the other crates as Cargo has them already. The program is
built with the profile and in the build folder of the workspace, whose other crates Cargo need not compile again. Cargo
takes the packages from their own folders then, because it would compile the crates of another crates.io again.
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
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "runtime/target"))
OUTSIDE = ROOT / "build/outside"
REGISTRY, PACKAGES = OUTSIDE / "registry", OUTSIDE / "packages"
FROM_REGISTRY, FROM_PACKAGES = OUTSIDE / "registry.toml", OUTSIDE / "packages.toml"
"""Two files of settings for Cargo. With the first, Cargo takes all crates from `REGISTRY`. With the second, it takes
only the project's packages from there."""


def cargo(folder: Path, *arguments: str) -> str:
    """Run a command of Cargo, and return its output and messages."""
    environment = {**os.environ, "CARGO_NET_OFFLINE": "true"}
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
    cargo(RUNTIME, "package", "--no-verify", "--allow-dirty", "--target-dir", str(PACKAGES), *packages)
    patches = []
    for path in sorted((PACKAGES / "package").glob("*.crate")):
        name, _, version = path.stem.rpartition("-")
        patches.append(f"{name} = {{ path = {json.dumps(str(REGISTRY / path.stem))} }}\n")
        folder = place(name, version, hashlib.sha256(path.read_bytes()).hexdigest())
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                inside = member.name.partition("/")[2]
                if member.isfile() and (file := archive.extractfile(member)) is not None:
                    target = folder / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.read())
    FROM_PACKAGES.write_text("[patch.crates-io]\n" + "".join(patches))
    FROM_REGISTRY.write_text(
        f"source.crates-io.replace-with = 'packages'\nsource.packages.directory = {json.dumps(str(REGISTRY))}\n"
    )


def profile() -> str:
    """The settings of the workspace's release profile."""
    sections = (RUNTIME / "Cargo.toml").read_text().split("\n[")
    return "".join(f"\n[{each}\n" for each in sections if each.startswith("profile.release"))


@pytest.fixture(scope="module")
def program() -> Path:
    """The folder of a new program, which finds crates in the registry."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on PATH")
    for folder in (REGISTRY, PACKAGES, OUTSIDE / "program"):
        shutil.rmtree(folder, ignore_errors=True)
    link_other_crates()
    unpack_packages()
    folder = OUTSIDE / "program"
    cargo(OUTSIDE, "init", "--quiet", "--vcs", "none", "--name", "outside", str(folder))
    # The project's workspace is not around the program.
    (folder / "Cargo.toml").write_text((folder / "Cargo.toml").read_text() + "\n[workspace]\n" + profile())
    shutil.copy(RUNTIME / "plan/examples/run.rs", folder / "src/main.rs")
    return folder


def add(program: Path, *arguments: str) -> str:
    """Add dependencies to the program, and return the messages."""
    return cargo(program, "add", *arguments, "--config", str(FROM_REGISTRY))


def check(program: Path) -> None:
    """Compile the program without making code. `TARGET` contains the other crates if `make lint` has run."""
    cargo(program, "check", "--release", "--target-dir", str(TARGET), "--config", str(FROM_PACKAGES))


def dependency(program: Path) -> Any:
    return tomllib.loads((program / "Cargo.toml").read_text())["dependencies"]["candle-plan"]


@pytest.mark.slow
def test_a_program_outside_compiles_with_the_packages(program: Path) -> None:
    version = tomllib.loads((RUNTIME / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    said = add(program, "candle-plan")
    assert f"Adding candle-plan v{version} to dependencies" in said
    assert dependency(program) == version
    check(program)


@pytest.mark.slow
def test_a_program_outside_compiles_without_optional_operators(program: Path) -> None:
    add(program, "candle-plan", "--no-default-features")
    assert dependency(program)["default-features"] is False
    # Cargo compiles crates that several others need, such as rand, with the features that all of them ask for.
    add(program, "rand", "rand_chacha", "rand_distr", "regex")
    add(program, "rustfft", "--no-default-features")
    check(program)
    of_crate = ("--package", "candle-plan", "--depth", "1", "--edges", "normal", "--prefix", "none")
    tree = cargo(program, "tree", "--config", str(FROM_PACKAGES), *of_crate)
    assert not {"rand", "regex", "rustfft"} & {line.split()[0] for line in tree.splitlines()}


@pytest.mark.slow
@pytest.mark.parametrize("features", [[], ["--no-default-features"]], ids=["all operators", "needed operators"])
def test_the_program_that_embeds_plans_compiles(features: list[str]) -> None:
    """`examples/embedding`, with the profile of the workspace, whose other crates Cargo need not compile again."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on PATH")
    folder = OUTSIDE / "embedding"
    folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "examples/embedding/Cargo.toml").read_text().replace("../..", ROOT.as_posix())
    (folder / "Cargo.toml").write_text(text.partition("\n[profile")[0] + profile())
    shutil.copy(RUNTIME / "Cargo.lock", folder / "Cargo.lock")
    cargo(folder, "check", "--release", "--target-dir", str(TARGET), *features)
