"""The name and the instruction sets of this machine's processor."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from compiler import _runtime

__all__ = ["extensions", "level_of", "levels", "name"]

EXTENSIONS = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_vnni": "VNNI",
    "avx_vnni": "AVX-VNNI",
    "avx512_bf16": "BF16",
    "amx_tile": "AMX",
}
CPUINFO = Path("/proc/cpuinfo")


def name() -> str:
    """The processor's name, or its architecture if the name is unknown."""
    return _field("model name") or platform.processor() or platform.machine()


def extensions() -> list[str]:
    """The instruction sets that are relevant to the kernels; empty on systems other than Linux."""
    flags = _field("flags").split()
    return [known for flag, known in EXTENSIONS.items() if flag in flags]


def levels() -> list[str]:
    """The levels that the processor supports, simplest first: values of `CANDLE_PLAN_ISA`."""
    return _runtime.levels()


def level_of(isa: str) -> str:
    """The level of this processor's kernels at an instruction set, with the extension that 8-bit products use.

    For example `avx2`, `avx2-vnni`, `avx512-vnni` or `avx512-amx`. It names no extension on systems other than Linux.
    """
    has = extensions()
    if isa == "avx512" and "VNNI" in has:
        return "avx512-amx" if "AMX" in has and os.environ.get("CANDLE_PLAN_ISA") != isa else "avx512-vnni"
    return f"{isa}-vnni" if isa != "scalar" and "AVX-VNNI" in has else isa


def _field(field: str) -> str:
    """A field of the first processor."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    found = re.search(rf"^{field}\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""
