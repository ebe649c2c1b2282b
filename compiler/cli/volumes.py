"""The option that lowers operators of three spatial dimensions, and the prices of the lowered operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import console, table

if TYPE_CHECKING:
    from compiler.rewrite.report import PassReport

_SHOWN = 20


def lower_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--lower-3d`, as the parameter `lower_3d`."""
    return click.option("--lower-3d", "lower_3d", is_flag=True, help=help_text)


lower_when_compiling = lower_option(
    "Replace operators of three spatial dimensions with 2-D ones when compiling; otherwise the compiler refuses them."
)
"""The option of the verbs that compile models in order to run them."""


def show_prices(reports: Iterable[PassReport]) -> None:
    """Print what the passes for three dimensions replaced, and the price of each operator."""
    noted = [each for report in reports if report.name.startswith("lower_3d") for each in report.fired if each.note]
    if not noted:
        return
    table(("3-D operator", "price of its 2-D operators"), [(_place(each.origin), each.note) for each in noted[:_SHOWN]])
    if len(noted) > _SHOWN:
        console.print(f"… and {len(noted) - _SHOWN} more; --report lists all", style="dim")
    counts = Counter(each.rule for each in noted)
    console.print("lowered: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()), soft_wrap=True)


def _place(origin: object) -> str:
    module, nodes = getattr(origin, "module", None), getattr(origin, "nodes", ())
    return module or " + ".join(nodes)
