"""Bindings of inputs and outputs to memory, with the interface of onnxruntime's `IOBinding`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compiler.ir.dtypes import name_of
from compiler.ort.arrays import array_at, check_fit, contiguous
from compiler.ort.elements import dtype_of, tensor_type
from compiler.ort.names import Partial
from compiler.ort.values import OrtValue, check_device_type

__all__ = ["IOBinding"]


class _DeviceBuffer:
    """A tensor at an address of a GPU's memory."""

    def __init__(self, address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
        self.dtype, self.shape = dtype, tuple(shape)
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": self.shape,
            "typestr": dtype.str,
            "version": 2,
        }


class IOBinding(Partial):
    """The inputs of a run, and the memory for its outputs. `InferenceSession.io_binding` makes this object.

    A run reads the inputs in place. If an output has a buffer, the run copies the output into it after the last step.
    As in onnxruntime, methods raise RuntimeError if a name, a dtype or a shape does not fit.
    """

    def __init__(self, session: object, inputs: set[str], outputs: Mapping[str, str], device: str) -> None:
        self.session = session
        self._names, self._types, self._device = inputs, outputs, device
        self._inputs: dict[str, Any] = {}
        self._places: dict[str, str] = {}
        """The device of each output."""
        self._buffers: dict[str, np.ndarray[Any, Any]] = {}
        """The memory of outputs that are copied into it. For the others, each run makes new tensors."""
        self._found: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray[Any, Any]) -> None:
        """Bind an input to an array, which later runs read again."""
        self._inputs[self._input(name)] = contiguous(arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Bind an input to memory of the CPU or of the session's GPU, which the caller keeps."""
        if self._place(device_type, device_id) == "cpu":
            self._inputs[self._input(name)] = array_at(buffer_ptr, element_type, shape)
        else:
            self._inputs[self._input(name)] = _DeviceBuffer(buffer_ptr, dtype_of(element_type), shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value."""
        self._inputs[self._input(name)] = ortvalue.value

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to a device, or to memory of the CPU, which the caller keeps.

        Raises:
            ValueError: there is a buffer without a type and a shape.
            NotImplementedError: the buffer is on a GPU.
        """
        place = self._place(device_type, device_id)
        if buffer_ptr is None:
            self._places[self._output(name)] = place
            self._buffers.pop(name, None)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        if place != "cpu":
            advice = "leave out the buffer, and read IOBinding.get_outputs"
            raise NotImplementedError(f"IOBinding.bind_output: a run does not write to buffers on a GPU: {advice}")
        self._bind_buffer(name, array_at(buffer_ptr, element_type, shape))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to the memory of a tensor on the CPU.

        Raises:
            NotImplementedError: the value is on a GPU, or no tensor.
        """
        if not isinstance(ortvalue.value, np.ndarray):
            advice = "use bind_output(name, 'cuda'), and read IOBinding.get_outputs"
            raise NotImplementedError(f"IOBinding.bind_ortvalue_output takes only tensors on the CPU: {advice}")
        self._bind_buffer(name, ortvalue.value)

    def synchronize_inputs(self) -> None:
        """Do nothing: a run waits for its inputs."""

    def synchronize_outputs(self) -> None:
        """Do nothing: a run waits for its outputs."""

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        for held in (self._places, self._buffers, self._found):
            held.clear()

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order of their bindings."""
        return [OrtValue(self._last(name), self._types[name]) for name in self._places]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run, on the CPU."""
        return [_on_host(self._last(name)) for name in self._places]

    @property
    def bound_inputs(self) -> Mapping[str, Any]:
        """The values of the inputs by name."""
        return self._inputs

    @property
    def bound_outputs(self) -> list[str]:
        """The names of the outputs, in the order of their bindings."""
        return list(self._places)

    @property
    def keeps_on_device(self) -> bool:
        """Whether an output stays on the session's GPU."""
        return "cuda" in self._places.values()

    def store(self, found: Mapping[str, Any]) -> None:
        """Take the outputs of a run, and copy each output that has a buffer into its buffer.

        Raises:
            RuntimeError: an output does not fit its buffer. No buffer has changed.
        """
        found = {
            name: found[name] if place == "cuda" else _on_host(found[name]) for name, place in self._places.items()
        }
        for name, buffer in self._buffers.items():
            check_fit(buffer, found[name], f"Error in execution: output {name!r}")
        for name, buffer in self._buffers.items():
            buffer[...] = found[name]
        self._found = {**found, **self._buffers}

    def _last(self, name: str) -> Any:
        if name not in self._found:
            raise RuntimeError(f"output {name!r} has no value yet: call InferenceSession.run_with_iobinding first")
        return self._found[name]

    def _input(self, name: str) -> str:
        if name not in self._names:
            raise RuntimeError(f"there is no input {name!r}; the inputs are {', '.join(sorted(self._names))}")
        return name

    def _output(self, name: str) -> str:
        if name not in self._types:
            raise RuntimeError(f"Invalid output name: {name}; the outputs are {', '.join(self._types)}")
        return name

    def _bind_buffer(self, name: str, buffer: np.ndarray[Any, Any]) -> None:
        declared, found = self._types[self._output(name)], tensor_type(name_of(buffer))
        if declared not in (found, f"optional({found})"):
            raise RuntimeError(f"output {name!r}: expected {declared}, found a buffer of {found}")
        self._places[name], self._buffers[name] = "cpu", buffer

    def _place(self, device_type: str, device_id: int) -> str:
        """The type of a device, if the session can use it."""
        check_device_type(device_type)
        place = "cuda" if device_id == 0 else f"cuda:{device_id}"
        if device_type == "cuda" and place != self._device:
            raise RuntimeError(
                f"the session runs on {self._device}, not on {place}: pass providers to InferenceSession"
            )
        return device_type


def _on_host(value: Any) -> Any:
    """A value of an output, copied to the CPU if it is on a GPU."""
    return value if value is None or isinstance(value, np.ndarray | list) else value.numpy()
