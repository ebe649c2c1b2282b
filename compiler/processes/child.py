"""The process of a task: it calls the task, and reports phases, parts and the result to its parent."""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from compiler.custom_modules import CustomModule, import_again
from compiler.errors import Error
from compiler.processes.ending import ProcessDied
from compiler.processes.memory import anonymous_bytes, offer_to_system

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Channel", "Task", "work"]

A = TypeVar("A")

_END_WITH_PARENT = 1
"""`PR_SET_PDEATHSIG` of Linux."""


class Channel:
    """Sends the phases and partial results of a task to the parent process."""

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell

    def phase(self, text: str) -> None:
        """Report what the task does next. The text is part of the result if the task does not survive the phase."""
        self._tell("phase", text)

    def part(self, data: Any) -> None:
        """Report a part of the result. The parent keeps it, however the task ends."""
        self._tell("part", data)


Task = Callable[[A, Channel], Any]
"""A function at the top of a module. Pickle must be able to copy its argument and its result."""


def work(
    pipe: Connection,
    errors: Connection,
    task: Task[A],
    argument: A,
    environment: Mapping[str, str],
    modules: Sequence[CustomModule],
) -> None:  # pragma: no cover (in another process)
    """Import modules and run a task in this process, send all of its messages, and end the process.

    If a process of the task died, the task ends in the same way.
    """
    _prepare(errors, environment)

    def tell(kind: str, data: Any) -> None:
        pipe.send((kind, data))

    try:
        import_again(modules)
        tell("started", anonymous_bytes("self"))
        tell("done", task(argument, Channel(tell)))
    except MemoryError:
        tell("out of memory", "it could not allocate memory")
    except BaseException as error:  # a panic of the runtime is not an Exception
        if isinstance(error, ProcessDied) and error.ending is not None:
            tell("died", error.ending)
        else:
            tell("raised", _described(error))
    os._exit(0)  # the destructors of libraries neither delay nor spoil the result


def _prepare(errors: Connection, environment: Mapping[str, str]) -> None:
    """Separate this process from the terminal, and let it end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal also sends it to the parent, which ends this process
    os.setsid()  # the parent ends the whole group
    multiprocessing.current_process().daemon = False  # the task may start processes, which end with this one
    os.environ.clear()
    os.environ.update(environment)
    for stream in (1, 2):
        os.dup2(errors.fileno(), stream)
    faulthandler.enable(2)
    offer_to_system()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _described(error: BaseException) -> dict[str, Any]:
    """The class, text and traceback of an exception, and whether it is a bug."""
    name, text = type(error).__name__, str(error)
    is_bug = not isinstance(error, Error | OSError)
    message = f"{name}: {text}".removesuffix(": ") if is_bug else text
    places = "".join(f"; {place}" for place in getattr(error, "__notes__", ()))
    trace = "".join(traceback.format_exception(error))
    return {"error": name, "message": message + places, "traceback": trace, "is_bug": is_bug}
