"""The search for the optional pass that makes the compiler or a run crash, in separate processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from compiler.accuracy.run_inputs import Inputs, made_for
from compiler.bisect.halving import Culprit, culprit_of, first_wrong, optional_passes, options_of
from compiler.errors import CompileError, InputError
from compiler.options import Options
from compiler.pipeline import compile
from compiler.processes.fresh import ProcessDied
from compiler.processes.run import run_tasks
from compiler.rewrite.report import PassReport
from compiler.runtime.session import load

if TYPE_CHECKING:
    from compiler.frontend.load import Source
    from compiler.processes.child import Channel
    from compiler.processes.ending import Ending

__all__ = ["Attempt", "Crash", "attempt", "attempt_reference", "find_crash"]

REFUSED = "refused"
"""The result of an attempt whose model the compiler refuses."""


@dataclass(frozen=True)
class Crash:
    """A crash: its phase (`compile` or `run`), its message, and the first optional pass that causes it.

    `culprit` is `None` if it happens without optional passes. `reference` is then the error of onnxruntime's run of the
    same inputs; it is empty if onnxruntime runs them, or if the compiler crashes.
    """

    phase: str
    message: str
    culprit: Culprit | None = None
    reference: str = ""


@dataclass(frozen=True)
class Attempt:
    """The work of a process: it compiles a model with some optional passes. If there are inputs, it runs the plan."""

    model: Source
    passes: tuple[str, ...]
    base: Options
    inputs: Mapping[str, Any] | None
    threads: int | None


def attempt(asked: Attempt, channel: Channel) -> Any:
    """Compile, and run. The result is `REFUSED`, or the inputs that the plan declares.

    It sends the report of each pass, so that the reports before a crash are known.
    """
    channel.phase("compile")
    try:
        plan = compile(asked.model, replace(options_of(asked.passes, asked.base), on_pass=channel.part))
    except CompileError:
        return REFUSED
    if asked.inputs is not None:
        channel.phase("run")
        load(plan, threads=asked.threads).run(asked.inputs)
    return plan.inputs


def attempt_reference(asked: Attempt, _channel: Channel) -> None:
    """Run the model in onnxruntime, on the inputs of an attempt."""
    from compiler.accuracy.reference import Reference

    Reference(cast("Any", asked.model)).run(asked.inputs or {})


def find_crash(
    model: Source,
    inputs: Inputs,
    *,
    dims: Mapping[str, int] | None = None,
    lower_3d: bool = False,
    threads: int | None = None,
    strict: bool = False,
    on_phase: Callable[[str], None] = lambda _: None,
) -> Crash | None:
    """Find the first pass that makes the compiler or a run crash; `None` if the optimized plan compiles and runs.

    A crash is an unexpected exception, a `RunError`, or the end of the process. A refused model is no crash. The
    arguments are those of `find_error`.

    Raises:
        CompileError: the model is refused.
        InputError: the inputs do not fit the model.
        ProcessDied: a process had too little memory, or its device cannot run plans.
    """
    names, base = optional_passes(), Options(dims=dims or {}, lower_3d=lower_3d, strict=strict)

    def tried(count: int, given: Mapping[str, Any] | None) -> Ending:
        on_phase(f"trying the optional passes up to {names[count - 1]}" if count else "trying no optional passes")
        asked = Attempt(model, names[:count], base, given, threads)
        [(_, ending)] = run_tasks(attempt, [asked], modules=[attempt.__module__])
        return ending

    plain = tried(0, None)
    if plain.result == REFUSED:
        compile(model, options_of((), base))  # raises the error
    declared = plain.result or tried(len(names), None).result
    if declared in (None, REFUSED) and _is_crash(plain):
        return Crash(plain.phase, plain.message)
    given = made_for(inputs, declared)
    ends = functools.cache(lambda count: tried(count, given))
    if not _is_crash(ends(len(names))):
        return None
    if _is_crash(ends(0)):
        on_phase("running the model in onnxruntime")
        return _with_reference(ends(0), Attempt(model, (), base, given, threads))

    def crashes(count: int) -> bool | None:
        return None if ends(count).result == REFUSED else _is_crash(ends(count))

    right, wrong = first_wrong(len(names), crashes)
    reports = [part for part in ends(wrong).parts if isinstance(part, PassReport)]
    return Crash(ends(wrong).phase, ends(wrong).message, culprit_of(names[right:wrong], reports))


def _with_reference(ended: Ending, asked: Attempt) -> Crash:
    """The crash without optional passes. If it is one of a run, onnxruntime runs the model on the same inputs."""
    found = Crash(ended.phase, ended.message)
    if found.phase != "run":
        return found
    [(_, ending)] = run_tasks(attempt_reference, [asked], modules=[attempt.__module__])
    return replace(found, reference=ending.message if ending.error == "ReferenceFailed" else "")


def _is_crash(ending: Ending) -> bool:
    """Whether an attempt crashed.

    Raises:
        InputError: the inputs do not fit.
        ProcessDied: the attempt ended without a result for another reason, such as too little memory.
    """
    if ending.kind == "crashed" or (ending.kind == "raised" and (ending.is_bug or ending.error == "RunError")):
        return True
    if ending.error == "InputError":
        raise InputError("", "", "", ending.message)
    if ending.kind != "done":
        raise ProcessDied(f"the model could not be tried: {ending.message}")
    return False
