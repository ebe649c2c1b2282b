"""The choice of the products that `candlec compile --precision auto` quantizes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import console, table, working

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compiler import Options
    from compiler.accuracy.precision_choice import Choice
    from compiler.cli.input_options import Given

__all__ = ["choice_data", "choose", "loss_option", "show_choice"]


def _loss(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """A loss, such as `0.1%` or `0.001`."""
    if value is None:
        return None
    try:
        number = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise click.BadParameter(f"{value!r} is no loss: give a percentage, such as 0.5%")
    return number


def loss_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--max-loss`."""
    option = click.option(
        "--max-loss",
        callback=_loss,
        metavar="PERCENT",
        help="With --precision auto, the largest allowed change of the outputs, as a part of their norm, such as 0.5%. "
        "The command measures it with the inputs of --input or --calibration, and quantizes as many matrix products "
        "(and, with --calibration, convolutions) as possible. It compiles the model once for each of them.",
    )
    return option(function)


def choose(model: Path, options: Options, max_loss: float, given: Given) -> Choice:
    """The choice for the given inputs, for those of the calibration, or for random ones."""
    from compiler.accuracy.precision_choice import choose_precision
    from compiler.pipeline import compile_stored

    quiet = replace(options, on_pass=None, on_model=None)
    declared = compile_stored(model, replace(quiet, precision="f32", keep=(), calibration=None)).inputs
    inputs = None if options.calibration is not None and given.is_random else given.arrays(declared)
    with working(f"measuring the products of {model}"), given.suggest_sizes(declared):
        made = choose_precision(model, max_loss, inputs, quiet)
    return replace(made, options=replace(options, keep=made.options.keep, metadata=made.options.metadata))


def choice_data(choice: Choice) -> dict[str, Any]:
    """The choice as data."""
    products = [{"weights": each.weights, "loss": each.loss, "changes": each.changes} for each in choice.products]
    return {"loss": choice.loss, "products": products}


def show_choice(choice: Choice) -> None:
    """Print the loss of each product, if products were measured alone, and that of the choice."""
    if choice.products:
        rows = [(each.weights, f"{each.loss:.2%}", "int8" if each.changes else "f32") for each in choice.products]
        table(("weights", ">loss alone", "precision"), rows)
    console.print(f"the outputs change by {choice.loss:.2%} of their norm", soft_wrap=True)
