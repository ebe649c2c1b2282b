"""Runs a plan: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from compiler import _runtime
from compiler.errors import DeviceError, Error, InputError, PlanError, RunError
from compiler.ir.symbols import shown
from compiler.plan import Plan, TensorInfo
from compiler.plan.plan import MODEL, unsound
from compiler.runtime.devices import open_extension
from compiler.runtime.prepared import Prepared
from compiler.validate import LARGEST, validate_instance, validate_mapping, validate_whole_number

__all__ = ["Peaks", "PlacedStep", "Session", "StepTime", "load", "placed_steps", "refuse_missing"]

Memory = Literal["full", "low"]
"""How much memory what is made of constants may take: as makes a run fastest, or about as much as they themselves."""


def load(
    plan: Plan | str | os.PathLike[str],
    device: str = "cpu",
    threads: int | None = None,
    strict_device: bool = False,
    *,
    max_memory: int | None = None,
    memory: Memory = "full",
) -> Session:
    """Prepares a plan, or the plan file of this name, for running.

    `device` is "cpu", "cuda" (the first GPU; "cuda:1" is the second), or "auto": CUDA where it can be used, else the
    processor; the session's `device` says which, and its `fallback_reason` why the processor. `threads` is the number
    of threads of a run, from 1 to 1024, by default one for each processor. With `strict_device` no step runs on the
    host for want of a kernel on the device. `max_memory` is the most bytes that values may hold at once in a run,
    beside the constants; where the plan has such a bound too (`Options`), the lower one counts. With `memory` "low",
    weights are packed in no form that is larger than they are, and convolutions take longer.

    Large constants of a plan file are read from it while the session lives: another file may be put in its place
    (`Plan.save` and `candlec compile` do so), but nobody may write into it. `load(Plan.load(path))` holds a copy.

    Raises:
        PlanError: the file is not a sound plan.
        DeviceError: the device cannot be used, or lacks a kernel under `strict_device`.
        OSError: the file cannot be read.
        TypeError, ValueError: an argument is something else; there cannot be so many threads.
    """
    validate_instance("plan", plan, (Plan, str, os.PathLike), "a compiler.Plan or the path of a plan file")
    validate_instance("device", device, str, "the name of a device")
    if isinstance(plan, Plan):
        return Session(plan, device, threads, strict_device, max_memory=max_memory, memory=memory)
    with open(plan, "rb") as file:  # noqa: PTH123 (pathlib takes the empty path for the working folder)
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe is read once
            return Session(Plan(file.read()), device, threads, strict_device, max_memory=max_memory, memory=memory)
        first = file.read(len(MODEL))
    try:
        return Session(plan, device, threads, strict_device, max_memory=max_memory, memory=memory)
    except PlanError as error:
        raise unsound(plan, first, error.violations) from None


def placed_steps(plan: Plan) -> list[PlacedStep]:
    """Where every step of a plan would run on a GPU, which need not be there."""
    return [PlacedStep(**item) for item in json.loads(_runtime.placed_steps(plan.data))]


@dataclass(frozen=True)
class StepTime:
    """What one step took, in all runs together, and what it had to do.

    `operations` are the multiplications and additions of its op's formula, 0 for one that memory bounds; `bytes` are
    those that it reads and writes. Both are `None` where the op does not tell, or a size is not known.

    `alive_bytes` are the most that the values of the run took while the step ran, constants aside: counted in the run,
    and not what `PreparedStep.alive_bytes` says before it.

    `kernel`, `program` and `packed_bytes` are those of `PreparedStep`, `host` is that of `PlacedStep`. A step of a GPU
    is waited for, which a run does not do; what moves values there and back is a step `Transfer`.

    A step of a block that a step of depth `n` runs has depth `n + 1`, and its time is part of that step's.
    """

    op: str
    origin: str
    depth: int
    calls: int
    seconds: float
    operations: int | None = None
    bytes: int | None = None
    alive_bytes: int = 0
    kernel: str | None = None
    program: str | None = None
    packed_bytes: int = 0
    host: Literal["nature", "no_kernel"] | None = None


@dataclass(frozen=True)
class PlacedStep:
    """Where a step runs: on the session's device, or on the host, though that is another.

    `host` is then "nature" for what belongs there (control flow, texts, arithmetic of sizes), and "no_kernel" for what
    the device cannot do; `bytes` are those that move for want of a kernel, `None` where a size is not known before a
    run.
    """

    op: str
    origin: str
    host: Literal["nature", "no_kernel"] | None = None
    bytes: int | None = 0


def refuse_missing(device: str, steps: Sequence[PlacedStep]) -> None:
    """What is said of steps that the device has no kernel for, where the host must not run them.

    Raises:
        DeviceError: there is one.
    """
    missing = [step for step in steps if step.host == "no_kernel"]
    if missing:
        others = len(missing) - 1
        raise DeviceError(
            f'device "{device}": it has no kernel for {missing[0].op} from {missing[0].origin}'
            + (f", nor for {others} other step{'s' * (others > 1)}" if others else "")
            + f"; without strict_device the host runs {'them' if others else 'it'}"
        )


@dataclass(frozen=True)
class Peaks:
    """The most operations and bytes of memory a second."""

    operations: float
    bytes: float


class Session:
    """A prepared plan. `run` may be called from many threads at once.

    `device` is the one that was taken, and `fallback_reason` why that is the processor, where "auto" was asked for.
    """

    def __init__(
        self,
        plan: Plan | str | os.PathLike[str],
        device: str = "cpu",
        threads: int | None = None,
        strict_device: bool = False,
        *,
        max_memory: int | None = None,
        memory: Memory = "full",
    ) -> None:
        if threads is not None:
            threads = validate_whole_number("threads", threads, 1, _runtime.MAX_THREADS)
        if max_memory is not None:
            max_memory = validate_whole_number("max_memory", max_memory, 0, LARGEST - 1)
        if memory not in get_args(Memory):
            raise ValueError(f'memory: expected "full" or "low", found {memory!r}')
        source = plan.data if isinstance(plan, Plan) else os.fspath(plan)
        options = (threads, max_memory, memory == "low")
        self.fallback_reason: str | None = None
        try:
            self._module, self._runtime = _opened("cuda" if device == "auto" else device, source, options)
        except DeviceError as error:
            if device != "auto":
                raise
            self.fallback_reason = str(error)
            self._module, self._runtime = _opened("cpu", source, options)
        self.inputs = _infos(self._runtime.inputs)
        self.outputs = _infos(self._runtime.outputs)
        self._names = frozenset(info.name for info in self.inputs)
        self.device: str = self._runtime.device
        self.threads: int = self._runtime.threads
        if strict_device:
            refuse_missing(self.device, self.host_steps)

    @cached_property
    def placed_steps(self) -> list[PlacedStep]:
        """The plan's steps and those of its blocks, with where they run."""
        return [PlacedStep(**item) for item in json.loads(self._runtime.placed_steps)]

    @property
    def host_steps(self) -> list[PlacedStep]:
        """The steps that run on the host, where that is not the session's device."""
        return [step for step in self.placed_steps if step.host]

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{info.name}: {info}" for info in infos) for infos in (self.inputs, self.outputs))
        return f"Session({inputs} → {outputs}; {self.device}, {self.threads} thread{'s' * (self.threads > 1)})"

    def run(self, inputs: Mapping[str, Any], *, device_outputs: bool = False) -> dict[str, Any]:
        """The outputs by name, in the plan's order.

        Tensors are NumPy arrays, sequences lists, an empty optional `None`.

        With CUDA, an input may be a tensor on the session's device, of any library that offers DLPack or
        `__cuda_array_interface__`: it is not copied, unless its elements do not stand in rows without gaps. Nobody may
        write it before `run` returns. With `device_outputs`, tensors stay on the device, as objects with `shape`,
        `dtype`, `device` and `numpy()`, which offer both of these interfaces and are inputs of other runs. Their
        elements are there when `run` returns. The processor is its own host: there both change nothing.

        A signal's handler that raises, as that of Ctrl-C does, ends the run; handlers are called in the main thread.

        Raises:
            InputError: an input is missing, unknown, or of another dtype or shape than the plan declares.
            RunError: a step failed.
            TypeError: the inputs are not a dict.
        """
        given = self._given(inputs)
        try:
            outputs: dict[str, Any] = self._runtime.run(given, device_outputs)
        except failures(self._module) as error:
            raise own_error(self._module, error) from None
        return outputs

    def profile(self, inputs: Mapping[str, Any], runs: int = 10) -> list[StepTime]:
        """What every step takes, in the plan's order, over `runs` runs after a first one.

        Raises: as `run`.
        """
        runs = validate_whole_number("runs", runs, 1, 2**32)
        given = self._given(inputs)
        try:
            steps = json.loads(self._runtime.profile(given, runs))
        except failures(self._module) as error:
            raise own_error(self._module, error) from None
        return [StepTime(**item) for item in steps]

    def prepared(self) -> Prepared:
        """What was decided before a run: kernels, layouts, and what is alive at once."""
        return Prepared.from_json(json.loads(self._runtime.prepared()))

    def peaks(self) -> Peaks:
        """What the processor can do at most with as many threads as a run uses. Each call measures it, for a moment."""
        return Peaks(*self._runtime.peaks())

    def _given(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs, none of them unknown or missing."""
        if type(inputs) is dict and inputs.keys() == self._names:
            return inputs
        validate_mapping("inputs", inputs, "a dict of arrays by name")
        for name in inputs:
            if name not in self._names:
                raise InputError(name, "one of " + ", ".join(info.name for info in self.inputs), "an unknown name")
        for info in self.inputs:
            if info.name not in inputs and info.kind != "optional":
                raise InputError(info.name, str(info), "nothing")
        return dict(inputs)


def _opened(device: str, source: Any, options: tuple[Any, ...]) -> tuple[Any, Any]:
    """The extension that runs plans on a device, and its session."""
    module, name = open_extension(device)
    try:
        return module, module.Session(source, name, *options)
    except failures(module) as error:
        raise own_error(module, error) from None


def failures(module: Any) -> tuple[type[Exception], ...]:
    """What an extension raises."""
    return module.PlanError, module.DeviceError, module.InputError, module.RunError, module.OpError


def own_error(module: Any, error: Exception) -> Error:
    """An error of an extension, as this package names it."""
    match error:
        case module.PlanError():
            return PlanError(error.args[0])
        case module.InputError():
            return InputError(*map(shown, error.args))
        case module.RunError():
            return RunError(*error.args)
        case _:  # of the device, or of no step
            return DeviceError(*error.args)


def _infos(text: str) -> list[TensorInfo]:
    return [TensorInfo.from_json(item["name"], item["type"]) for item in json.loads(text)]
