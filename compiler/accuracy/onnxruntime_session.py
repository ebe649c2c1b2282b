"""A model in onnxruntime on the CPU, without changes of the model."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from compiler.accuracy.onnxruntime_values import converted, is_beyond_numpy, to_array, to_value
from compiler.errors import CompileError, Error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import onnx_ir as ir

    Written = str | bytes | ir.Model

__all__ = ["OnnxruntimeSession", "ReferenceFailed", "ReferenceMissing", "Written", "first_line", "missing"]


_SMALL = 1 << 10
"""The most bytes of a weight that may hold sizes."""


class ReferenceMissing(Error):
    """The reference is not installed."""


class ReferenceFailed(Error):
    """The reference refuses the model, or fails to run it."""


class OnnxruntimeSession:
    """A session of onnxruntime. Its inputs and outputs are arrays of the declared dtypes, even dtypes that NumPy lacks.

    `source` is a path, the bytes of a file, or a model whose weights may be in other files. With `lean`, onnxruntime
    makes no packed copies of weights, and reads the weights in other files from these files.

    Raises:
        ReferenceMissing: onnxruntime is not installed.
        ReferenceFailed: onnxruntime refuses the model.
    """

    def __init__(self, source: Written, threads: int = 1, *, optimize: bool = True, lean: bool = False) -> None:
        runtime = _onnxruntime()
        options = runtime.SessionOptions()
        if not optimize:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if lean:
            options.add_session_config_entry("session.disable_prepacking", "1")
        read = source if isinstance(source, str | bytes) else _bytes_of(source, options)
        try:
            self._session = runtime.InferenceSession(read, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class for each status code
            reason = first_line(error)
            message = f"onnxruntime refuses the model: {reason}{_dtypes_without_kernel(reason, source)}"
            raise ReferenceFailed(message) from error
        outputs = self._session.get_outputs()
        self._declared = {each.name: each.type for each in self._session.get_inputs()}
        self.inputs, self.outputs = list(self._declared), [each.name for each in outputs]
        self._has_values = any(is_beyond_numpy(each.type) for each in outputs)
        types = {*self._declared.values(), *(each.type for each in outputs)}
        self._has_only_numbers = all(each.startswith("tensor(") for each in types) and "tensor(string)" not in types

    def prepared(self, inputs: Mapping[str, Any]) -> Callable[[], Sequence[Any]]:
        """A run of these inputs, which returns the outputs in order. This call converts the inputs, and no run does.

        Raises:
            Exception: onnxruntime does not take such inputs; a run raises the same.
        """
        if not self._has_values:
            given = {name: converted(value) for name, value in inputs.items()}
            return lambda: self._session.run(None, given)
        values = {  # a value for an absent optional would crash onnxruntime
            name: to_value(value, self._declared.get(name, "")) for name, value in inputs.items() if value is not None
        }
        if not self._has_only_numbers:
            return lambda: [to_array(each) for each in self._session.run_with_ort_values(None, values)]
        if absent := [name for name in self.inputs if name not in values]:
            raise ValueError(f"missing: {', '.join(absent)}")  # a binding does not check this
        binding = self._session.io_binding()  # faster; it would crash with sequences
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        return functools.partial(self._run_bound, binding, values)

    def _run_bound(self, binding: Any, _: Mapping[str, Any]) -> list[Any]:
        """The outputs for the bound values. These are an argument because the binding does not hold their arrays."""
        for name in self.outputs:  # otherwise, this run would write to the outputs of the previous one
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        return [to_array(each) for each in binding.get_outputs()]


def missing() -> ReferenceMissing:
    """The error without onnxruntime."""
    return ReferenceMissing('this needs onnxruntime, which is not installed: run pip install "candle-compiler[check]"')


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return str(error).strip().partition("\n")[0]


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing() from None
    return onnxruntime


def _bytes_of(model: ir.Model, options: Any) -> bytes:
    """The bytes of a model without its large weights in other files. The options name the folder of these files.

    The function moves small weights from other files into the model: onnxruntime reads sizes only there.

    Raises:
        ReferenceFailed: the other weights are larger than 2 GiB, or the files are in several folders.
    """
    import onnx_ir as ir

    from compiler.frontend.tensors import tensors_in
    from compiler.ir.graph import graphs_of

    for graph in graphs_of(model.graph):
        for value in graph.initializers.values():
            if isinstance(tensor := value.const_value, ir.ExternalTensor) and tensor.nbytes <= _SMALL:
                value.const_value = ir.Tensor(tensor.numpy().copy(), dtype=tensor.dtype, name=tensor.name)
    folders = {str(each.base_dir) for _, each, _ in tensors_in(model) if isinstance(each, ir.ExternalTensor)}
    if len(folders) > 1:
        raise ReferenceFailed(f"the weights of the model are in several folders: {', '.join(sorted(folders))}")
    try:
        for folder in folders:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    except UnicodeEncodeError:  # onnxruntime takes only UTF-8
        model = ir.external_data.load_to_model(model)
    try:
        data: bytes = ir.to_proto(model).SerializeToString()
    except Exception as error:  # protobuf's EncodeError, which has no type stubs, or ValueError
        raise ReferenceFailed(f"the model without its weights in other files: {first_line(error)}") from error
    return data


def _dtypes_without_kernel(reason: str, source: Written) -> str:
    """The dtypes of an operator for which onnxruntime has no kernel, in words; empty for another reason."""
    named = re.search(r"Could not find an implementation for (\w+)\(\d+\)", reason)
    if named is None:
        return ""
    from compiler.frontend.load import load_model
    from compiler.ir.graph import nodes_of, type_text
    from compiler.passes.infer_shapes import infer_shapes

    try:
        model = load_model(source).model
        infer_shapes.run(model)
    except CompileError:
        return ""
    nodes = list(nodes_of(model))
    of_operator = [node for node in nodes if node.op_type == named[1]]
    values = [value for node in of_operator or nodes for value in (*node.inputs, *node.outputs) if value is not None]
    types = sorted({text for value in values if (text := type_text(value.type)) is not None})
    where = f"{named[1]} in the model" if of_operator else "the model"  # an operator of a function's body is not there
    return f" (dtypes of {where}: {', '.join(types)})" if types else ""
