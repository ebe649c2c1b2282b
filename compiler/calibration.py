"""Runs a model on calibration data, to find the ranges of its activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from compiler import lower
from compiler.errors import InputError, RunError
from compiler.plan.stored import plan_of
from compiler.plan.write import write
from compiler.rewrite.quantized.ranges import Observed
from compiler.rewrite.report import note

if TYPE_CHECKING:
    from compiler.runtime.session import Session

__all__ = ["Observe", "SameModel", "observer", "run_each"]

Array = np.ndarray[Any, Any]
Case = Mapping[str, Any]
Observe = Callable[[ir.Model, Sequence[ir.Value]], list[Observed]]
"""A function that runs a model, and returns the observed numbers of some of its values of float32."""


class SameModel(tuple[Case, ...]):
    """The inputs for compilations of one model, which differ only in `keep`. They share the observed numbers."""

    def __init__(self, _cases: Sequence[Case]) -> None:
        self.observed: dict[str | None, Observed] = {}
        """The numbers of each value of the model, by name. They do not depend on `keep`: the model is in float32."""


def observer(cases: Sequence[Case]) -> Observe:
    """The function that runs a model on these inputs. It keeps no activations: it runs the model twice on each input.

    Raises (the function):
        InputError: an input is missing or does not fit, or gives a value that is infinite or NaN.
        CompileError, RunError: the model cannot run.
    """

    def observe(model: ir.Model, values: Sequence[ir.Value]) -> list[Observed]:
        known = cases.observed if isinstance(cases, SameModel) else {}
        new = [value for value in values if value.name not in known]
        if new:
            known.update(zip((value.name for value in new), _observed(model, new, cases), strict=True))
        return [known[value.name] for value in values]

    return observe


def _observed(model: ir.Model, values: Sequence[ir.Value], cases: Sequence[Case]) -> list[Observed]:
    session, found = _session(model, values), [Observed() for _ in values]
    for name, arrays in _runs(session, values, cases):
        for value, one, array in zip(values, found, arrays, strict=True):
            _check(name, value, array)
            one.widen(array)
    for _, arrays in _runs(session, values, cases):
        for one, array in zip(found, arrays, strict=True):
            one.count(array)
    return found


def _session(model: ir.Model, values: Sequence[ir.Value]) -> Session:
    """A session of the model, whose outputs include these values."""
    from compiler.runtime.session import load  # only a calibration runs the model

    outputs = model.graph.outputs
    own = len(outputs)
    outputs.extend(value for value in values if not (value.is_graph_output() or value.is_graph_input()))
    try:
        block, pool = lower.lower(model)
    finally:
        while len(outputs) > own:
            outputs.pop()  # unlike `del`, it tells the value that it is no output
    return load(plan_of(write(block, pool, pool.origins)))


def _runs(session: Session, values: Sequence[ir.Value], cases: Sequence[Case]) -> Iterator[tuple[str, list[Array]]]:
    """The name of each case, and the arrays of the values in its run."""
    for case, (name, found) in zip(cases, run_each(session, cases), strict=True):
        yield name, [np.asarray((case if value.is_graph_input() else found)[str(value.name)]) for value in values]


def run_each(session: Session, cases: Sequence[Case]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each case, and the outputs of its run.

    Raises:
        InputError, RunError: the run of a case fails. The error names the case.
    """
    for number, case in enumerate(cases, 1):
        name = f"calibration input {number} of {len(cases)}"
        try:
            found = session.run(case)
        except InputError as error:
            raise InputError(error.name, error.expected, error.found, f"{name}: {error}") from None
        except RunError as error:
            note(error, f"with {name}")
            raise
        yield name, found


def _check(name: str, value: ir.Value, array: Array) -> None:
    if not np.isfinite(array).all():
        message = f"{name}: {value.name!r} is infinite or NaN: leave out this input"
        if not value.is_graph_input():
            message += ", or name the weights of the convolutions around this value in the option `keep`"
        raise InputError(value.name or "", "finite numbers", "infinity or NaN", message)
