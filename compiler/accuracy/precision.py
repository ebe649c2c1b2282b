"""The errors of a plan and of onnxruntime against the model in double precision.

The compiler computes the result in double precision itself: it compiles the model without optimizations, and runs
kernels for double precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES
from compiler.accuracy.to_float64 import to_float64, widened
from compiler.accuracy.yardstick import ROUNDING
from compiler.errors import CompileError, InputError, RunError
from compiler.options import Options
from compiler.pipeline import compile_stored
from compiler.runtime.session import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler.frontend.load import Changed, Source
    from compiler.runtime.session import Session

__all__ = ["ROUNDING", "Errors", "errors_of", "exact_outputs", "in_double_precision", "run_exactly", "together"]


@dataclass(frozen=True)
class Errors:
    """The worst errors of a plan and of onnxruntime, as fractions of the output's largest magnitude."""

    plan: float
    reference: float

    @property
    def ratio(self) -> float:
        """The plan's error ÷ onnxruntime's; an error of less than one rounding counts as one."""
        return max(self.plan, ROUNDING) / max(self.reference, ROUNDING)


def in_double_precision(model: Source | Changed, threads: int | None = None, lower_3d: bool = False) -> Session | None:
    """A session of the model in double precision; `None` for a model without this form, such as a quantized model.

    `lower_3d` is that of `Options`.
    """
    try:
        plan = compile_stored(to_float64(model), Options(optimize=False, lower_3d=lower_3d))
        return load(plan, threads=threads)
    except CompileError:
        return None


def run_exactly(session: Session | None, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outputs of a model in double precision; `None` if the run fails, or without a session."""
    try:
        return None if session is None else session.run({name: widened(value) for name, value in inputs.items()})
    except (InputError, RunError):
        return None


def exact_outputs(model: Source, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outputs of the model in double precision; `None` if it has no such form or its run fails."""
    return run_exactly(in_double_precision(model), inputs)


def errors_of(exact: Mapping[str, Any], found: Mapping[str, Any], expected: Mapping[str, Any]) -> Errors | None:
    """The errors of a plan's outputs, `found`, and of onnxruntime's; `None` if no output has errors.

    Integer outputs have no errors, and neither have outputs that are not finite.
    """
    pairs = [(exact[name], found[name], expected[name]) for name in expected if name in exact and name in found]
    errors = [Errors(_error(a, b), _error(a, c)) for a, b, c in pairs if _is_measured(a, b, c)]
    return together(errors)


def together(errors: Iterable[Errors]) -> Errors | None:
    """The worst of both errors; `None` without errors."""
    known = list(errors)
    return Errors(max(each.plan for each in known), max(each.reference for each in known)) if known else None


def _is_measured(exact: Any, *others: Any) -> bool:
    """Whether all are arrays of finite floats with the same shape, `exact` in double precision."""
    if not all(isinstance(each, np.ndarray) for each in (exact, *others)):
        return False
    is_rounded = exact.dtype == np.float64 and all(each.dtype.name in TOLERANCES for each in others)
    return bool(
        is_rounded
        and exact.size
        and all(each.shape == exact.shape for each in others)
        and all(np.isfinite(each.astype(np.float64)).all() for each in (exact, *others))
    )


def _error(exact: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    scale = float(np.abs(exact).max())
    worst = float(np.abs(found.astype(np.float64) - exact).max())
    return worst / scale if scale else (0.0 if worst == 0 else math.inf)
