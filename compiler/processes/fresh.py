"""Calls a function in a fresh process, which ends with its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from compiler.processes.ending import ProcessDied
from compiler.processes.run import run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.processes.child import Channel

__all__ = ["ProcessDied", "in_fresh_process"]

P = ParamSpec("P")
R = TypeVar("R")


def in_fresh_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the function in a fresh process, and return its result or raise its exception.

    Raises:
        ProcessDied: the process died.
    """
    [(_, ending)] = run_tasks(_call, [(function, args, kwargs)], fresh=True)
    if ending.kind != "done":
        raise ProcessDied(f"the process of a measurement failed: {ending.message}", ending)
    error, result = ending.result
    if error is not None:
        raise error
    made: R = result
    return made


def _call(
    asked: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]], _: Channel
) -> tuple[Exception | None, Any]:
    """The exception or the result of a call."""
    function, args, kwargs = asked
    try:
        return None, function(*args, **kwargs)
    except Exception as error:
        return error, None
