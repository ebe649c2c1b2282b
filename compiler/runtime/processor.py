"""The name and the instruction sets of this machine's processor."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from compiler import _runtime

__all__ = ["extensions", "levels", "name"]

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


def _field(field: str) -> str:
    """A field of the first processor."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    found = re.search(rf"^{field}\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""
