"""Compiles ONNX models into plans that a small Rust runtime on Candle executes.

What a name needs is imported when it is first asked for; to load and run a plan needs no ONNX.
"""

from __future__ import annotations

import importlib

# Importing that of `typing` would take longer than all the rest, and an interrupt would end it with a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from compiler import backend
    from compiler.accuracy.verify import verify
    from compiler.errors import CompileError, DeviceError, Diagnostic, Error, InputError, PlanError, RunError
    from compiler.frontend.export import ExportError, export
    from compiler.options import Options
    from compiler.pipeline import compile
    from compiler.plan import Plan, TensorInfo
    from compiler.runtime.session import Session, load

__all__ = [
    "CompileError",
    "DeviceError",
    "Diagnostic",
    "Error",
    "ExportError",
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
    _MODULES = {
        **dict.fromkeys(("CompileError", "DeviceError", "Diagnostic", "Error"), "errors"),
        **dict.fromkeys(("InputError", "PlanError", "RunError"), "errors"),
        **dict.fromkeys(("ExportError", "export"), "frontend.export"),
        **dict.fromkeys(("Plan", "TensorInfo"), "plan"),
        **dict.fromkeys(("Session", "load"), "runtime.session"),
        "Options": "options",
        "compile": "pipeline",
        "verify": "accuracy.verify",
    }

    def __getattr__(name: str) -> Any:
        """What a public name stands for; `backend` is a module, which imports itself into its place."""
        if name in _MODULES:
            return getattr(importlib.import_module(f"compiler.{_MODULES[name]}"), name)
        if name == "backend":
            return importlib.import_module("compiler.backend")
        raise AttributeError(f"module 'compiler' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
