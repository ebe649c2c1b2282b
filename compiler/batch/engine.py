"""Who runs the batches: this process, or workers elsewhere (`compiler.ray`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from compiler.batch.batches import Batch, Runner, Work

if TYPE_CHECKING:
    from compiler.plan import TensorInfo
    from compiler.runtime.session import Session

__all__ = ["Engine", "Local"]


class Engine(Protocol):
    """Runs the batches of a plan. `inputs` and `outputs` are the plan's, and `device` is the device in use."""

    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    device: str

    def results(self, work: Work, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The outputs of each batch, in order."""


class Local:
    """One session in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.inputs: Sequence[TensorInfo] = session.inputs
        self.outputs: Sequence[TensorInfo] = session.outputs
        self.device = session.device

    def results(self, work: Work, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The outputs of each batch, in order."""
        return map(Runner(self._session, work).run, batches)
