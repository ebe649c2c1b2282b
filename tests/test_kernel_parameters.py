"""The parameters of every GPU kernel: the Rust compiler compares Rust's structure with the kernel's own.

The derives `Params` and `Mirror` (runtime/derive) make the comparison, and have its tests. The tests here check that
every structure derives one of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parent.parent / "runtime"
GPU = RUNTIME / "plan/src/gpu"
PATHS = [*sorted(GPU.rglob("*.rs")), RUNTIME / "device/src/faults.rs", RUNTIME / "device/src/gemm.rs"]
ATTRIBUTES = r"((?:^#\[[^\n]*\n)*)^(?:pub(?:\([^)]*\))? )?struct (\w+) "


def unchecked(text: str) -> list[str]:
    """A sentence for each structure with the memory layout of C that is not compared with the kernel's."""
    return [
        f"{name} is not compared with a kernel's struct: derive `Params` or `Mirror`"
        for attributes, name in re.findall(ATTRIBUTES, text, re.MULTILINE)
        if "#[repr(C" in attributes and not re.search(r"\bderive\(.*\b(?:Params|Mirror)\b", attributes)
    ]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_structure_is_compared_with_the_kernels(path: Path) -> None:
    assert not unchecked(path.read_text())


def test_an_unchecked_structure_is_reported() -> None:
    structure = "#[derive(Clone, Copy{})]\n#[repr(C)]\nstruct UnaryParams {{\n    x: u64,\n}}\n"
    sentence = "UnaryParams is not compared with a kernel's struct: derive `Params` or `Mirror`"
    assert unchecked(structure.format("")) == [sentence]
    assert not unchecked(structure.format(", Params"))


def test_only_the_derives_implement_the_traits() -> None:
    sources = [*(RUNTIME / "plan").rglob("*.rs"), *(RUNTIME / "device").rglob("*.rs")]
    written = r"^unsafe impl[^{]*\b(?:Params|Mirror) for"
    assert not [str(path) for path in sources if re.search(written, path.read_text(), re.MULTILINE)]
