"""Compiles ONNX models into plans that a small Rust runtime on Candle executes."""

from compiler import backend
from compiler.check import verify
from compiler.errors import CompileError, Diagnostic, InputError, PlanError, RunError
from compiler.export import export
from compiler.options import Options
from compiler.pipeline import compile
from compiler.plan import Plan, TensorInfo
from compiler.session import Session, load

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
