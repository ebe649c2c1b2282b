"""Compiles ONNX models into plans that a small Rust runtime on Candle executes.

The package imports lazily: the first use of a public name imports the modules that this name needs. Loading and running
a plan imports no ONNX package.
"""

from __future__ import annotations

# Importing `typing` would take longer than everything else, and Ctrl-C during the import would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler import backend as backend
    from compiler import batch as batch
    from compiler import dynamo as dynamo
    from compiler import ort as ort
    from compiler import ray as ray
    from compiler.accuracy.exported import export as export
    from compiler.accuracy.precision_choice import choose_precision as choose_precision
    from compiler.accuracy.verify import verify as verify
    from compiler.custom import custom_op as custom_op
    from compiler.errors import CompileError as CompileError
    from compiler.errors import DeviceError as DeviceError
    from compiler.errors import Diagnostic as Diagnostic
    from compiler.errors import Error as Error
    from compiler.errors import InputError as InputError
    from compiler.errors import PlanError as PlanError
    from compiler.errors import RunError as RunError
    from compiler.frontend.export_request import ExportError as ExportError
    from compiler.options import Options as Options
    from compiler.pipeline import compile as compile
    from compiler.plan import Plan as Plan
    from compiler.plan import TensorInfo as TensorInfo
    from compiler.runtime.session import Session as Session
    from compiler.runtime.session import load as load

else:  # otherwise any misspelled name would have a type
    from compiler.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "": ("backend", "batch", "dynamo", "ort", "ray"),
            "accuracy.precision_choice": ("choose_precision",),
            "accuracy.exported": ("export",),
            "accuracy.verify": ("verify",),
            "custom": ("custom_op",),
            "errors": ("CompileError", "DeviceError", "Diagnostic", "Error", "InputError", "PlanError", "RunError"),
            "frontend.export_request": ("ExportError",),
            "options": ("Options",),
            "pipeline": ("compile",),
            "plan": ("Plan", "TensorInfo"),
            "runtime.session": ("Session", "load"),
        },
    )
