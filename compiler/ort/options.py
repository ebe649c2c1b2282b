"""The options of sessions and of runs, and their enumerations."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import numpy as np

from compiler import _runtime
from compiler.ort.capi.onnxruntime_pybind11_state import Fail
from compiler.ort.names import CONFIGURATION, REFUSED, Partial
from compiler.validate import LARGEST, validate_instance, validate_whole_number

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]


class GraphOptimizationLevel(IntEnum):
    """The optimizations: `ORT_DISABLE_ALL` disables the optional passes, and every other level runs all of them."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Has no effect: steps run one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """The order of steps."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options(Partial):
    """Attributes with fixed names and types. The class has their defaults. Any other name or value is refused."""

    def __setattr__(self, name: str, value: Any) -> None:
        owner, default = type(self).__name__, getattr(type(self), name, None)
        if not isinstance(default, bool | int | str):
            raise AttributeError(f"compiler.ort.{owner} has no attribute {name!r}")
        value = _as_kind_of(f"{owner}.{name}", default, value)
        if value != default and (advice := REFUSED.get(f"{owner}.{name}")):
            raise NotImplementedError(f"{owner}.{name} = {value!r} is not supported: {advice}")
        self.__dict__[name] = value


def _as_kind_of(argument: str, default: Any, value: Any) -> Any:
    """The value, converted to the class of the default.

    Raises:
        TypeError: it has another class.
        ValueError: it is a negative number of threads.
    """
    kind = type(default)
    if kind is bool and isinstance(value, bool | int | np.bool_):
        return bool(value)
    if kind is int and not isinstance(value, bool):
        return validate_whole_number(argument, value, 0 if "threads" in argument else -(2**31), 2**31 - 1)
    if isinstance(value, kind):
        return value
    raise TypeError(f"{argument}: expected {kind.__name__}, found {value!r}")


class SessionOptions(_Options):
    """The options of a session. docs/onnxruntime.md says what each attribute and method does.

    Setting an attribute raises AttributeError if its name is unknown, TypeError if the value has another class, and
    NotImplementedError if the value is not supported.
    """

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True

    dimensions: dict[str, int]
    """The sizes of `add_free_dimension_override_by_name`."""
    providers: list[tuple[str, dict[str, str]]]
    """The providers of `add_provider`."""
    _configuration: dict[str, str]

    def __init__(self) -> None:
        self.__dict__.update(dimensions={}, providers=[], _configuration={})

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the size of a symbolic dimension when the model is compiled."""
        validate_instance("name", name, str, "the name of a dimension")
        self.dimensions[name] = validate_whole_number("size", size, 0, LARGEST - 1)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a key of the configuration.

        Raises:
            NotImplementedError: the key is not supported, because it might change results or memory.
        """
        for text in (key, value):
            validate_instance("add_session_config_entry", text, str, "a text")
        if key not in CONFIGURATION:
            raise NotImplementedError(f"the key {key!r} is not supported: the keys are {', '.join(CONFIGURATION)}")
        self._configuration[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of a key.

        Raises:
            RuntimeError: the key is not set.
        """
        if key not in self._configuration:
            raise RuntimeError(f"SessionOptions has no configuration with the key {key!r}")
        return self._configuration[key]

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Add a provider, for sessions that are made without the argument `providers`."""
        self.providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Whether `add_provider` was called."""
        return bool(self.providers)

    @property
    def refuses_host_steps(self) -> bool:
        """Whether a session refuses a plan if the GPU lacks a kernel for one of its steps."""
        return self._configuration.get("session.disable_cpu_ep_fallback") == "1"


class RunOptions(_Options):
    """The options of runs. Any thread may set `terminate`, which ends the runs that have these options.

    Raises: as `SessionOptions`.
    """

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False

    _lock: threading.Lock
    _running: list[_runtime.Cancel]

    def __init__(self) -> None:
        self.__dict__.update(_lock=threading.Lock(), _running=[])

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self.terminate:
            with self._lock:
                for cancel in self._running:
                    cancel.set()

    @contextmanager
    def ends(self, cancel: _runtime.Cancel) -> Iterator[None]:
        """Let `terminate` end the run that has the object `cancel`.

        Raises:
            Fail: `terminate` is set, or was set during the run.
        """
        with self._lock:
            self._running.append(cancel)
        try:
            self._check()
            yield
        except RuntimeError:
            self._check()
            raise
        finally:
            with self._lock:
                self._running.remove(cancel)

    def _check(self) -> None:
        if self.terminate:
            raise Fail("the run ended because RunOptions.terminate is set")
