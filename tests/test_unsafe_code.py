"""Unsafe Rust occurs only in the places that docs/security.md lists; the compiler denies or forbids it elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sources import files

ROOT = Path(__file__).parent.parent

FILES = [path.relative_to(ROOT).as_posix() for path in files(ROOT / "runtime")]

CRATES = [file.removesuffix("Cargo.toml") for file in FILES if file.endswith("/Cargo.toml")]
"""The folders of the runtime's crates, with a slash at the end. The folder of a crate may contain others."""

SOURCES = [file for file in FILES if file.endswith(".rs")]
"""Every Rust file of the runtime, from the repository's root."""

WHOLE = ["runtime/device/", "runtime/device/cuda/", "runtime/device/emulator/", "runtime/kernels/", "runtime/memory/"]
"""The crates in which most modules have unsafe code."""

MODULE = r"^#\[allow\(unsafe_code\)\] // \S.*\n(?:pub(?:\(\w+\))? )?mod (\w+);"
"""A module with unsafe code, and the reason for it."""


def crate_of(source: str) -> str:
    """The folder of the crate that a file belongs to: the innermost one."""
    return max((crate for crate in CRATES if source.startswith(crate)), key=len)


def root(crate: str) -> str:
    """The text of a crate's root."""
    library = ROOT / crate / "src/lib.rs"
    return (library if library.is_file() else ROOT / crate / "src/main.rs").read_text()


FORBIDS = "\n#![forbid(unsafe_code)]\n"


def forbids(crate: str) -> bool:
    """Whether the compiler refuses all unsafe code in a crate."""
    return FORBIDS in root(crate)


def listed() -> list[str]:
    """The files, and the folders with a slash at the end, that docs/security.md lists."""
    section = (ROOT / "docs" / "security.md").read_text().split("\n## The code\n")[1].split("\n## ")[0]
    bullets = re.findall(r"^- (.*?):", section, re.MULTILINE | re.DOTALL)
    return [place for bullet in bullets for place in re.findall(r"`([^`]+)`", bullet)]


def has_unsafe(source: str) -> bool:
    """Whether a file has the keyword outside of comments. The derives write it into the crates that use them."""
    if forbids(crate_of(source)):
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
        for module in modules:
            file = folder / f"{module}.rs"
            place = file if file.is_file() else folder / module
            places.add(place.relative_to(ROOT).as_posix() + ("" if file.is_file() else "/"))
    return places


def test_nested_crates_are_found() -> None:
    assert {"runtime/", "runtime/plan/", "runtime/device/", "runtime/device/cuda/"} <= set(CRATES)
    assert crate_of("runtime/device/cuda/src/lib.rs") == "runtime/device/cuda/"


def test_every_file_with_unsafe_code_is_listed() -> None:
    places = listed()
    inside = {source: [place for place in places if source.startswith(place)] for source in SOURCES}
    beyond = [source for source in SOURCES if has_unsafe(source) and not inside[source]]
    assert beyond == []
    nested = [source for source in SOURCES if crate_of(source) in WHOLE and crate_of(source) not in inside[source]]
    assert nested == [], "list each crate, not just the folder around it"


def test_every_listed_place_has_unsafe_code() -> None:
    unsafe = [source for source in SOURCES if has_unsafe(source)]
    assert [place for place in listed() if not any(source.startswith(place) for source in unsafe)] == []


def unexplained(source: str) -> list[int]:
    """The lines with an unsafe block or impl but no reason: a comment `// SAFETY: …` at most four lines above."""
    lines, found = (ROOT / source).read_text().splitlines(), []
    for at, line in enumerate(lines):
        above = "\n".join(lines[max(at - 4, 0) : at]).split("\n\n")[-1]
        if re.search(r"\bunsafe (?:\{|impl\b)", line.split("//")[0]) and "// SAFETY: " not in above:
            found.append(at + 1)
    return found


KERNELS = "runtime/kernels/src/"

VECTORS = {"F32x8": "avx2,fma,f16c", "F32x16": "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c"}
"""The types whose safe methods run vector instructions, and the features of functions that may name them. Processors
with ARM64 always have the instructions of the third type, `F32x4x2`."""


