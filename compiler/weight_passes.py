"""The passes that the options `weights` and `precision` ask for, and the price that the plan states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler import lower
from compiler.calibration import observer
from compiler.options import Options
from compiler.passes.absorb_transposes import absorb_transposes
from compiler.passes.cancel_transposes import cancel_transposes
from compiler.passes.fuse_quantization import fuse_quantization
from compiler.passes.halve_products import halve_products
from compiler.passes.keep_blocks import keep_blocks
from compiler.passes.merge_reshapes import merge_reshapes
from compiler.passes.quantize_convolutions import quantize_convolutions
from compiler.passes.quantize_products import quantize_products
from compiler.passes.quantize_weights import quantize_weights
from compiler.passes.raise_transposes import raise_transposes
from compiler.passes.replace_weights import replace_weights
from compiler.passes.round_products import round_products
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.phase import Phase
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.weight_format import is_file

__all__ = ["Narrowing", "Price", "keeping", "replacing"]

PRICE = "candle.price"
"""The key of the price in the metadata of a plan."""
_PLURALS = {"convolution": "convolutions", "matrix": "matrices"}


def replacing(options: Options) -> list[Pass]:
    """The pass that replaces weights, before all passes that compute with them."""
    weights = str(options.weights or "")
    return [replace_weights(weights, options.keep)] if is_file(weights) else []


def keeping(options: Options) -> list[Pass]:
    """The pass that keeps the codes of a file, before the passes that multiply weights by the scales behind them."""
    return [keep_blocks] if is_file(str(options.weights or "")) else []


@dataclass(frozen=True)
class Narrowing:
    """The passes that store weights with fewer bits, after all passes that compute with weights."""

    convolutions: tuple[Pass | Phase, ...] = ()
    """The passes that quantize convolutions, after batch normalizations are folded."""
    matrices: tuple[Pass, ...] = ()
    """The pass that changes the matrices of products, and tables. It also checks the names of `keep`."""

    @staticmethod
    def of(options: Options) -> Narrowing:
        """The passes that the options ask for."""
        weights = str(options.weights or "")
        if weights and not is_file(weights):
            return Narrowing(matrices=(quantize_weights(weights, options.keep),))
        if options.precision == "int8":
            kept = KeptWeights(options.keep)  # of all passes and runs: a fused product no longer matches in a later one
            cases = _cases(options)
            return Narrowing(_quantizing(cases, kept) if cases else (), (quantize_products(kept),))
        chosen = {"f16": halve_products, "bf16": round_products}.get(options.precision)
        return Narrowing() if chosen is None else Narrowing(matrices=(chosen(options.keep),))


def _cases(options: Options) -> tuple[Mapping[str, Any], ...]:
    """The inputs of `calibration`, which `Options` has made a tuple; empty without it."""
    return options.calibration if isinstance(options.calibration, tuple) else ()


def _quantizing(cases: Sequence[Mapping[str, Any]], kept: KeptWeights) -> tuple[Pass | Phase, ...]:
    """The passes that quantize convolutions, and cancel the transposes around those on codes."""
    transposes = Phase("move_transposes", [absorb_transposes, cancel_transposes])
    quantize = quantize_convolutions(observer(cases), kept)
    return (quantize, fuse_quantization(lower.evaluate), transposes, raise_transposes, merge_reshapes)


class Price:
    """The price of a plan with rounded weights: their number, and the largest relative error of one of them."""

    def __init__(self, options: Options) -> None:
        chosen = Narrowing.of(options)
        self._options, self._errors = options, list[float]()
        self._kinds = {each.name: "convolution" for each in chosen.convolutions[:1]}
        self._kinds |= {each.name: "matrix" for each in chosen.matrices}
        self._counts: Counter[str] = Counter()

    @property
    def options(self) -> Options:
        """The options of a compilation whose reports state the price."""
        return replace(self._options, on_pass=self._add) if self._kinds else self._options

    @property
    def metadata(self) -> dict[str, str]:
        """The price as metadata of the plan; empty if it has no rounded weights."""
        if not self._errors:
            return {}
        options = self._options
        kind = str(options.weights) if options.weights is not None else options.precision
        counted = " and ".join(
            f"{count} {_PLURALS[what] if count > 1 else what}" for what, count in self._counts.items()
        )
        stated = f"{kind}, {counted}, largest relative error {max(self._errors):.2%}"
        if "convolution" in self._counts:
            count = len(_cases(options))
            stated += f", ranges of activations from {count} input{'s' * (count > 1)}"
        return {PRICE: stated}

    def _add(self, report: PassReport) -> None:
        if report.name in self._kinds and report.fired:
            self._errors += [each.error for each in report.fired]
            self._counts[self._kinds[report.name]] += len(report.fired)
        if self._options.on_pass is not None:
            self._options.on_pass(report)
