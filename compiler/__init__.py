"""Compiles ONNX models into plans that a small Rust runtime on Candle executes.

To load and run a plan imports no ONNX: what compiles is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from compiler.errors import CompileError, Diagnostic, InputError, PlanError, RunError
from compiler.export import export
from compiler.plan import Plan, TensorInfo
from compiler.session import Session, load

if TYPE_CHECKING:
    from compiler import backend
    from compiler.check import verify
    from compiler.options import Options
    from compiler.pipeline import compile

__all__ = [
    "CompileError",
    "Diagnostic",
    "InputError",
    "Options",
    "Plan",
    "PlanError",
    "RunError",
    "Session",
    "TensorInfo",
    "backend",
    "compile",
    "export",
    "load",
    "verify",
]

if not TYPE_CHECKING:  # else any misspelt name would have a type
    _MODULES = {"Options": "options", "compile": "pipeline", "verify": "check"}

    def __getattr__(name: str) -> Any:
        """The part of the interface that needs ONNX; `backend` is a module, which imports itself into its place."""
        if name in _MODULES:
            return getattr(importlib.import_module(f"compiler.{_MODULES[name]}"), name)
        if name == "backend":
            return importlib.import_module("compiler.backend")
        raise AttributeError(f"module 'compiler' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
