"""Runs a graph of ATen operators: its core as a plan, and the rest with PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from torch import fx

from compiler.dynamo.checks import check
from compiler.dynamo.choices import Choices
from compiler.dynamo.plans import Plans
from compiler.dynamo.refusal import warn
from compiler.dynamo.split import split
from compiler.dynamo.translation import translated
from compiler.errors import CompileError, DeviceError, Error, PlanError

__all__ = ["Runner"]


class Runner:
    """A function of the list of a graph's inputs, which it empties, as AOTAutograd expects."""

    _boxed_call = True

    def __init__(self, graph: fx.GraphModule, constants: Sequence[int], choices: Choices) -> None:
        """`constants` are the positions of inputs that may become constants of plans."""
        self._graph, self._constants, self._choices = graph, constants, choices
        self._tail: fx.GraphModule | None = None
        self._plans: Plans | None = None
        self._refusal: Error | None = None
        self._lock = threading.Lock()

    def translate(self) -> None:
        """Split the graph and translate its core. The first run compiles the plan, because it has the parameters.

        The translation adds guards for the sizes that it decides, so it must precede the end of dynamo's compilation.
        """
        try:
            check(self._graph)
            parts = split(self._graph)
            if parts.core is not None:
                self._plans = Plans(parts.core, translated(parts.core.module), self._constants, self._choices)
            self._tail = parts.tail
        except Error as error:
            self._refuse(error)

    def __call__(self, inputs: list[Any]) -> Any:
        """The outputs of the graph.

        Raises:
            RefusedGraph, ExportError, CompileError, PlanError, DeviceError: the graph is refused, and PyTorch may not
                run it.
            RunError: a step of the plan failed.
        """
        given = list(inputs)
        inputs.clear()
        if self._refusal is None and self._tail is not None:
            try:
                made = [] if self._plans is None else self._plans.run(given)
            except (CompileError, PlanError, DeviceError) as error:
                self._refuse(error)
            else:
                return self._tail(*given, *made)
        if self._refusal is not None and not self._choices.fallback:
            raise self._refusal
        return self._graph(*given)

    def _refuse(self, error: Error) -> None:
        with self._lock:
            if self._refusal is None and self._choices.fallback:
                warn(error)
            self._refusal = error
