"""The functions of `examples/generate.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

PATH = Path(__file__).parents[2] / "examples/generate.py"

_FOUND = runpy.run_path(str(PATH))
generate, main, sample, inputs_of = (_FOUND[name] for name in ("generate", "main", "sample", "inputs_of"))
