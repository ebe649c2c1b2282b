"""All rows: those in the list `SCRATCH` of each file in tests/lower, and those of `others.py`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.scratch.others import OTHERS
from tests.scratch.row import Row

FILES = sorted(path.stem for path in (Path(__file__).parents[1] / "lower").glob("test_*.py"))
ROWS: list[Row] = [
    *(row for name in FILES for row in getattr(import_module(f"tests.lower.{name}"), "SCRATCH", ())),
    *OTHERS,
]
