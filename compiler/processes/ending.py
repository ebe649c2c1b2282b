"""How a task ended: with a result, with an exception, or with its process."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Literal

from compiler.errors import Error

__all__ = ["Ending", "Kind", "ProcessDied", "exit_text"]

Kind = Literal["done", "raised", "crashed", "timed out", "out of memory"]


@dataclass(frozen=True)
class Ending:
    """How a task ended.

    `done`: it returned `result`. `raised`: it raised an exception of the class `error`. `crashed`: its process ended
    before it had a result. `timed out` and `out of memory`: it reached a limit. `parts` are the parts of the result
    that the task had reported. `phase` is the last phase that it reported. `message` gives the reason in words.
    `is_bug` says that the exception is none that the project raises on purpose. `seconds` is the time of the task
    without the start of its process.
    """

    kind: Kind
    result: Any = None
    parts: tuple[Any, ...] = ()
    phase: str = ""
    message: str = ""
    error: str = ""
    traceback: str = ""
    is_bug: bool = False
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        """The reason and the last phase in words; empty for a task that returned a result."""
        return f"{self.message}; last phase: {self.phase}" if self.message and self.phase else self.message


class ProcessDied(Error):
    """A process ended before it had a result. `ending` says how, if it is known."""

    def __init__(self, message: str, ending: Ending | None = None) -> None:
        self.ending = ending
        super().__init__(message)


def exit_text(code: int | None, said: str) -> str:
    """The end of a process that had no result, in words. `said` is the last line of its standard error."""
    if code is None:
        reason = "it closed its pipe, but did not end"
    elif code >= 0:
        reason = f"its process ended with exit code {code}"
    else:
        reason = f"it crashed with {_signal_text(-code)}"
    return f"{reason}: {said}" if said else reason


def _signal_text(number: int) -> str:
    """`SIGSEGV (segmentation fault)`."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    if number == signal.SIGKILL:
        return f"{name} (the system may have lacked memory, or somebody ended the process)"
    meaning = signal.strsignal(number)
    return f"{name} ({meaning.lower()})" if meaning else name
