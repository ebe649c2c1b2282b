"""onnxruntime, the reference for results and times."""

from __future__ import annotations

import functools
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.onnxruntime_session import (
    OnnxruntimeSession,
    ReferenceFailed,
    ReferenceMissing,
    first_line,
    missing,
)
from compiler.errors import CompileError
from compiler.validate import validate_instance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import onnx
    import onnx_ir as ir

    from compiler.accuracy.onnxruntime_session import Written

__all__ = ["Reference", "ReferenceFailed", "ReferenceMissing", "missing", "saturates"]


class Reference:
    """A model in onnxruntime on the CPU. Without `optimize`, onnxruntime computes it node by node.

    On processors without VNNI, onnxruntime's products of uint8 and int8 saturate. There it runs an equivalent model
    without such products (`compiler.accuracy.unsigned`), `source`. `note` says so in a sentence, and is empty on
    other processors. `as_written` keeps the model unchanged, for timing only. With `lean`, onnxruntime makes no faster
    copies of weights. Weights of an `onnx_ir.Model` in other files stay there.

    Raises:
        ReferenceMissing: onnxruntime is not installed.
        ReferenceFailed: onnxruntime refuses the model.
    """

    def __init__(
        self,
        model: str | PathLike[str] | bytes | onnx.ModelProto | ir.Model,
        threads: int = 1,
        *,
        optimize: bool = True,
        as_written: bool = False,
        lean: bool = False,
    ) -> None:
        self._written, self._threads, self._optimize, self._lean = _source(model), threads, optimize, lean
        self.source, self.note = self._written, ""
        if as_written or not saturates():
            self._session: _Session = self._opened(self._written, optimize=optimize)
        else:
            self._session = self._exact_session()
        self.inputs, self.outputs = self._session.inputs, self._session.outputs

    @functools.cached_property
    def plain(self) -> Reference:
        """The same model without onnxruntime's optimizations."""
        return Reference(self._written, self._threads, optimize=False, lean=self._lean) if self._optimize else self

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name.

        Raises:
            ReferenceFailed: onnxruntime fails on these inputs.
        """
        return self.prepared(inputs)()

    def prepared(self, inputs: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
        """A run of these inputs, for timing: this call converts the inputs of dtypes that NumPy lacks.

        Raises:
            ReferenceFailed: onnxruntime does not take these inputs; the run raises it too.
        """
        try:
            compute = self._session.prepared(inputs)
        except Exception as error:
            raise _failed(error) from error

        def run() -> dict[str, Any]:
            try:
                values = compute()
            except Exception as error:
                raise _failed(error) from error
            return dict(zip(self.outputs, values, strict=True))

        return run

    def _opened(self, source: Written, *, optimize: bool) -> OnnxruntimeSession:
        return OnnxruntimeSession(source, self._threads, optimize=optimize, lean=self._lean)

    def _exact_session(self) -> _Session:
        """A session with exact products on a processor where onnxruntime's products of uint8 and int8 saturate."""
        from compiler.accuracy.unsigned import make_unsigned, multiplies_codes
        from compiler.frontend.load import load_model

        session: _Session = self._opened(self._written, optimize=self._optimize)  # may refuse it
        multiplies = True
        try:
            model = load_model(self._written).model
            multiplies = multiplies_codes(model)
            count = make_unsigned(model)
            if count == 0:
                return session
            self.source = _data_of(model)
            session = self._opened(self.source, optimize=self._optimize)
            self.note = f"onnxruntime runs with uint8 instead of int8 codes ({count} rewritten): {_SATURATION}"
        except (CompileError, ReferenceFailed) as error:
            reason = f"{_SATURATION}, and the rewrite of the model failed ({first_line(error)})"
            if multiplies:
                session = _NumpySession(self._written)
                self.note = f"NumPy runs the model instead of onnxruntime: {reason}"
            else:
                session = self._opened(self._written, optimize=False)
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
    [product] = OnnxruntimeSession(model.SerializeToString(), optimize=False).prepared(factors)()
    return bool(product[0, 0] != 2 * 255 * 127)


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


class _NumpySession:
    """A model in the onnx package's evaluator, which uses NumPy and adds in 32 bits."""

    def __init__(self, source: Written) -> None:
        from onnx.reference import ReferenceEvaluator

        data = source if isinstance(source, str | bytes) else _data_of(source)
        try:
            self._evaluator = ReferenceEvaluator(data)
        except Exception as error:  # its operators raise any exception
            message = f"the onnx package's evaluator refuses the model: {first_line(error)}"
            raise ReferenceFailed(message) from error
        self.inputs, self.outputs = list(self._evaluator.input_names), list(self._evaluator.output_names)

    def prepared(self, inputs: Mapping[str, Any]) -> Callable[[], Sequence[Any]]:
        given = dict(inputs)
        return lambda: list(self._evaluator.run(None, given))


_Session = OnnxruntimeSession | _NumpySession


def _source(model: str | PathLike[str] | bytes | onnx.ModelProto | ir.Model) -> Written:
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | PathLike):
        path = str(model)
        try:
            path.encode()
        except UnicodeEncodeError:
            return _contents(Path(path))
        return path
    import onnx
    import onnx_ir as ir

    if isinstance(model, ir.Model):
        return model
    validate_instance("model", model, onnx.ModelProto, "a path, bytes or an onnx.ModelProto")
    data: bytes = model.SerializeToString()
    return data


def _contents(path: Path) -> bytes:
    """The bytes of a model's file, with all of its weights, for a path with bytes that are not UTF-8.

    Raises:
        ReferenceFailed: the file or its weights cannot be read, or are too large to be passed in memory.
    """
    from compiler.frontend.external import files_of_weights
    from compiler.frontend.load import LARGEST, load_model

    why = "onnxruntime does not accept a path that is not UTF-8, and the model cannot be passed in memory"
    try:
        if path.stat().st_size > LARGEST:
            raise ReferenceFailed("it is larger than 2 GiB")
        return _data_of(load_model(path).model) if files_of_weights(path) else path.read_bytes()
    except (CompileError, OSError, ReferenceFailed) as error:
        raise ReferenceFailed(f"{why}: {first_line(error)}") from error


def _failed(error: Exception) -> ReferenceFailed:
    return ReferenceFailed(f"onnxruntime fails on these inputs: {first_line(error)}")