def named_freely(source: str) -> list[int]:
    """The lines that name a vector type and are not in a function with its features.

    Beside such a function, the macros `level!` and `dispatch_isa!` write one. `register!` names the numbers of a
    register in a trait that only such functions use (`lowbit/integer/dot.rs`).
    """
    found, features = [], ""
    for at, line in enumerate((ROOT / source).read_text().splitlines(), 1):
        attribute = re.search(r'#\[target_feature\(enable = "([^"]+)"\)\]', line)
        if attribute or re.fullmatch(r"\s*\}", line):
            features = attribute[1] if attribute else ""
        level = re.fullmatch(r' *level!\(\w+ (\w+): "([^"]+)"\);', line)
        for vector in re.findall(r"\bF32x(?:8|16)\b", re.sub(r"//.*|\buse [^;]+;|\bregister!\(F32x\d+ ", "", line)):
            if (level[2] if level and level[1] == vector else features) != VECTORS[vector]:
                found.append(at)
    return found


def test_only_code_for_an_instruction_set_names_its_vectors() -> None:
    """The methods of a vector are safe: other code that names it could run instructions that the processor lacks."""
    sources = [source for source in SOURCES if source.startswith(KERNELS)]
    outside = [source for source in sources if not source.startswith(f"{KERNELS}vector/")]
    found = {source: named_freely(source) for source in [*outside, f"{KERNELS}vector/dispatch.rs"]}
    assert {source: lines for source, lines in found.items() if lines} == {}
    assert sum("F32x16" in (ROOT / source).read_text() for source in outside) > 4


def test_the_registers_of_bytes_stay_in_their_folder() -> None:
    """The traits with safe methods for registers of codes are visible in `int8/` alone."""
    traits = {"vector.rs": ["Lanewise", "Vector"], "dot.rs": ["Dot"]}
    for file, names in traits.items():
        text = (ROOT / KERNELS / "int8" / file).read_text()
        assert re.findall(r"^ *pub\(super\) trait (\w+)", text, re.MULTILINE) == names
    declared = re.findall(r"^(.*)mod (?:dot|vector);", (ROOT / KERNELS / "int8/mod.rs").read_text(), re.MULTILINE)
    assert declared == ["", ""]


def test_every_unsafe_block_states_its_reason() -> None:
    found = {source: unexplained(source) for source in SOURCES if has_unsafe(source)}
    assert len(found) > 50
    assert {source: lines for source, lines in found.items() if lines} == {}


@pytest.mark.parametrize("crate", CRATES)
def test_the_compiler_denies_unsafe_code(crate: str) -> None:
    """A crate without any forbids it. One with some denies it in the other modules, unless most have some."""
    if not any(has_unsafe(source) for source in SOURCES if crate_of(source) == crate):
        assert forbids(crate), "write #![forbid(unsafe_code)] in the root of the crate"
    elif crate in WHOLE:
        assert "unsafe_code" not in root(crate)
    else:
        assert "\n#![deny(unsafe_code)]\n" in root(crate)


def test_the_compiler_forbids_unsafe_code_in_examples() -> None:
    """An example is a program of its own, or the main file of the crate `examples/embedding`."""
    examples = [source for source in SOURCES if "/examples/" in source]
    assert len(examples) > 4
    assert [source for source in examples if FORBIDS not in (ROOT / source).read_text()] == []


def test_the_compiler_allows_it_in_the_listed_places_alone() -> None:
    assert sorted(allowed()) == sorted(set(listed()) - set(WHOLE))


def test_safe_code_cannot_name_an_address() -> None:
    """A type that stands for memory of a GPU has private fields, and only unsafe functions create it."""
    memory = (ROOT / "runtime/device/src/memory.rs").read_text()
    assert not re.findall(r"^    pub(?:\([^)]*\))? \w+:", memory, re.MULTILINE)
    made = re.findall(r"^ +(.*)\bfn new\(", memory, re.MULTILINE)
    assert [each.split() for each in made] == [["pub", "unsafe"], ["pub(crate)", "unsafe"]]
    assert "\npub unsafe trait Backend" in (ROOT / "runtime/device/src/backend.rs").read_text()
