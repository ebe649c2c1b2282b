"""Sessions, which run plans: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from compiler import _runtime
from compiler.errors import InputError
from compiler.plan import Plan, StateInfo, TensorInfo
from compiler.runtime.arguments import with_arguments_of
from compiler.runtime.custom import functions
from compiler.runtime.failures import failures, own_error, own_errors
from compiler.runtime.inputs import checked_inputs
from compiler.runtime.libraries import Library, delivered, validate_library, validate_places
from compiler.runtime.opening import opened, validate_loading
from compiler.runtime.prepared import Prepared
from compiler.runtime.state import State, checked_state, made
from compiler.runtime.steps import Peaks, PlacedStep, StepTime, refuse_missing
from compiler.runtime.weights import Weights, infos, loaded_again, source_of, validate_weights
from compiler.runtime.wrong_uses import refuse_wrong_use, validate_run
from compiler.validate import validate_names, validate_seconds, validate_whole_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from compiler.runtime.arguments import RunOptions

__all__ = ["Session", "load"]

Memory = Literal["full", "low"]
"""The memory for packed constants: "full" for the fastest run, "low" for about as much as the constants take."""


def load(
    plan: Plan | str | os.PathLike[str],
    device: str = "cpu",
    threads: int | None = None,
    strict_device: bool = False,
    *,
    max_memory: int | None = None,
    memory: Memory = "full",
    weights: Weights | None = None,
) -> Session:
    """Load a plan, and return a session that runs it. `plan` is a `Plan`, or the path of a plan file.

    `device` is "cpu", "cuda" (the first GPU; "cuda:1" is the second), or "auto": CUDA if it works, otherwise the CPU.
    The session's `device` holds the choice, and its `fallback_reason` the reason for the CPU. `threads` is the number
    of threads of a run, from 1 to 1024. By default, it is the number of processors that the affinity of the process and
    the quota of its cgroup allow. With `strict_device`, the session refuses a plan instead of falling back to the CPU.
    `max_memory` limits the bytes of all values of a run at one time, without the constants and without inputs that
    `Session.run` reads in place. If the plan has a limit too (`Options`), the lower one applies. With `memory` "low",
    the session skips the packed layouts that enlarge weights, which makes some convolutions slower. `weights` replace
    the weights of the plan, as in `Session.with_weights`.

    A session reads large constants from the plan file during its whole life. You may replace this file (`Plan.save` and
    `candlec compile` do so), but must not write into it. `load(Plan.load(path))` reads the whole file at once.

    Raises:
        PlanError: the file is not a valid plan.
        DeviceError: the device cannot be used, or lacks a kernel under `strict_device`.
        OSError: a file cannot be read.
        TypeError, ValueError: an argument has a wrong type or value, weights do not fit the plan, or there are too many
            threads.
    """
    threads, max_memory = validate_loading(plan, device, threads, max_memory)
    if memory not in get_args(Memory):
        raise ValueError(f'memory: expected "full" or "low", found {memory!r}')
    options = (threads, max_memory, memory == "low", validate_weights(weights), functions())
    session = Session.__new__(Session)._begin(*opened(plan, device, options))
    session._source, session._options = source_of(plan), options[:3]
    if strict_device:
        refuse_missing(session.device, session.host_steps)
    return session


Outputs = dict[str, Any]


class Session:
    """A prepared plan, which `load` returns. Several threads may call `run` at the same time.

    `device` is the device in use. If "auto" chose the CPU, `fallback_reason` says why.
    """

    device: str
    fallback_reason: str | None
    threads: int
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    _source: Callable[[], Any]
    _options: tuple[Any, ...]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Deprecated: `load` takes the same arguments."""
        warnings.warn("Session(…) is deprecated: use compiler.load(…)", DeprecationWarning, stacklevel=2)
        self.__dict__.update(load(*arguments, **options).__dict__)

    def _begin(self, module: Any, runtime: Any, fallback_reason: str | None = None) -> Session:
        self._module, self._runtime, self.fallback_reason = module, runtime, fallback_reason
        self._failures = failures(module)
        self.inputs, self.outputs = infos(runtime.inputs), infos(runtime.outputs)
        self._names = frozenset(info.name for info in self.inputs)
        self._positions = {info.name: at for at, info in enumerate(self.outputs)}
        self.device, self.threads = runtime.device, runtime.threads
        return self

    @cached_property
    def placed_steps(self) -> list[PlacedStep]:
        """Where each step of the plan runs, including the steps of nested blocks."""
        return [PlacedStep(**item) for item in json.loads(self._runtime.placed_steps)]

    @cached_property
    def constants(self) -> list[TensorInfo]:
        """The constants that have a name, without those of nested blocks. `weights` lists the replaceable ones."""
        return infos(self._runtime.constants)

    @cached_property
    def weights(self) -> list[TensorInfo]:
        """The weights of the model that the plan keeps under their names (`Options.keep_weights`)."""
        return infos(self._runtime.weights)

    @property
    def host_steps(self) -> list[PlacedStep]:
        """The steps that run on the host although the session has another device."""
        return [step for step in self.placed_steps if step.host]

    @cached_property
    def state(self) -> list[StateInfo]:
        """The pairs of the state: an output, and the input that takes its value; empty if the plan has no state."""
        return [StateInfo(*pair) for pair in self._module.State.pairs(self._runtime)]

    def __reduce__(self) -> NoReturn:
        send = "send the path of its plan, and load it in the other process"
        raise TypeError(f"a session cannot be pickled: {send}; in this process, clone() makes another session")

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{info.name}: {info}" for info in infos) for infos in (self.inputs, self.outputs))
        return f"Session({inputs} → {outputs}; {self.device}, {self.threads} thread{'s' * (self.threads > 1)})"

    def __call__(self, *inputs: Any, **options: Unpack[RunOptions]) -> Any:
        """Run the plan with its inputs in order, and return its only output, or a tuple of several outputs.

        The options are the same as in `run`. The caller may leave out optional inputs at the end. The caller leaves out
        inputs that a state holds.

        Raises: as `run`; also TypeError, if there are too many inputs.
        """
        declared = self._given(options.get("state"))
        if len(inputs) > len(declared):
            takes = "a run with a state takes" if options.get("state") else "the plan has"
            raise TypeError(f"{takes} {len(declared)} input{'s' * (len(declared) != 1)}, found {len(inputs)}")
        outputs = self.run({info.name: given for info, given in zip(declared, inputs, strict=False)}, **options)
        found = tuple(outputs.values())
        return found[0] if len(found) == 1 else found

    def clone(self, threads: int | None = None) -> Session:
        """Return a session that shares the plan, the device, the constants and their packed copies with this one.

        `threads` is the number of threads of its runs, by default that of this session. Runs of both sessions at the
        same time do not wait for each other, because each session has threads of its own.

        Raises:
            DeviceError: the threads do not start.
            TypeError, ValueError: `threads` is no whole number from 1 to 1024.
        """
        count = self.threads if threads is None else validate_whole_number("threads", threads, 1, _runtime.MAX_THREADS)
        session = Session.__new__(Session)
        session.__dict__.update(self.__dict__)
        with own_errors(self._module):
            session._runtime = self._runtime.clone(count)
        session.threads = count
        return session

    def with_weights(self, weights: Weights) -> Session:
        """Return a session with other weights: those of a safetensors or GGUF file, or arrays by name.

        The plan's other weights stay as they are. Names, dtypes and shapes must fit `Session.weights`. Tensors of a
        GGUF file become floats, or stay quantized (docs/weights.md). The session has a copy of each array.

        Raises:
            ValueError: a tensor does not fit a weight of the plan, a value is no array of numbers, or the file has
                another format.
            PlanError: the plan file changed.
            OSError: the file cannot be opened.
            TypeError: `weights` is neither a path nor a dict by name, or an array has elements of another type.
        """
        session = Session.__new__(Session)
        session._source, session._options = self._source, self._options
        with own_errors(self._module):
            options = (self.device, self.threads, *self._options[1:])
            runtime = loaded_again(self._runtime, self._source(), options, weights)
        return session._begin(self._module, runtime, self.fallback_reason)

    def new_state(self, initial: Mapping[str, Any] | None = None, *, sizes: Mapping[str, int] | None = None) -> State:
        """Return a new state for the argument `state` of `run`. The plan must have a state (`Options.state`).

        The first values are the arrays of `initial`, by the names of inputs. All others are zeros, with size 0 along
        the axis that grows. `sizes` sets other sizes of the zeros, by symbol (`batch`), or by input and dimension
        (`state.1`). The first run decides the sizes of symbols that its own inputs have too.

        Raises:
            InputError: an array does not fit its input.
            TypeError, ValueError: the plan has no state, or the state has no such input or dimension.
        """
        return made(self._module, self._runtime, self.inputs, initial, sizes)

    def run(
        self,
        inputs: Mapping[str, Any],
        outputs: Iterable[str] | None = None,
        *,
        device_outputs: bool = False,
        copy: bool = False,
        timeout: float | None = None,
        as_: Library = "numpy",
        out: Mapping[str, Any] | None = None,
        cancel: _runtime.Cancel | None = None,
        state: State | None = None,
    ) -> dict[str, Any]:
        """Run the plan, and return the outputs by name, in the plan's order.

        Tensors are NumPy arrays, or with `as_="torch"` PyTorch tensors in the same memory. With `as_="dlpack"`, they
        are objects that `from_dlpack` of any library reads in place. Sequences are lists, and an empty optional is
        `None`. With `outputs`, the session computes only the outputs with these names, in this order.
        It skips the steps that these outputs do not need.

        Inputs are NumPy arrays, tensors of libraries that support DLPack, or other objects that NumPy converts to
        arrays. Lists and tuples are sequences, not arrays. The session reads contiguous arrays of more than 4 KiB in
        place, and copies other arrays. It never writes to an input. No other thread may write to an input before `run`
        returns, unless `run` copies every input first (`copy`).

        With CUDA, an input may be a tensor on the session's device, of any library that supports DLPack or
        `__cuda_array_interface__`. The same rules apply, but `copy` does not copy these tensors. With
        `device_outputs`, output tensors stay on the device, as objects with `shape`, `dtype`, `device` and `numpy()`.
        They support both interfaces, and can be inputs of other runs. Their elements are complete when `run` returns.
        On the CPU, `device_outputs` changes nothing.

        `out` holds NumPy arrays and PyTorch tensors on the CPU, by the names of outputs. After the last step, the
        session copies these outputs into them, and the result contains them. They have the dtypes and shapes of the
        outputs. If one does not, or if a step fails, the session writes to none of them.

        A run ends early after `timeout` seconds. It checks the time only between steps, so it may end later, after a
        long step. A signal handler that raises, such as the handler of Ctrl-C, also ends the run. Python calls signal
        handlers only in the main thread. Any thread can end the run by `cancel.set()`, where `cancel` is an object that
        `new_cancel` returned.

        With a `state`, which `new_state` made, the caller leaves out the inputs that the state holds. The run replaces
        the values of the state with its outputs. It returns these outputs only if `outputs` names them. If the run
        fails or ends early, the state stays as it was.

        Raises:
            InputError: an input is missing or unknown, or its dtype or shape differs from the plan's declaration.
            RunError: a step failed.
            TimeoutError: the run took longer than `timeout`.
            RuntimeError: `cancel` ended the run, or another thread uses the state.
            TypeError: the inputs are not a dict, the outputs not a list of names, the library lacks a dtype, or an
                array of `out` has another dtype or is no array.
            ValueError: the plan has no output of such a name, `timeout` is negative, `as_` is no known library, an
                array of `out` has another shape or is read-only, or the state belongs to another plan or device.
        """
        if (
            outputs is None and timeout is None and cancel is None and out is None and as_ == "numpy" and state is None
        ):  # a call of a small model takes a microsecond
            try:
                found: dict[str, Any] | None = self._runtime.run(inputs, device_outputs, copy)
            except self._failures as error:
                refuse_wrong_use(self._module, inputs, self.inputs, device_outputs, copy, cancel)
                raise own_error(self._module, error) from error.__cause__
            except (RuntimeError, TypeError, ValueError):
                refuse_wrong_use(self._module, inputs, self.inputs, device_outputs, copy, cancel)
                raise
            if found is not None:
                return found
        request = self._request(outputs, timeout, as_, out, state)
        return delivered(self._run(inputs, state, device_outputs, copy, *request, cancel), as_, out)

    def new_cancel(self) -> _runtime.Cancel:
        """Return an object for the argument `cancel` of `run`. Its method `set` ends the runs that have this object."""
        cancel: _runtime.Cancel = self._module.Cancel()
        return cancel

    @with_arguments_of(run)
    async def run_async(self, *arguments: Any, **options: Any) -> Outputs:
        """Run as `run` does, in a thread of the event loop's executor. The loop continues meanwhile.

        If the awaiting task is canceled, the run ends as after `cancel.set()`. The task ends only after the run,
        because the run reads the inputs in place.

        Raises: as `run`.
        """
        import asyncio  # takes as long to import as the rest of this module

        given = options.get("cancel")
        validate_run(self._module, options.get("device_outputs", False), options.get("copy", False), given)
        cancel = options["cancel"] = self._module.Cancel(given)
        running = asyncio.get_running_loop().run_in_executor(None, partial(self.run, *arguments, **options))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancel.set()
            while not running.done():
                with suppress(asyncio.CancelledError):  # another cancellation of the task, which waits nevertheless
                    await asyncio.wait([running])
            running.exception()  # asyncio reports exceptions that nobody looked at
            raise

    def _run(self, inputs: Mapping[str, Any], state: State | None, *options: Any) -> dict[str, Any]:
        """The outputs by name. The options are those of the runtime."""
        try:
            with own_errors(self._module):
                if state is not None:
                    found: dict[str, Any] = self._held(state).run(
                        self._runtime, self._checked_inputs(inputs, state), *options
                    )
                    return found
                outputs: dict[str, Any] | None = self._runtime.run(inputs, *options)
                if outputs is None:  # the runtime wants a dict with the name of every input, and no others
                    outputs = self._runtime.run(self._checked_inputs(inputs), *options)
                return outputs
        except (InputError, RuntimeError, TypeError, ValueError):
            device_outputs, copy, *_, cancel = options
            refuse_wrong_use(self._module, inputs, self.inputs, device_outputs, copy, cancel)
            raise

    def _held(self, state: State) -> Any:
        """The extension's object of a state, with which a run can go on.

        Raises:
            TypeError, ValueError: it is no state, or one of another device, or the plan has no state.
        """
        held = checked_state(state, self._module)
        if not self.state:
            raise ValueError(
                "state: the plan has no state: leave the argument out, or compile the model with Options(state=…)"
            )
        return held

    def _request(
        self,
        outputs: Iterable[str] | None,
        timeout: float | None,
        library: Library,
        out: Mapping[str, Any] | None,
        state: State | None,
    ) -> tuple[list[int] | None, float | None]:
        """The positions of the outputs to compute, and the timeout, after all arguments are checked."""
        validate_library(library)
        validate_seconds("timeout", timeout)
        names = outputs
        if outputs is not None:
            names = outputs if isinstance(outputs, str) or not isinstance(outputs, Iterable) else dict.fromkeys(outputs)
            validate_names("outputs", names)
            for name in names:
                if name not in self._positions:
                    raise ValueError(f"outputs: expected some of {', '.join(self._positions)}, found {name!r}")
        if out is not None:
            held = set() if state is None else {pair.output for pair in self.state}
            validate_places(out, self._positions.keys() - held if names is None else names)
        return None if names is None else [self._positions[name] for name in names], timeout

    def profile(self, inputs: Mapping[str, Any], runs: int = 10, *, state: State | None = None) -> list[StepTime]:
        """Return the total time of every step in `runs` runs, in the plan's order. A first run does not count.

        With a `state`, the caller leaves out the inputs that it holds, as in `run`. Every run begins with the values of
        the state, and the state stays as it was.

        Raises: as `run`.
        """
        runs = validate_whole_number("runs", runs, 1, 2**32)
        held, given = None if state is None else self._held(state), self._checked_inputs(inputs, state)
        with own_errors(self._module):
            steps = self._runtime.profile(given, runs) if held is None else held.profile(self._runtime, given, runs)
        return [StepTime(**item) for item in json.loads(steps)]

    def prepared(self) -> Prepared:
        """Return how the runtime prepared the steps: kernels, layouts, and the memory of values that are in use."""
        return Prepared.from_json(json.loads(self._runtime.prepared()))

    def peaks(self) -> Peaks:
        """Measure and return the peak speed of the processor, with the session's number of threads."""
        return Peaks(*self._runtime.peaks())

    def _given(self, state: State | None) -> list[TensorInfo]:
        """The inputs of a run: all inputs, or those that a state does not hold."""
        held = set() if state is None else {pair.input for pair in self.state}
        return [info for info in self.inputs if info.name not in held]

    def _checked_inputs(self, inputs: Mapping[str, Any], state: State | None = None) -> dict[str, Any]:
        return checked_inputs(inputs, self._given(state), self._names)
