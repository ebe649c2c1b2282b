"""Compiles ONNX models into plans that a small Rust runtime on Candle executes.

A public name imports its modules at its first use. Loading and running a plan imports no ONNX package.
"""

from __future__ import annotations

import importlib

# Importing `typing` would take longer than everything else, and Ctrl-C during the import would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from compiler import backend, ort
    from compiler.accuracy.exported import export
    from compiler.accuracy.verify import verify
    from compiler.errors import CompileError, DeviceError, Diagnostic, Error, InputError, PlanError, RunError
    from compiler.frontend.export import ExportError
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
    "ort",
    "verify",
]

if not TYPE_CHECKING:  # otherwise any misspelled name would have a type
    _MODULES = {
        **dict.fromkeys(("CompileError", "DeviceError", "Diagnostic", "Error"), "errors"),
        **dict.fromkeys(("InputError", "PlanError", "RunError"), "errors"),
        "ExportError": "frontend.export",
        **dict.fromkeys(("Plan", "TensorInfo"), "plan"),
        **dict.fromkeys(("Session", "load"), "runtime.session"),
        "Options": "options",
        "compile": "pipeline",
        "export": "accuracy.exported",
        "verify": "accuracy.verify",
    }

    def __getattr__(name: str) -> Any:
        """The object of a public name. `backend` and `ort` are modules, and importing one sets its name."""
        if name in _MODULES:
            return getattr(importlib.import_module(f"compiler.{_MODULES[name]}"), name)
        if name in ("backend", "ort"):
            return importlib.import_module(f"compiler.{name}")
        raise AttributeError(f"module 'compiler' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
