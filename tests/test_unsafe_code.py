"""Unsafe Rust occurs only in the places that docs/security.md lists, and the compiler denies it elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CRATES = [manifest.parent for manifest in (ROOT / "runtime/Cargo.toml", *sorted(ROOT.glob("runtime/*/Cargo.toml")))]

FOLDERS = [crate / folder for crate in CRATES for folder in ("src", "tests", "examples")]

SOURCES = [
    path.relative_to(ROOT).as_posix()
    for path in [
        *(file for crate in CRATES for file in crate.glob("*.rs")),
        *(file for folder in FOLDERS for file in sorted(folder.rglob("*.rs"))),
    ]
]
"""Every Rust file of the runtime, from the repository's root."""

WHOLE = ["runtime/device/", "runtime/kernels/"]
"""The crates in which most modules have unsafe code."""

GUARDED = ["runtime/src/lib.rs", "runtime/cuda/src/lib.rs", "runtime/emulator/src/lib.rs", "runtime/plan/src/lib.rs"]
"""The roots of the crates that deny unsafe code but in some modules."""

FORBIDDEN = ["runtime/derive/src/lib.rs"]
"""The roots of the crates that have no unsafe code. The derives write `unsafe impl` into the crates that use them."""

MODULE = r'^#\[allow\(unsafe_code\)\] // \S.*\n(?:#\[path = "(.*)"\]\n)?(?:pub(?:\(\w+\))? )?mod (\w+);'
"""A module in which the compiler allows unsafe code, with the reason: its path, if one is written, and its name."""


def listed() -> list[str]:
    """The files, and the folders with a slash at the end, that docs/security.md lists."""
    section = (ROOT / "docs" / "security.md").read_text().split("\n## The code\n")[1].split("\n## ")[0]
    bullets = re.findall(r"^- (.*?):", section, re.MULTILINE | re.DOTALL)
    return [place for bullet in bullets for place in re.findall(r"`([^`]+)`", bullet)]


def has_unsafe(source: str) -> bool:
    """Whether a file has the keyword outside of comments, in a crate that may have unsafe code."""
    if source.startswith(tuple(root.removesuffix("lib.rs") for root in FORBIDDEN)):
        return False
    return re.search(r"\bunsafe\b", re.sub(r"//.*", "", (ROOT / source).read_text())) is not None


def allowed() -> set[str]:
    """The files, and the folders with a slash at the end, of the modules in which the compiler allows unsafe code."""
    places = set()
    for source in SOURCES:
        text, folder = (ROOT / source).read_text(), (ROOT / source).parent
        modules = re.findall(MODULE, text, re.MULTILINE)
        assert len(modules) == text.count("allow(unsafe_code)"), (
            f"{source}: allow unsafe code at a module, with a reason"
        )
        for named, module in modules:
            file = (folder / (named or f"{module}.rs")).resolve()
            place = file if file.is_file() else folder / module
            places.add(place.relative_to(ROOT).as_posix() + ("" if file.is_file() else "/"))
    return places


def test_every_file_with_unsafe_code_is_listed() -> None:
    places = tuple(listed())
    assert [source for source in SOURCES if has_unsafe(source) and not source.startswith(places)] == []


def test_every_listed_place_has_unsafe_code() -> None:
    unsafe = [source for source in SOURCES if has_unsafe(source)]
    assert [place for place in listed() if not any(source.startswith(place) for source in unsafe)] == []


@pytest.mark.parametrize("source", GUARDED)
def test_crates_deny_unsafe_code(source: str) -> None:
    assert "\n#![deny(unsafe_code)]\n" in (ROOT / source).read_text()


@pytest.mark.parametrize("source", FORBIDDEN)
def test_crates_forbid_unsafe_code(source: str) -> None:
    assert "\n#![forbid(unsafe_code)]\n" in (ROOT / source).read_text()


def test_the_compiler_allows_it_in_the_listed_places_alone() -> None:
    assert sorted(allowed()) == sorted(set(listed()) - set(WHOLE))
    roots = [source for source in SOURCES if source.endswith("/src/lib.rs")]
    assert sorted(roots) == sorted([*GUARDED, *FORBIDDEN, *(f"{crate}src/lib.rs" for crate in WHOLE)])
