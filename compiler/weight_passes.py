"""The passes that the options `weights` and `precision` ask for."""

from __future__ import annotations

from compiler.options import Options
from compiler.passes.halve_products import halve_products
from compiler.passes.keep_blocks import keep_blocks
from compiler.passes.quantize_products import quantize_products
from compiler.passes.quantize_weights import quantize_weights
from compiler.passes.replace_weights import replace_weights
from compiler.passes.round_products import round_products
from compiler.rewrite.report import Pass
from compiler.rewrite.weight_format import is_file

__all__ = ["keeping", "narrowing", "replacing"]


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
