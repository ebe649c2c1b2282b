"""An older plan of a model as the reference for the outputs of its plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.accuracy.large import is_large
from compiler.accuracy.verify import Judge
from compiler.runtime.session import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.frontend.load import Source
    from compiler.plan import Plan

__all__ = ["PlanJudge"]


class PlanJudge(Judge):
    """An older plan of a model, and the model in double precision, as the reference for the outputs of its plans.

    It does not need onnxruntime. `threads` is the number of threads of both.
    """

    def __init__(self, model: Source, plan: Plan, threads: int | None = None) -> None:
        self._model, self._threads, self._is_large = model, threads, is_large(model)
        self.note, self._plan = "", plan

    @property
    def reference(self) -> Any:
        """The runs of the older plan."""
        return _PlanReference(self._plan, self._threads)


class _PlanReference:
    """The runs of a plan. A plan has only one form: its results have no reference noise."""

    def __init__(self, plan: Plan, threads: int | None) -> None:
        self._session = load(plan, threads=threads)

    @property
    def plain(self) -> _PlanReference:
        """The same plan."""
        return self

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name.

        Raises:
            InputError, RunError: as `Session.run`.
        """
        return self._session.run(inputs)
