"""Facts that the compiler and the runtime both need, and that each has in its own language."""

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from compiler import dtypes
from compiler.files import write_whole
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
    assert {name: kind for name, kind in stored.items() if kind != "U8"} == dtypes.STORED
    assert rust("plan/src/read.rs", r"_ => Dtype::(\w+)") == ["U8"]


def test_the_slots_of_a_program():
    assert rust("kernels/src/program/mod.rs", r"const SLOTS: u8 = (\d+)") == [str(SLOTS)]


def test_a_file_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.plan"
    write_whole(target, b"old")
    threads = [threading.Thread(target=write_whole, args=(target, bytes([index]) * 10**6)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(target.read_bytes())) == 1 and target.stat().st_size == 10**6
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(target, b"new")
    assert list(tmp_path.iterdir()) == [target] and target.stat().st_size == 10**6


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    write_whole(tmp_path / "out", np.zeros(3).tobytes())
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "other").stat().st_mode
