"""onnxruntime's interface: a program that imports `compiler.ort` instead of `onnxruntime` runs plans.

::

    import compiler.ort as onnxruntime

    session = onnxruntime.InferenceSession("model.plan")  # or an ONNX model
    outputs = session.run(None, {"picture": pictures})

docs/onnxruntime.md lists the names. Every other name of onnxruntime is an error that says what to do instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.ort import capi
from compiler.ort.binding import IOBinding
from compiler.ort.elements import NodeArg
from compiler.ort.model import ModelMetadata
from compiler.ort.names import missing
from compiler.ort.options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from compiler.ort.providers import get_all_providers, get_available_providers, get_device
from compiler.ort.session import InferenceSession
from compiler.ort.values import OrtValue
from compiler.validate import validate_whole_number

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "capi",
    "disable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]


def set_default_logger_severity(severity: int) -> None:
    """Do nothing: nothing is logged.

    Raises:
        TypeError, ValueError: the severity is no number from 0 to 4.
    """
    validate_whole_number("severity", severity, 0, 4)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Do nothing: nothing is logged."""


def disable_telemetry_events() -> None:
    """Do nothing: there is no telemetry."""


def preload_dlls(**options: Any) -> None:
    """Do nothing: a session opens the libraries of CUDA itself."""


if not TYPE_CHECKING:  # otherwise any misspelled name would have a type

    def __getattr__(name: str) -> Any:
        raise AttributeError(missing("", name))
