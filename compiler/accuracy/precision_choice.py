"""Chooses which products and convolutions the option `precision` changes, by the loss of each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.random_inputs import random_inputs
from compiler.calibration import SameModel, run_each
from compiler.options import Options
from compiler.pipeline import compile_stored
from compiler.runtime.session import load

if TYPE_CHECKING:
    from compiler.frontend.held import Held
    from compiler.frontend.load import Changed, Source
    from compiler.rewrite.report import PassReport

__all__ = ["Choice", "Product", "choose_precision"]

LOSS = "candle.loss"
"""The key of the measured loss in the metadata of a plan."""


@dataclass(frozen=True)
class Product:
    """A product or convolution with constant weights, or several with the same weights."""

    weights: str
    """The name of the weights."""
    loss: float
    """The loss if only this product changes."""
    changes: bool
    """Whether the choice changes it."""


@dataclass(frozen=True)
class Choice:
    """The products that change, and the loss that they cause together."""

    options: Options
    """The options of a compilation with this choice: `keep` has the names of the weights that stay as they are."""
    loss: float
    """The largest `‖y − ŷ‖ / ‖y‖` of an output, where y is in float32."""
    products: tuple[Product, ...]
    """The products, those with the least loss first. Empty if all of them may change: then none was measured alone."""


def choose_precision(
    model: Source | Held | Changed,
    max_loss: float,
    inputs: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Choice:
    """Choose the products to change, so that the outputs for some inputs lose at most `max_loss`.

    `options.precision` is the precision of the products that change, "int8" by default. The function runs the model
    with all products changed. If that loses too much, it changes each product alone, and then as many as possible
    together, those with the least loss first. So it compiles the model once for each product. Without `inputs`, it
    measures the largest loss for the inputs of `options.calibration`; without them, the inputs are random. With
    `options.calibration`, it also chooses convolutions. Other inputs may lose more.

    Raises:
        ValueError: `max_loss` is no positive number, or `options.precision` is "f32".
        CompileError, InputError, RunError: the model or the inputs are refused.
    """
    if not (isinstance(max_loss, int | float) and 0 < max_loss < math.inf):
        raise ValueError(f"max_loss: expected a positive number, found {max_loss!r}")
    if options is not None and options.precision == "f32":
        raise ValueError('options.precision: expected "int8", "bf16" or "f16", found "f32"')
    trial = _Trial(model, options or Options(precision="int8"), inputs)
    names = trial.names
    loss = trial.loss(names)
    if loss <= max_loss:
        return Choice(trial.changing(names, loss), loss, ())
    alone = {name: trial.loss([name]) for name in names}
    order = sorted(names, key=alone.__getitem__)
    fewest, most, best = 0, len(order), 0.0
    while most - fewest > 1:
        middle = (fewest + most) // 2
        loss = trial.loss(order[:middle])
        if loss <= max_loss:
            fewest, best = middle, loss
        else:
            most = middle
    products = tuple(Product(name, alone[name], at < fewest) for at, name in enumerate(order))
    return Choice(trial.changing(order[:fewest], best), best, products)


class _Trial:
    """A model in float32, and the losses of its plans with some products changed."""

    def __init__(self, model: Source | Held | Changed, options: Options, inputs: Mapping[str, Any] | None) -> None:
        cases = None if options.calibration is None else SameModel(tuple(options.calibration))
        self._model, self._options, self._given = model, replace(options, calibration=cases), options.calibration
        exact = load(compile_stored(model, self._quiet(options, precision="f32", keep=(), calibration=None)))
        self._inputs = [inputs] if inputs is not None else cases or [random_inputs(exact.inputs, {})]
        if inputs is None and cases is not None:
            self._exact = [outputs for _, outputs in run_each(exact, cases)]
        else:
            self._exact = [exact.run(each) for each in self._inputs]
        found: dict[str, None] = {}

        def add(report: PassReport) -> None:
            found.update((each.weights, None) for each in report.fired if each.weights)

        compile_stored(model, self._quiet(self._options, on_pass=add))
        self.names = list(found)

    @staticmethod
    def _quiet(options: Options, **changes: Any) -> Options:
        """The options without hooks, and with changes."""
        return replace(options, **{"on_pass": None, "on_model": None, **changes})

    def changing(self, names: Collection[str], loss: float | None = None) -> Options:
        """The options that change the products with these weights. The plan states their measured loss."""
        kept = tuple(_pattern(name) for name in self.names if name not in names)
        stated = {} if loss is None else {LOSS: f"{loss:.2%} of the norm of the outputs, measured"}
        metadata = {**self._options.metadata, **stated}
        calibration = self._options.calibration if loss is None else self._given
        return replace(self._options, keep=(*self._options.keep, *kept), metadata=metadata, calibration=calibration)

    def loss(self, names: Collection[str]) -> float:
        """The loss if the products with these weights change."""
        plan = compile_stored(self._model, self._quiet(self.changing(names)))
        session, lost = load(plan), [0.0]
        for inputs, exact in zip(self._inputs, self._exact, strict=True):
            found = session.run(inputs)
            lost += [_distance(found[name], each) for name, each in exact.items()]
        return max(lost)


def _pattern(name: str) -> str:
    """The pattern of `Options.keep` that matches a name."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _distance(found: Any, exact: Any) -> float:
    """`‖found − exact‖ / ‖exact‖`; 0 for outputs that are no floats, and infinity if only one is finite."""
    if not isinstance(exact, np.ndarray) or exact.dtype.kind != "f" or not exact.size:
        return 0.0
    wide = exact.astype(np.float64)
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    lost = float(np.linalg.norm(np.where(same, 0, found.astype(np.float64) - wide)))
    whole = float(np.linalg.norm(wide[np.isfinite(wide)]))
    return lost / whole if lost and whole and math.isfinite(lost) else math.inf if lost else 0.0
