"""Facts that the compiler and the runtime both state, each in its own language."""

import re
from pathlib import Path

from compiler.ir import dtypes
from compiler.lower.program import SLOTS
from compiler.plan import write

RUNTIME = Path(__file__).parent.parent / "runtime"


def rust(path: str, pattern: str) -> list[tuple[str, ...] | str]:
    found = re.findall(pattern, (RUNTIME / path).read_text())
    assert found, f"{path} has no {pattern}"
    return found


def test_the_format_and_its_version():
    assert rust("plan/src/plan.rs", r'const FORMAT: &str = "(.*)"') == [write.FORMAT]
    assert rust("plan/src/plan.rs", r"const VERSION: u32 = (\d+)") == [str(write.VERSION)]


def test_the_types_that_constants_are_stored_in():
    stored = {dtype.lower(): kind for dtype, kind in rust("plan/src/read.rs", r"DType::(\w+) => Dtype::(\w+)")}
    assert {name: kind for name, kind in stored.items() if kind != "U8"} == dtypes.SAFETENSORS_TYPES
    assert rust("plan/src/read.rs", r"_ => Dtype::(\w+)") == ["U8"]


def test_the_slots_of_a_program():
    assert rust("descriptors/src/program/code.rs", r"const SLOTS: u8 = (\d+)") == [str(SLOTS)]
