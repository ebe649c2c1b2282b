"""The options that store weights with fewer bits, and the price of these weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import console, table
from compiler.rewrite.weight_format import WeightFormat

if TYPE_CHECKING:
    from compiler.rewrite.report import PassReport

_SHOWN = 20


def _format(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A format of weights."""
    try:
        return None if value is None else str(WeightFormat.parse(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _names(context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names of a list, which needs the option `--weights`."""
    names = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    if names and context.params.get("weights") is None:
        raise click.UsageError("--keep names weights that --weights leaves as they are: give --weights too")
    return names


def weights_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--weights` and `--keep`."""
    keep = click.option(
        "--keep",
        callback=_names,
        metavar="LIST",
        help="Leave these weights as they are: names of weights, nodes or modules, separated by commas; * stands for "
        "any text.",
    )
    weights = click.option(
        "--weights",
        callback=_format,
        is_eager=True,
        metavar="FORMAT",
        help="Store weights with fewer bits, which makes results less precise: int8 or int4. int4:64 has a scale for "
        "each block of 64 numbers.",
    )
    return weights(keep(function))


def show_weights(reports: Iterable[PassReport]) -> None:
    """Print the quantized weights, those with the largest errors first, and the weights that stay as they are."""
    for report in (each for each in reports if each.name == "quantize_weights"):
        noted = sorted(report.fired, key=lambda each: each.error, reverse=True)
        if noted:
            table(("weights of", "price"), [(_place(each.origin), each.note) for each in noted[:_SHOWN]])
        if len(noted) > _SHOWN:
            console.print(f"… and {len(noted) - _SHOWN} more with smaller errors; --report lists all", style="dim")
        left = Counter(each.reason for each in report.near_misses)
        for reason, count in left.most_common():
            console.print(f"{count} not quantized: {reason}", style="dim", soft_wrap=True)


def _place(origin: Any) -> str:
    return origin.module or " + ".join(origin.nodes)
