"""onnxruntime, the reference for results and times."""

from __future__ import annotations

import functools
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.errors import CompileError, Error
from compiler.validate import validate_instance

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx
    import onnx_ir as ir

__all__ = ["Reference", "ReferenceFailed", "ReferenceMissing", "missing", "saturates"]


class ReferenceMissing(Error):
    """The reference is not installed."""


class ReferenceFailed(Error):
    """The reference refuses the model, or fails to run it."""


class Reference:
    """A model in onnxruntime on the CPU. Without `optimize`, onnxruntime computes it node by node.

    On processors without VNNI, onnxruntime's products of uint8 and int8 saturate. There it runs an equivalent model
    without such products (`compiler.accuracy.unsigned`), `source`. `note` says so in a sentence, and is empty on
    other processors. `as_written` keeps the model unchanged, for timing only.

    Raises:
        ReferenceMissing: onnxruntime is not installed.
        ReferenceFailed: onnxruntime refuses the model.
    """

    def __init__(
        self,
        model: str | PathLike[str] | bytes | onnx.ModelProto,
        threads: int = 1,
        *,
        optimize: bool = True,
        as_written: bool = False,
    ) -> None:
        self._written, self._threads, self._optimize = _source(model), threads, optimize
        self.source, self.note = self._written, ""
        if as_written or not saturates():
            self._session = _session(self._written, threads, optimize)
        else:
            self._session = self._exact_session()
        self.inputs, self.outputs = _names(self._session, "input"), _names(self._session, "output")

    @functools.cached_property
    def plain(self) -> Reference:
        """The same model without onnxruntime's optimizations."""
        return Reference(self._written, self._threads, optimize=False) if self._optimize else self

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

    def _exact_session(self) -> Any:
        """A session with exact products on a processor where onnxruntime's products of uint8 and int8 saturate."""
        from compiler.accuracy.unsigned import make_unsigned, multiplies_codes
        from compiler.frontend.load import load_model

        session = _session(self._written, self._threads, self._optimize)  # raises if onnxruntime refuses the model
        multiplies = True
        try:
            model = load_model(self._written).model
            multiplies = multiplies_codes(model)
            count = make_unsigned(model)
            if count == 0:
                return session
            self.source = _data_of(model)
            session = _session(self.source, self._threads, self._optimize)
            self.note = f"onnxruntime runs with uint8 instead of int8 codes ({count} rewritten): {_SATURATION}"
        except (CompileError, ReferenceFailed) as error:
            reason = f"{_SATURATION}, and the rewrite of the model failed ({_first_line(error)})"
            if multiplies:
                session, self.note = _numpy(self._written), f"NumPy runs the model instead of onnxruntime: {reason}"
            else:
                session = _session(self._written, self._threads, optimize=False)
                self.note = f"onnxruntime runs without optimizations: {reason}"
        return session


_SATURATION = "onnxruntime's products of uint8 and int8 saturate on this processor, which has no VNNI"


@functools.cache
def saturates() -> bool:
    """Whether onnxruntime saturates products of uint8 and int8 on this processor, found by computing one.

    Raises:
        ReferenceMissing: onnxruntime is not installed.
    """
    from onnx import TensorProto, helper

    types = {"a": TensorProto.UINT8, "b": TensorProto.INT8, "y": TensorProto.INT32}
    a, b, y = (helper.make_tensor_value_info(name, kind, None) for name, kind in types.items())
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "product", [a, b], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=8)
    factors = {"a": np.full((1, 2), 255, np.uint8), "b": np.full((2, 1), 127, np.int8)}
    [product] = _session(model.SerializeToString(), 1, optimize=False).run(None, factors)
    return bool(product[0, 0] != 2 * 255 * 127)


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
    except Exception as error:  # onnxruntime has a class for each status code
        raise ReferenceFailed(f"onnxruntime refuses the model: {_first_line(error)}") from error


def _data_of(model: ir.Model) -> bytes:
    """The bytes of a model, with all of its weights.

    Raises:
        ReferenceFailed: the weights do not fit one file.
    """
    import onnx_ir as ir

    from compiler.frontend.load import LARGEST
    from compiler.ir.graph import graphs_of

    weights = (value.const_value for graph in graphs_of(model.graph) for value in graph.initializers.values())
    if sum(weight.nbytes for weight in weights if weight is not None) > LARGEST:
        raise ReferenceFailed("the weights are larger than 2 GiB")
    data: bytes = ir.to_proto(ir.external_data.load_to_model(model)).SerializeToString()
    return data


def _numpy(source: str | bytes) -> Any:
    """The onnx package's evaluator, which uses NumPy and adds in 32 bits."""
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(source)
    except Exception as error:  # its operators raise any exception
        raise ReferenceFailed(f"the onnx package's evaluator refuses the model: {_first_line(error)}") from error


def _names(session: Any, role: str) -> list[str]:
    """The names of the inputs or outputs. NumPy's evaluator has them as an attribute, and onnxruntime as a method."""
    names = getattr(session, f"{role}_names", None)
    return [value.name for value in getattr(session, f"get_{role}s")()] if names is None else list(names)


def missing() -> ReferenceMissing:
    """The error without onnxruntime."""
    return ReferenceMissing('this needs onnxruntime, which is not installed: run pip install "candle-compiler[check]"')


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing() from None
    return onnxruntime


def _source(model: str | PathLike[str] | bytes | onnx.ModelProto) -> str | bytes:
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | PathLike):
        return str(model)
    import onnx

    validate_instance("model", model, onnx.ModelProto, "a path, bytes or an onnx.ModelProto")
    data: bytes = model.SerializeToString()
    return data


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
