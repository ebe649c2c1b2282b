"""onnxruntime, the reference that plans are checked against and timed beside."""

from __future__ import annotations

import functools
from os import PathLike
from typing import TYPE_CHECKING, Any

from compiler import expect
from compiler.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

__all__ = ["Reference", "ReferenceFailed", "ReferenceMissing"]


class ReferenceMissing(Error):
    """What a plan is to be compared with is not installed."""


class ReferenceFailed(Error):
    """What a plan is to be compared with refuses the model, or fails to run it."""


class Reference:
    """A model in onnxruntime, on the CPU; without `optimize`, node by node as the model is written.

    Raises:
        ReferenceMissing, ReferenceFailed: see there.
    """

    def __init__(
        self, model: str | PathLike[str] | bytes | onnx.ModelProto, threads: int = 1, *, optimize: bool = True
    ) -> None:
        self._source, self._threads, self._optimize = _source(model), threads, optimize
        self._session = _session(self._source, threads, optimize)
        self.outputs = [output.name for output in self._session.get_outputs()]

    @functools.cached_property
    def plain(self) -> Reference:
        """The same model without onnxruntime's optimisations."""
        return Reference(self._source, self._threads, optimize=False) if self._optimize else self

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name.

        Raises:
            ReferenceFailed: onnxruntime fails on these inputs.
        """
        try:
            values = self._session.run(None, dict(inputs))
        except Exception as error:
            raise ReferenceFailed(f"onnxruntime fails on these inputs: {_first_line(error)}") from error
        return dict(zip(self.outputs, values, strict=True))


def _session(source: str | bytes, threads: int, optimize: bool) -> Any:
    runtime = _onnxruntime()
    options = runtime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own for each status code
        raise ReferenceFailed(f"onnxruntime refuses the model: {_first_line(error)}") from error


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        message = 'this needs onnxruntime, which is not installed: pip install "candle-compiler[check]"'
        raise ReferenceMissing(message) from None
    return onnxruntime


def _source(model: str | PathLike[str] | bytes | onnx.ModelProto) -> str | bytes:
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | PathLike):
        return str(model)
    import onnx

    expect.instance("model", model, onnx.ModelProto, "a path, bytes or an onnx.ModelProto")
    data: bytes = model.SerializeToString()
    return data


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
