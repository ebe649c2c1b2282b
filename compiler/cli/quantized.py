"""The options that replace weights, store them with fewer bits or round products, and the price of these weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import console, table
from compiler.rewrite.weight_format import WeightFormat, is_file

if TYPE_CHECKING:
    from compiler.rewrite.report import PassReport

_SHOWN = 20
_CHANGED = {
    "halve_products": "rounded",
    "keep_blocks": "kept as codes",
    "quantize_convolutions": "quantized",
    "quantize_products": "quantized",
    "quantize_weights": "quantized",
    "round_products": "rounded",
}
"""The passes that change weights → what they do to them."""
_NOTHING = (
    "no weights have changed: only those of matrix products and tables can, if they are not small, and those of "
    "convolutions with --calibration; the pages docs/precision-modes.md and docs/quantized-weights.md list them"
)


def _weights(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A format of weights, or the path of a file."""
    if value is not None and is_file(value):
        if not Path(value).is_file():
            raise click.BadParameter(f"the file {value!r} does not exist")
        return value
    try:
        return None if value is None else str(WeightFormat.parse(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _names(context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names of a list, which needs the option `--weights` or `--precision`."""
    names = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    if names and context.params.get("weights") is None and context.params.get("precision") == "f32":
        option = "give --weights or --precision too"
        raise click.UsageError(f"--keep names weights that --weights and --precision leave as they are: {option}")
    return names


def weights_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--weights`, `--precision` and `--keep`."""
    keep = click.option(
        "--keep",
        callback=_names,
        metavar="LIST",
        help="Leave these weights as they are: names of weights, nodes or modules, separated by commas; * stands for "
        "any text.",
    )
    weights = click.option(
        "--weights",
        callback=_weights,
        is_eager=True,
        metavar="FORMAT|FILE",
        help="FORMAT int8 or int4: store weights with fewer bits. The results are less precise. With int4:64, each "
        "block of 64 weights has one scale. FILE.gguf or FILE.safetensors: replace the weights by the tensors of this "
        "file. Its quantized matrices stay quantized.",
    )
    precision = click.option(
        "--precision",
        type=click.Choice(["f32", "f16", "bf16", "int8", "auto"]),
        default="f32",
        show_default=True,
        is_eager=True,
        help="Round operands of matrix products with constant weights: f16 rounds weights to 16 bits, bf16 both "
        "operands to 16 bits, and int8 both to 8 bits, also those of convolutions with --calibration. auto is int8 for "
        "as many of them as --max-loss allows. The model is then usually faster, and the results less precise.",
    )
    return weights(precision(keep(function)))


def show_weights(reports: Iterable[PassReport]) -> None:
    """Print the changed weights, those with the largest errors first, and the weights that stay as they are."""
    narrowed = [each for each in reports if each.name in _CHANGED]
    if narrowed and not any(each.fired for each in narrowed):
        console.print(_NOTHING, style="yellow", soft_wrap=True)
    for report in narrowed:
        noted = sorted(report.fired, key=lambda each: each.error, reverse=True)
        if noted:
            table(("weights of", "price"), [(_place(each.origin), each.note) for each in noted[:_SHOWN]])
        if len(noted) > _SHOWN:
            console.print(f"… and {len(noted) - _SHOWN} more with smaller errors; --report lists all", style="dim")
        left = Counter(each.reason for each in report.near_misses)
        for reason, count in left.most_common():
            console.print(f"{count} not {_CHANGED[report.name]}: {reason}", style="dim", soft_wrap=True)


def _place(origin: Any) -> str:
    return origin.module or " + ".join(origin.nodes)
