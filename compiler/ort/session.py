"""Sessions with the interface of onnxruntime's `InferenceSession`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from compiler.errors import DeviceError, Error, InputError, RunError
from compiler.ir.dtypes import numpy_dtype
from compiler.ort.arrays import from_list
from compiler.ort.binding import IOBinding
from compiler.ort.capi.onnxruntime_pybind11_state import InvalidArgument
from compiler.ort.elements import NodeArg, node_args, symbols_of
from compiler.ort.errors import of_run
from compiler.ort.model import ModelMetadata, opened
from compiler.ort.names import Partial
from compiler.ort.options import RunOptions, SessionOptions
from compiler.ort.providers import CPU, CUDA, device_of
from compiler.ort.values import OrtValue
from compiler.validate import validate_instance, validate_mapping, validate_names

__all__ = ["InferenceSession"]

Providers = Sequence[str | tuple[str, Mapping[Any, Any]]]


class InferenceSession(Partial):
    """A compiled model or a loaded plan, ready to run. Several threads may run it at the same time.

    Compiling a model takes longer than loading a plan: compile it once, and pass the plan.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open an ONNX model or a plan, a path or bytes.

        Raises:
            NoSuchFile: the file does not exist.
            InvalidProtobuf, InvalidArgument: it is neither a model nor a plan.
            InvalidGraph, NotImplemented, Fail: the compiler refuses the model.
            RuntimeError: a provider is unknown or cannot be used. There is no fallback.
            NotImplementedError: an option is not supported.
            TypeError, ValueError: an argument has a wrong type or value.
        """
        self._options = sess_options or SessionOptions()
        validate_instance("sess_options", self._options, SessionOptions, "compiler.ort.SessionOptions")
        _check_other_arguments(kwargs)
        if providers is None and self._options.has_providers():
            providers = self._options.providers
        self._device = device_of(providers, provider_options)
        try:
            found = opened(path_or_bytes, self._options, self._device)
        except DeviceError as error:
            raise RuntimeError(f"{error}. A session of compiler.ort does not fall back to other providers") from error
        self._session, self._metadata = found.session, found.metadata
        symbols = symbols_of(self._session.inputs)
        self._inputs = node_args(self._session.inputs, symbols, {})
        self._outputs = node_args(self._session.outputs, symbols, found.shapes)
        self._required = [info.name for info in self._session.inputs if info.kind != "optional"]
        tensors = (info for info in self._session.inputs if "sequence" not in (info.kind, info.holds))
        self._tensors = {info.name: numpy_dtype(info.dtype) for info in tensors}

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return an empty list, because the compiler makes initializers constants."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options of the session."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return the providers. With CUDA, the CPU is also in the list, for steps without a GPU kernel."""
        return [CPU] if self._device == "cpu" else [CUDA, CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider."""
        number = self._device.partition(":")[2] or "0"
        return {name: {"device_id": number} if name == CUDA else {} for name in self.get_providers()}

    def set_providers(
        self, providers: Providers | None = None, provider_options: Sequence[Mapping[Any, Any]] | None = None
    ) -> None:
        """Accept the providers that the session has.

        Raises:
            NotImplementedError: the providers are for another device.
            RuntimeError, ValueError: as the constructor.
        """
        if device_of(providers, provider_options) != self._device:
            raise NotImplementedError("a session cannot change its device: pass the providers to InferenceSession")

    def disable_fallback(self) -> None:
        """Do nothing: a session never falls back to other providers."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model, and return the outputs with these names. Without names, return all outputs.

        Tensors are NumPy arrays, sequences are lists, and an empty optional is `None`.

        Raises:
            ValueError: an input is missing.
            InvalidArgument: an input is unknown or does not fit, or an output is unknown.
            Fail: a step failed, or `run_options.terminate` is set.
            TypeError: an argument has a wrong type.
        """
        self._check_complete(input_feed)
        return self._run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same as `run`, with values of the class `OrtValue`."""
        for value in input_dict_ort_values.values():
            validate_instance("input_dict_ort_values", value, OrtValue, "a dict of OrtValue by name")
        types = {arg.name: arg.type for arg in self._outputs}
        found = self.run(output_names, input_dict_ort_values, run_options)
        names = output_names or list(types)
        return [OrtValue(value, types[name]) for name, value in zip(names, found, strict=True)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in another thread, which calls `callback(outputs, user_data, error)` at the end.

        After an error, the outputs are an empty list, and `error` is its message. Otherwise, `error` is empty. Nobody
        may write to an input before the callback.

        Raises:
            ValueError: an input is missing.
        """
        self._check_complete(input_feed)

        def work() -> None:
            try:
                found, error = self._run(output_names, input_feed, run_options), ""
            except Exception as raised:
                found, error = [], str(raised)
            callback(found, user_data, error)

        threading.Thread(target=work, name="compiler.ort.run_async").start()

    def io_binding(self) -> IOBinding:
        """A new binding of inputs and outputs."""
        types = {arg.name: arg.type for arg in self._outputs}
        return IOBinding(self, {arg.name for arg in self._inputs}, types, self._device)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run with the inputs of a binding, and store its outputs there.

        Raises:
            ValueError: the binding belongs to another session.
            RuntimeError: the run failed, or an output does not fit its buffer.
        """
        if iobinding.session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        names = iobinding.bound_outputs
        if not names:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        try:
            found = self._compute(names, iobinding.bound_inputs, run_options, on_device=iobinding.keeps_on_device)
        except Error as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        iobinding.store(found)

    def _compute(
        self,
        names: Sequence[str] | None,
        inputs: Mapping[str, Any],
        run_options: RunOptions | None = None,
        *,
        on_device: bool = False,
    ) -> dict[str, Any]:
        """The outputs of these names, or all, on the session's device if asked for.

        Raises: as `run`, but InvalidArgument if an input is missing.
        """
        if run_options is not None:
            validate_instance("run_options", run_options, RunOptions, "compiler.ort.RunOptions")
        given = {name: self._given(name, value) for name, value in inputs.items()}
        cancel = None if run_options is None else self._session.new_cancel()
        until = nullcontext() if run_options is None or cancel is None else run_options.ends(cancel)
        try:
            with until:
                return self._session.run(given, names, device_outputs=on_device, cancel=cancel)
        except (InputError, RunError, DeviceError) as error:
            raise of_run(error) from error

    def _check_complete(self, inputs: Mapping[str, Any]) -> None:
        validate_mapping("input_feed", inputs, "a dict of arrays by name")
        if missing := [name for name in self._required if name not in inputs]:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(inputs)}).")

    def _run(self, names: Sequence[str] | None, inputs: Mapping[str, Any], options: RunOptions | None) -> list[Any]:
        """The outputs of these names, or all."""
        known = [arg.name for arg in self._outputs]
        if names:
            validate_instance("output_names", names, Sequence, "a list of names")
            validate_names("output_names", names)
            for name in names:
                if name not in known:
                    raise InvalidArgument(f"Invalid output name: {name}; the outputs are {', '.join(known)}")
        found = self._compute(names or None, inputs, options)
        return [found[name] for name in names or known]

    def _given(self, name: str, value: Any) -> Any:
        """Convert a value of `run` to an input of the session: unwrap an `OrtValue`, and make a list an array."""
        if isinstance(value, OrtValue):
            return value.value
        if isinstance(value, list) and name in self._tensors:
            return from_list(name, value, self._tensors[name])
        return value


def _check_other_arguments(arguments: Mapping[str, Any]) -> None:
    """Check the arguments of the constructor that onnxruntime does not declare."""
    for name, value in arguments.items():
        if name not in ("enable_fallback", "read_config_from_model", "disabled_optimizers"):
            raise TypeError(f"InferenceSession has no argument {name!r}")
        if name == "disabled_optimizers" and value:
            advice = "compile the model with compiler.Options(skip_passes=[…])"
            raise NotImplementedError(f"InferenceSession: disabled_optimizers is not supported: {advice}")
        if name == "read_config_from_model" and int(value):
            raise NotImplementedError("InferenceSession: read_config_from_model is not supported: leave it out")
