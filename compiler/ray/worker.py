"""An actor that runs batches with a session of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.batch.batches import Batch, Runner, Work
from compiler.batch.run import sha256
from compiler.custom_modules import CustomModule, import_again
from compiler.errors import Error
from compiler.plan import Plan
from compiler.runtime.session import Session, load

if TYPE_CHECKING:
    from compiler.plan import TensorInfo

__all__ = ["Description", "Opening", "Worker"]


@dataclass(frozen=True)
class Opening:
    """How a worker opens its session: the plan or its path, the plan's SHA-256, and arguments of `compiler.load`.

    The worker first imports `modules`, which register functions of custom operators.
    """

    plan: Plan | Path
    sha256: str
    device: str
    threads: int
    max_memory: int | None
    modules: Sequence[CustomModule] = ()


@dataclass(frozen=True)
class Description:
    """The inputs, outputs and device of a worker's session, and the id of the worker's process."""

    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    device: str
    process: int


class Worker:
    """Runs batches. After Ray has started it again, it opens its session again."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._session: Session | None = None

    def describe(self) -> Description:
        """The session's inputs, outputs and device."""
        session = self._opened()
        return Description(session.inputs, session.outputs, session.device, os.getpid())

    def run(self, work: Work, batch: Batch) -> Batch:
        """The outputs of a batch."""
        return Runner(self._opened(), work).run(batch)

    def _opened(self) -> Session:
        """The session. The first call opens it, so that its errors are those of a call, not those of an actor."""
        opening = self._opening
        if self._session is None:
            if isinstance(opening.plan, Path) and sha256(opening.plan) != opening.sha256:
                raise Error(f"{opening.plan} on {os.uname().nodename} is another plan than on the node of the command")
            import_again(opening.modules)
            self._session = load(opening.plan, opening.device, opening.threads, max_memory=opening.max_memory)
        return self._session
