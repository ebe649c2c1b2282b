"""The option `--first-cases` of the tests, with which other versions of packages are tested, and their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.order import FIRST, in_order

FILE = "tests/lower/test_repeat.py"


def collected(*options: str) -> list[str]:
    """The tests of a file that pytest would run with these options."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", FILE, *options]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_first_case_of_each_function_is_kept() -> None:
    every = collected()
    first = collected("--first-cases", "tests/lower")
    firsts = {line.partition("[")[0]: line for line in reversed(every)}
    assert sorted(first) == sorted(firsts.values()) and len(first) < len(every)
    assert collected("--first-cases", "tests/passes") == every


def test_each_of_two_processes_begins_with_long_tests() -> None:
    folder = Path(__file__).parent
    assert all((folder / each).exists() for files in FIRST for each in files)
    names = ["tests/accepted/a", "tests/b", "tests/layers/c", "tests/d", "tests/test_models.py::e", "tests/f"]
    assert in_order(names, "abcdef") == [*"ce", "b", "a", *"df"]
    assert in_order(names[4:], "ef") == ["e", "f"]
