"""onnxruntime, the reference that plans are checked against and timed beside."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

__all__ = ["Reference", "ReferenceFailed"]


class ReferenceFailed(Exception):
    """onnxruntime is missing, refuses the model, or fails to run it."""


class Reference:
    """A model in onnxruntime, on the CPU; without `optimize`, node by node as the model is written."""

    def __init__(
        self, model: str | PathLike[str] | bytes | onnx.ModelProto, threads: int = 1, *, optimize: bool = True
    ) -> None:
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        if not optimize:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        source = model if isinstance(model, bytes) else _source(model)
        try:
            self._session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises classes of its own for each status code
            raise ReferenceFailed(f"onnxruntime refuses the model: {_first_line(error)}") from error
        self.outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name."""
        try:
            values = self._session.run(None, dict(inputs))
        except Exception as error:
            raise ReferenceFailed(f"onnxruntime fails on these inputs: {_first_line(error)}") from error
        return dict(zip(self.outputs, values, strict=True))


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        message = 'this needs onnxruntime, which is not installed: pip install "candle-compiler[check]"'
        raise ReferenceFailed(message) from None
    return onnxruntime


def _source(model: str | PathLike[str] | onnx.ModelProto) -> str | bytes:
    return str(model) if isinstance(model, str | PathLike) else model.SerializeToString()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
