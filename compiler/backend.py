"""The compiler as a backend of the onnx package: `compiler.backend.prepare(model).run(inputs)`.

See https://onnx.ai/onnx/repo-docs/ImplementingAnOnnxBackend.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from compiler.errors import CompileError, DeviceError
from compiler.ir import onnx_schema
from compiler.pipeline import compile
from compiler.runtime.session import Session, load

__all__ = ["CandleBackend", "PreparedModel", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class PreparedModel(BackendRep):
    """A compiled model, ready to run."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in order. `inputs` is one value, a sequence in the model's order, or a dict by name.

        Raises:
            InputError, RunError: as `Session.run`.
            ValueError: the sequence is shorter or longer than the model's inputs.
        """
        names = [info.name for info in self.session.inputs]
        if not isinstance(inputs, Mapping):
            given = inputs if isinstance(inputs, list | tuple) else [inputs]
            if len(given) != len(names):
                raise ValueError(f"inputs: expected {len(names)} ({', '.join(names)}), found {len(given)}")
            inputs = dict(zip(names, given, strict=True))
        outputs = self.session.run(inputs)
        results: tuple[Any, ...] = namedtupledict("Outputs", list(outputs))(*outputs.values())
        return results


class CandleBackend(Backend):
    """The backend: it compiles models and runs their plans."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the compiler supports the model, and plans can run on the device."""
        try:
            compile(model)
        except CompileError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Compiles a model for a device.

        Raises:
            CompileError: the model is refused.
            DeviceError: the device cannot be used.
        """
        return PreparedModel(load(compile(model), device.split(":")[0].lower()))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node of the opset `opset_version`. The default is the newest opset.

        `inputs` are the node's inputs in order, without absent ones. If the node reads a value twice, it may appear
        once.

        Raises:
            ValueError: the node has another number of inputs, or one input has two different arrays.
        """
        given = _by_name(
            node, [np.asarray(each) for each in (inputs if isinstance(inputs, list | tuple) else [inputs])]
        )
        opset = int(kwargs.get("opset_version", onnx_schema.NEWEST))
        return cls.run_model(_model_of(node, given, opset), given, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether plans can run on the device: `CPU`, or `CUDA` if there is a GPU and its module is installed."""
        try:
            load(compile(_SMALLEST), device.split(":")[0].lower())
        except DeviceError:
            return False
        return True


def _by_name(node: onnx.NodeProto, given: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays by the names of the node's inputs."""
    names = [name for name in node.input if name]
    distinct = list(dict.fromkeys(names))
    if len(given) not in (len(names), len(distinct)):
        raise ValueError(f"{node.op_type} reads {len(names)} inputs, but the caller passed {len(given)}")
    by_name: dict[str, np.ndarray] = {}
    for name, array in zip(names if len(given) == len(names) else distinct, given, strict=True):
        if by_name.setdefault(name, array).tobytes() != array.tobytes():
            raise ValueError(f"the input {name!r} has two different arrays: pass one array")
    return by_name


def _model_of(node: onnx.NodeProto, inputs: Mapping[str, np.ndarray], opset: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "node",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(node.domain, 1)] if node.domain else []
    return helper.make_model(graph, opset_imports=imports)


_SMALLEST = _model_of(helper.make_node("Neg", ["x"], ["y"]), {"x": np.zeros(1, np.float32)}, onnx_schema.NEWEST)

is_compatible = CandleBackend.is_compatible
prepare = CandleBackend.prepare
run_model = CandleBackend.run_model
run_node = CandleBackend.run_node
supports_device = CandleBackend.supports_device
