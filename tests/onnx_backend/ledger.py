"""The tests that fail, each with its reason: `failing.toml`.

`python -m tests.onnx_backend.ledger` runs every test and writes the ledger anew: lines of tests that pass are dropped,
a refusal gets what the product says, and a wrong result keeps the reason that was written for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from compiler import CompileError
from tests.onnx_backend.cases import load_cases, run_case

FILE = Path(__file__).with_name("failing.toml")


def read() -> dict[str, str]:
    """Test name → why it fails."""
    return tomllib.loads(FILE.read_text()) if FILE.exists() else {}


def reason_of(error: Exception) -> str:
    """One line that says why a test fails."""
    if isinstance(error, CompileError):
        return "; ".join(dict.fromkeys(diagnostic.message for diagnostic in error.diagnostics))[:200]
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:200]


def write() -> None:
    """Runs every test and writes the ledger anew."""
    known, failing = read(), {}
    for name, case in sorted(load_cases().items()):
        try:
            run_case(case)
        except Exception as error:
            explained = isinstance(error, AssertionError) and name in known
            failing[name] = known[name] if explained else reason_of(error)
    FILE.write_text("".join(f"{name} = {json.dumps(reason)}\n" for name, reason in failing.items()))
    sys.stdout.write(f"{len(load_cases()) - len(failing)} of {len(load_cases())} pass\n")


if __name__ == "__main__":
    write()
