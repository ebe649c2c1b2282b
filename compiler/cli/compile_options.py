"""The options of the verbs that compile models in order to run or to check them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.option_groups import grouped
from compiler.cli.volumes import lower_option, lower_when_compiling
from compiler.zoo.compile_options import Compiling

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class CompilingWithSizes(Compiling):
    """The options of the compilation, and the sizes of dimensions."""

    dims: Mapping[str, int] = field(default_factory=dict)


_precision_option = click.option(
    "--precision",
    type=click.Choice(["f32", "f16", "bf16", "int8"]),
    default="f32",
    show_default=True,
    help="Round operands of matrix products when compiling, as `candlec compile --precision` does.",
)
compiling_option = grouped("compiling", Compiling, lower_when_compiling, arguments.strict_option, _precision_option)
sizes_and_compiling_option = grouped(
    "compiling",
    CompilingWithSizes,
    arguments.pin_option,
    lower_option("Check the 2-D operators with which candlec compile --lower-3d replaces 3-D operators."),
    arguments.strict_option,
)
