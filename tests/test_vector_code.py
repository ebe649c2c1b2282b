"""Vector instructions are part of the kernels: none of them is a function that kernels call."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from compiler import _runtime

INTRINSIC = re.compile(r"core::core_arch::x86::avx512\w*::(_mm512_\w+)")
"""Only kernels of this project use AVX-512. They are the same code for each level."""
ALLOWED = {"_mm512_set1_ps"}
"""It makes a vector of a constant, outside of loops."""


def test_no_vector_instruction_is_called() -> None:
    """The compiler calls an instruction if the code around it is not compiled for the level, such as a closure with
    several callers. The kernel then takes several times as long."""
    if shutil.which("nm") is None:
        pytest.skip("nm, a program of binutils, lists the functions")
    command = ["nm", "--demangle", _runtime.__file__]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "candle_plan_kernels" not in names:
        pytest.skip("the extension was built without names of functions")
    assert set(INTRINSIC.findall(names)) <= ALLOWED
