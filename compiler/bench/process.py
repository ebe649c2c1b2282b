"""Runs one call in a separate Python process, which ends with its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from compiler.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

__all__ = ["ProcessDied", "in_fresh_process"]

P = ParamSpec("P")
R = TypeVar("R")


class ProcessDied(Error):
    """A process ended before it had a result."""


def in_fresh_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the function in a fresh process, and return its result or raise its exception.

    Raises:
        ProcessDied: the process died.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, function, args, kwargs), daemon=True)
    process.start()
    theirs.close()
    try:
        is_done, result = ours.recv()
    except EOFError:
        process.join()
        raise ProcessDied(f"the process that times a model ended with exit code {process.exitcode}") from None
    finally:  # the process has sent its result, or a signal interrupted this one
        process.kill()
        process.join()
    if not is_done:
        raise result
    made: R = result
    return made


def _work(theirs: Connection, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call the function, and send its result or its exception."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal also sends it to the parent, whose end ends both
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        found = True, function(*args, **kwargs)
    except Exception as error:
        found = False, error
    theirs.send(found)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
