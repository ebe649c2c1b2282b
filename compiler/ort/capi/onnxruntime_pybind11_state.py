"""The exceptions of `compiler.ort`, under the names of onnxruntime's.

Sometimes onnxruntime's class depends on the operator or on the first check that fails. The exception here then has all
of these classes. A message begins as onnxruntime's does, with another name in brackets.
"""

from __future__ import annotations

from typing import ClassVar

from compiler.errors import Error

__all__ = [
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoaded",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
]


class _Status(Error):
    """An error with a status of onnxruntime: a number and a name."""

    status: ClassVar[str]

    def __init__(self, message: str) -> None:
        super().__init__(f"[compiler.ort] : {self.status} : {message}")


class Fail(_Status):
    """A model is malformed, or a run failed."""

    status = "1 : FAIL"


class InvalidArgument(_Status):
    """An input or the name of an output does not fit the model."""

    status = "2 : INVALID_ARGUMENT"


class NoSuchFile(_Status):
    """There is no such file."""

    status = "3 : NO_SUCHFILE"


class InvalidProtobuf(_Status):
    """The file or the bytes are neither an ONNX model nor a plan."""

    status = "7 : INVALID_PROTOBUF"


class NotImplemented(_Status):
    """The compiler does not support an operator."""

    status = "9 : NOT_IMPLEMENTED"


class InvalidGraph(_Status):
    """A node does not fit its operator."""

    status = "10 : INVALID_GRAPH"


class NoModel(_Status):
    """Exists because programs catch it. Nothing raises it."""

    status = "4 : NO_MODEL"


class EngineError(_Status):
    """Exists because programs catch it. Nothing raises it."""

    status = "5 : ENGINE_ERROR"


class RuntimeException(_Status):
    """Exists because programs catch it. Nothing raises it."""

    status = "6 : RUNTIME_EXCEPTION"


class ModelLoaded(_Status):
    """Exists because programs catch it. Nothing raises it."""

    status = "8 : MODEL_LOADED"


class EPFail(_Status):
    """Exists because programs catch it. Nothing raises it."""

    status = "11 : EP_FAIL"


class RunFailed(Fail, InvalidArgument):
    """A step failed. onnxruntime's class depends on the operator."""


class Malformed(Fail, InvalidArgument):
    """A graph is not valid. onnxruntime's class depends on the first check that fails."""


class Refused(InvalidGraph, NotImplemented, Fail):
    """The compiler refuses a node. onnxruntime's class depends on the first check that fails."""
