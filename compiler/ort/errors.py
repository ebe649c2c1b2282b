"""Conversion of the compiler's and the runtime's errors to the exceptions of onnxruntime."""

from __future__ import annotations

from compiler.errors import CompileError, Error, InputError, RunError
from compiler.ort.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    Malformed,
    NotImplemented,
    Refused,
    RunFailed,
)

__all__ = ["of_model", "of_run"]

_OF_CODES = {
    "CC0101": InvalidProtobuf,
    "CC0102": InvalidProtobuf,  # a folder; a file that does not exist has another class
    "CC0106": Malformed,
    "CC0107": Malformed,
    "CC02": Refused,
    "CC0210": Fail,
    "CC03": NotImplemented,
}
"""The class for a code, or for the codes that begin with it. The longest one counts, and `Fail` without any."""


def of_model(error: CompileError) -> Error:
    """The exception for a model that the compiler refuses. The code of the first error decides the class."""
    code = next(each.code for each in error.diagnostics if each.severity == "error")
    kinds = (_OF_CODES[code[:length]] for length in (6, 4) if code[:length] in _OF_CODES)
    return next(kinds, Fail)(str(error))


def of_run(error: Error) -> Error:
    """The exception for a run that failed."""
    if isinstance(error, InputError):
        return InvalidArgument(str(error))
    return (RunFailed if isinstance(error, RunError) else Fail)(str(error))
