"""The plans of one graph. Each has other parameters and buffers as constants."""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from compiler.dynamo.choices import Choices
from compiler.dynamo.core import Core
from compiler.dynamo.translation import bound
from compiler.dynamo.weights import Watched, can_watch
from compiler.pipeline import compile
from compiler.runtime.session import Session, load

__all__ = ["Plans"]

MOST_PLANS = 64
"""The most plans of a graph with constants. Modules of one class share a graph, and each of them has a plan."""
MOST_CHANGES = 1
"""The most changes of a tensor that remains a constant."""


@dataclass(frozen=True, eq=False)
class _Bound:
    """A plan. `inputs` and `watched` have the positions of its inputs and constants among the inputs of the graph."""

    session: Session
    inputs: dict[str, int]
    watched: dict[int, Watched]

    def fits(self, given: Sequence[Any]) -> bool:
        return all(each.is_unchanged(given[position]) for position, each in self.watched.items())


class Plans:
    """Compiles the core of a graph for each set of constants, and runs the plan that fits the inputs."""

    def __init__(self, core: Core, model: ir.Model, constants: Sequence[int], choices: Choices) -> None:
        """Make no plan yet. `constants` are positions of inputs of the graph that may be constants."""
        names = [value.name or "" for value in model.graph.inputs]
        self._inputs = dict(zip(names, core.sources, strict=False))
        self._fixed = dict(zip(names[len(core.sources) :], core.constants, strict=True))
        self._orders, self._model, self._choices = core.orders, model, choices
        self._constants = frozenset(constants)
        self._plans: list[_Bound] = []
        self._compiled = 0
        self._changes: Counter[int] = Counter()
        self._lock = threading.Lock()

    def run(self, given: Sequence[Any]) -> list[torch.Tensor]:
        """The outputs of the core for the inputs of the graph.

        Raises:
            CompileError, PlanError, DeviceError: there is no plan for these inputs, and compiling one fails.
            RunError: a step fails.
        """
        plan = self.fitting(given)
        outputs = plan.session.run({name: _lent(given[at]) for name, at in plan.inputs.items()}, as_="torch")
        made = zip(outputs.values(), self._orders, strict=True)
        return [each if order is None else _in_order(each, order) for each, order in made]

    def fitting(self, given: Sequence[Any]) -> _Bound:
        """The plan whose constants are among the inputs. The function compiles one if there is none.

        Raises: as `run`.
        """
        for plan in self._plans:
            if plan.fits(given):
                return plan
        with self._lock:
            for plan in self._plans:  # another thread may have compiled it
                if plan.fits(given):
                    return plan
            self._drop_changed(given)
            plan = self._compile(given)
            self._plans = sorted([*self._plans, plan], key=lambda each: -len(each.watched))
            return plan

    def _drop_changed(self, given: Sequence[Any]) -> None:
        """Drop the plans with constants that have changed, and count the changes."""
        for plan in self._plans:
            changed = [
                position
                for position, each in plan.watched.items()
                if each.watches(given[position]) and not each.is_unchanged(given[position])
            ]
            self._changes.update(changed)
            if changed:
                self._plans = [each for each in self._plans if each is not plan]

    def _compile(self, given: Sequence[Any]) -> _Bound:
        self._compiled += 1
        constants = {name: at for name, at in self._inputs.items() if self._is_constant(at, given[at])}
        tensors = {name: given[at] for name, at in constants.items()}
        model = bound(self._model, {**self._fixed, **tensors})
        session = load(compile(model), threads=self._choices.threads or torch.get_num_threads())
        inputs = {name: at for name, at in self._inputs.items() if name not in constants}
        plan = _Bound(session, inputs, {})

        ended = partial(_forget, weakref.ref(self), weakref.ref(plan))
        plan.watched.update((at, Watched(given[at], ended)) for at in constants.values())
        return plan

    def _is_constant(self, position: int, value: Any) -> bool:
        if position not in self._constants or not can_watch(value):
            return False
        return self._compiled <= MOST_PLANS and self._changes[position] <= MOST_CHANGES


def _forget(owner: weakref.ref[Plans], ended: weakref.ref[_Bound]) -> None:
    """Drop a plan, if both still exist: one of its constants does not."""
    if (plans := owner()) is not None:
        plans._plans = [each for each in plans._plans if each is not ended()]


def _lent(value: Any) -> Any:
    """An input of the core as an input of a session."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, np.int64)
    value = value.detach() if value.requires_grad else value
    return value.resolve_neg() if value.is_neg() else value


def _in_order(tensor: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """The same elements, with the dims in this order in memory, from the outermost to the innermost."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(inverse)
