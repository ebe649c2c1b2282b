"""The parameters of every GPU kernel: Rust's structure has the fields of the kernel's own, in its order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
RUST, KERNELS = ROOT / "runtime/plan/src/gpu", ROOT / "runtime/device/kernels"
SCALARS = {"u8": 1, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}


class Field(NamedTuple):
    """A field of a structure: its name, its type, and the length if it is an array."""

    name: str
    type: str
    length: int


Structures = dict[str, list[list[Field]]]
"""By name, the fields of the structures of that name, in the files in which they are."""


def constants(text: str, pattern: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(pattern, text)}


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def kernel_structures() -> Structures:
    found: Structures = {}
    paths = [*sorted(KERNELS.glob("*.cu")), *sorted(KERNELS.glob("*.cuh"))]
    sizes = constants("".join(path.read_text() for path in paths), r"\b(\w+) = (\d+)[,;]")
    for path in paths:
        for name, body in re.findall(
            r"^struct (?:alignas\(\d+\) )?(\w+) \{\n(.*?)\n\};", path.read_text(), re.S | re.M
        ):
            fields = []
            for kind, names in re.findall(r"^\s*(\w+) ((?:\w+(?:\[\w+\])*(?:,\s*)?)+);", without_comments(body), re.M):
                for declared in re.split(r",\s*", names):
                    count = 1
                    for size in re.findall(r"\[(\w+)\]", declared):
                        count *= int(size) if size.isdigit() else sizes[size]
                    fields.append(Field(declared.partition("[")[0], kind, count))
            found.setdefault(name, []).append(fields)
    return found


class Twin(NamedTuple):
    """A structure of Rust's that a kernel has too, by the kernel's name for it."""

    kernel: str
    fields: list[Field]


def rust_structures() -> tuple[Structures, dict[str, Twin]]:
    """The structures of the folder `gpu`, and by file and name those that a kernel has too."""
    found: Structures = {}
    twins = {}
    paths = [*sorted(RUST.rglob("*.rs")), ROOT / "runtime/device/src/faults.rs"]
    sizes = constants("".join(path.read_text() for path in paths), r"const (\w+): usize = (\d+);")
    pattern = r"((?:^///[^\n]*\n)*)((?:^#\[[^\n]*\n)*)^[^\n]*struct (\w+) \{\n(.*?)\n\}"
    for path in paths:
        for documentation, attributes, name, body in re.findall(pattern, path.read_text(), re.S | re.M):
            if "#[repr(C)]" in attributes:
                parsed = re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?(\w+): (.+?),$", without_comments(body), re.M)
                fields = [rust_field(field, kind, sizes) for field, kind in parsed]
                found.setdefault(name, []).append(fields)
                if twin := re.search(r"Mirrors the kernel's struct `(\w+)`", documentation):
                    twins[f"{path.stem}::{name}"] = Twin(twin[1], fields)
    return found, twins


def rust_field(name: str, kind: str, sizes: dict[str, int]) -> Field:
    """A field of type `kind`, as `[[u32; 2]; MAX_RANK]`."""
    count = 1
    for size in re.findall(r"; (\w+)\]", kind):
        count *= int(size) if size.isdigit() else sizes[size]
    return Field(name, kind.strip("[").partition(";")[0], count)


KERNEL, (OWN, TWINS) = kernel_structures(), rust_structures()


class Scalar(NamedTuple):
    """A number in a structure: its offset, its type, and its field."""

    offset: int
    type: str
    field: str


def scalars(fields: list[Field], structures: Structures, start: int = 0) -> Iterator[Scalar]:
    """The numbers of a structure, padding aside, laid out as C does."""
    at = start
    for field in fields:
        for _ in range(field.length):
            if field.type in SCALARS:
                width = SCALARS[field.type]
                at += -at % min(width, 8)
                if field.name != "padding":
                    yield Scalar(at, re.sub("^i", "u", field.type), field.name)
                at += width
            else:
                inner = structures[field.type][0]
                at += -at % alignment(inner, structures)
                for offset, kind, name in scalars(inner, structures, at):
                    yield Scalar(offset, kind, f"{field.name}.{name}")
                at += size(inner, structures)


def alignment(fields: list[Field], structures: Structures) -> int:
    own = [
        min(SCALARS[f.type], 8) if f.type in SCALARS else alignment(structures[f.type][0], structures) for f in fields
    ]
    return max(own)


def size(fields: list[Field], structures: Structures) -> int:
    at = 0
    for field in fields:
        width = SCALARS.get(field.type) or size(structures[field.type][0], structures)
        step = min(width, 8) if field.type in SCALARS else alignment(structures[field.type][0], structures)
        at += -at % step + width * field.length
    return at + -at % alignment(fields, structures)


def differences(own: list[Field], kernel: list[Field]) -> list[str]:
    """The differences between a structure of Rust's and a kernel's, a sentence each.

    A list of one side may be several fields of the other, under other names.
    """
    mine, theirs = list(scalars(own, OWN)), list(scalars(kernel, KERNEL))
    if len(mine) != len(theirs):
        return [f"it has {len(mine)} numbers, the kernel's {len(theirs)}"]
    wrong = []
    grouped = {field.name for field in own if field.length > 1 or field.type not in SCALARS}
    grouped |= {field.name for field in kernel if field.length > 1 or field.type not in SCALARS}
    for one, other in zip(mine, theirs, strict=True):
        names = one.field.partition(".")[0], other.field.partition(".")[0]
        if one[:2] != other[:2]:
            wrong.append(
                f"{one.field} is {one.type} at byte {one.offset}, {other.field} {other.type} at {other.offset}"
            )
        elif names[0] != names[1] and not grouped & {*names}:
            wrong.append(f"{one.field} is where the kernel has {other.field}")
    return wrong


@pytest.mark.parametrize("name", sorted(TWINS))
def test_parameters_have_the_fields_of_their_kernel(name: str) -> None:
    own = TWINS[name]
    found = [differences(own.fields, kernel) for kernel in KERNEL[own.kernel]]
    fewest = min(found, key=len)
    assert not fewest, f"{name}, the twin of {own.kernel}: {'; '.join(fewest)}"


def test_swapped_fields_are_found() -> None:
    own = [Field("x", "u64", 1), Field("y", "u64", 1), Field("sizes", "u32", 2)]
    assert not differences(
        own, [Field("x", "u64", 1), Field("y", "u64", 1), Field("m", "u32", 1), Field("n", "u32", 1)]
    )
    assert differences(own, [own[1], own[0], own[2]]) == [
        "x is where the kernel has y",
        "y is where the kernel has x",
    ]
    assert differences(own, [*own[:2], Field("sizes", "f32", 2)]) and differences(own, own[:2])


def test_every_structure_that_is_launched_is_checked() -> None:
    launched = {
        f"{path.stem}::{name}"
        for path in RUST.rglob("*.rs")
        for name in re.findall(r"^unsafe impl Params for (\w+)", path.read_text(), re.MULTILINE)
    }
    assert launched <= set(TWINS)
