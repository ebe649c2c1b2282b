"""The passes that the options `weights` and `precision` ask for, and the price that the plan states."""

from __future__ import annotations

from dataclasses import replace

from compiler.options import Options
from compiler.passes.halve_products import halve_products
from compiler.passes.keep_blocks import keep_blocks
from compiler.passes.quantize_products import quantize_products
from compiler.passes.quantize_weights import quantize_weights
from compiler.passes.replace_weights import replace_weights
from compiler.passes.round_products import round_products
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.weight_format import is_file

__all__ = ["Price", "keeping", "narrowing", "replacing"]

PRICE = "candle.price"
"""The key of the price in the metadata of a plan."""


def replacing(options: Options) -> list[Pass]:
    """The pass that replaces weights, before all passes that compute with them."""
    weights = str(options.weights or "")
    return [replace_weights(weights, options.keep)] if is_file(weights) else []


def keeping(options: Options) -> list[Pass]:
    """The pass that keeps the codes of a file, before the passes that multiply weights by the scales behind them."""
    return [keep_blocks] if is_file(str(options.weights or "")) else []


def narrowing(options: Options) -> list[Pass]:
    """The pass that stores weights with fewer bits, after all passes that compute with weights."""
    weights = str(options.weights or "")
    if weights and not is_file(weights):
        return [quantize_weights(weights, options.keep)]
    chosen = {"f16": halve_products, "bf16": round_products, "int8": quantize_products}.get(options.precision)
    return [] if chosen is None else [chosen(options.keep)]


class Price:
    """The price of a plan with rounded weights: their number, and the largest relative error of one of them."""

    def __init__(self, options: Options) -> None:
        self._options, self._names = options, {each.name for each in narrowing(options)}
        self._errors: list[float] = []

    @property
    def options(self) -> Options:
        """The options of a compilation whose reports state the price."""
        return replace(self._options, on_pass=self._add) if self._names else self._options

    @property
    def metadata(self) -> dict[str, str]:
        """The price as metadata of the plan; empty if it has no rounded weights."""
        if not self._errors:
            return {}
        options, count = self._options, len(self._errors)
        kind = str(options.weights) if options.weights is not None else options.precision
        counted = f"{count} matri{'x' if count == 1 else 'ces'}"
        return {PRICE: f"{kind}, {counted}, largest relative error {max(self._errors):.2%}"}

    def _add(self, report: PassReport) -> None:
        if report.name in self._names:
            self._errors += [each.error for each in report.fired]
        if self._options.on_pass is not None:
            self._options.on_pass(report)
