"""The manifests of the Rust crates: what each crate states, and what the stand-in's program shares with the runtime."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.sources import files

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "runtime"
STANDIN = ROOT / "tests/standin/candle"

Table = dict[str, Any]


def read(path: Path) -> Table:
    """A file in TOML."""
    return tomllib.loads(path.read_text())


MANIFESTS = {
    path.parent.relative_to(RUNTIME).as_posix(): read(path) for path in files(RUNTIME) if path.name == "Cargo.toml"
}
"""The manifest of every crate of the runtime, by its folder."""
OWN = sorted(manifest["package"]["name"] for manifest in MANIFESTS.values())
"""The names of these crates."""
UNCHECKED = {"candle-plan-kernels"}
"""Crates whose arithmetic does not detect overflow: the sizes that they receive are checked."""


def profile(manifest: Table, name: str) -> Table:
    """The settings of a profile, with those that it inherits."""
    own = manifest["profile"].get(name, {})
    inherited = profile(manifest, own["inherits"]) if "inherits" in own else {}
    packages = {**inherited.get("package", {}), **own.get("package", {})}
    return {**inherited, **own, "package": packages}


def settings(manifest: Table, name: str, package: str) -> Table:
    """The settings of a profile for a package. `*` stands for the packages outside the workspace."""
    packages = profile(manifest, name)["package"]
    return {**({} if package in OWN else packages.get("*", {})), **packages.get(package, {})}


def versions(folder: Path) -> dict[str, set[str]]:
    """The versions of every package in the lock file of a workspace."""
    found = defaultdict(set)
    for package in read(folder / "Cargo.lock")["package"]:
        found[package["name"]].add(package["version"])
    return found


def test_every_crate_is_a_member() -> None:
    assert sorted(MANIFESTS["."]["workspace"]["members"]) == sorted(MANIFESTS)


@pytest.mark.parametrize("folder", MANIFESTS)
def test_a_crate_states_what_all_state(folder: str) -> None:
    manifest = MANIFESTS[folder]
    assert manifest.get("lints") == {"workspace": True}
    for key in ("version", "edition", "rust-version", "license"):
        assert manifest["package"].get(key) == {"workspace": True}, key


@pytest.mark.parametrize("name", ["release", "quick", "wheel"])
@pytest.mark.parametrize("package", OWN)
def test_an_overflow_stops_a_run(package: str, name: str) -> None:
    usual = profile(MANIFESTS["."], name).get("overflow-checks")
    checks = settings(MANIFESTS["."], name, package).get("overflow-checks", usual)
    assert checks is (package not in UNCHECKED)


def test_optional_families_are_the_same_everywhere() -> None:
    """In the build script, the manifest, the documentation, and the attributes of modules."""
    crate, modules = RUNTIME / "plan", re.compile(r'#\[cfg\(feature = "(\w+)"\)]\n(?:pub\(crate\) )?mod (\w+);')
    listed = re.search(r"OPTIONAL.*?\];", (crate / "tables.rs").read_text(), re.DOTALL)
    assert listed is not None
    families = dict(re.findall(r'\("(\w+)", "(\w+)"\)', listed[0]))
    features = set(families.values())
    assert set(MANIFESTS["plan"]["features"]["default"]) == features
    assert set(re.findall(r"^//! \| `(\w+)` \|", (crate / "src/lib.rs").read_text(), re.MULTILINE)) == features
    for name in families:
        assert (crate / f"src/ops/{name}.rs").exists(), name
    for folder in ("gpu", "operands"):
        code = (crate / f"src/{folder}/mod.rs").read_text()
        named = {name: feature for feature, name in modules.findall(code)}
        present = {name: feature for name, feature in families.items() if re.search(rf"mod {name};", code)}
        assert named == present, f"write #[cfg(feature = …)] before these families in {folder}/mod.rs, and no other"


def needed(name: str) -> set[str]:
    """A crate, and the crates of the runtime that it needs."""
    (manifest,) = (each for each in MANIFESTS.values() if each["package"]["name"] == name)
    return {name}.union(*(needed(each) for each in manifest.get("dependencies", {}) if each in OWN))


def test_the_crate_of_plans_can_be_packaged(tmp_path: Path) -> None:
    """With the crates that it needs, each in the version of the workspace."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on PATH")
    crates, version = sorted(needed("candle-plan")), MANIFESTS["."]["workspace"]["package"]["version"]
    packages = [argument for crate in crates for argument in ("--package", crate)]
    command = ["cargo", "package", "--no-verify", "--allow-dirty", "--target-dir", str(tmp_path), *packages]
    done = subprocess.run(command, cwd=RUNTIME, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "manifest has no" not in done.stderr
    for crate in crates:
        files = packaged(tmp_path / f"package/{crate}-{version}.crate")
        manifest = tomllib.loads(files["Cargo.toml"].decode())
        assert manifest["package"]["documentation"] == f"https://docs.rs/{crate}"
        found = {each["version"] for name, each in manifest["dependencies"].items() if name in OWN}
        assert found <= {f"={version}"}, crate
        assert not named_files(files) - {*files}, f"the code or an example of {crate} reads files outside the package"


def packaged(archive: Path) -> dict[str, bytes]:
    """The files of a package, by their paths in the crate."""
    with tarfile.open(archive) as opened:
        members = [(member, opened.extractfile(member)) for member in opened.getmembers()]
        return {member.name.partition("/")[2]: file.read() for member, file in members if file is not None}


def named_files(files: dict[str, bytes]) -> set[str]:
    """The paths in the crate of the files that the code and the examples of a package include or open."""
    of_crate = re.compile(r'env!\("CARGO_MANIFEST_DIR"\), *"/([^"]*)"')
    of_file = re.compile(r'(?:include(?:_bytes|_str)?!\(|#\[path = )"([^"]*)"')
    found = set()
    for path, data in files.items():
        if path.endswith(".rs"):
            code = data.decode()
            found |= {os.path.normpath(name) for name in of_crate.findall(code)}
            found |= {os.path.normpath(Path(path).parent / name) for name in of_file.findall(code)}
    return found


def test_the_program_of_the_standin_shares_crates_with_the_runtime() -> None:
    """Cargo shares a crate between two workspaces if its version and its settings are the same."""
    here, there = MANIFESTS["."], read(STANDIN / "Cargo.toml")
    ours, theirs = (profile(manifest, "release") for manifest in (here, there))
    assert {key: ours[key] for key in ours if key != "package"} == {
        key: theirs[key] for key in theirs if key != "package"
    }
    mine, others = versions(RUNTIME), versions(STANDIN)
    shared = sorted(mine.keys() & others.keys() - set(OWN))
    assert len(shared) > 50
    assert {name: others[name] for name in shared} == {name: mine[name] for name in shared}
    differing = [name for name in shared if settings(here, "release", name) != settings(there, "release", name)]
    assert differing == []
    packages = theirs["package"].keys() - {"*"}
    assert packages <= set(shared) | set(OWN), "cargo warns of a package that the program does not have"
