"""The option `--custom`: Python code that registers the functions of custom operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from compiler.cli.failure import Failed
from compiler.cli.output import console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["custom_option", "show_custom_ops"]


def custom_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--custom`. The command imports the modules before it does anything else."""
    help_text = (
        "Import this Python module or .py file first. It registers functions of custom operators (compiler.custom_op). "
        "May be repeated."
    )
    return click.option(
        "--custom",
        multiple=True,
        metavar="MODULE",
        callback=_import,
        expose_value=False,
        help=help_text,
    )(function)


def _import(context: click.Context, parameter: click.Parameter, modules: Sequence[str]) -> None:
    """Import modules, which are in the current folder or installed, or files."""
    if context.resilient_parsing or not modules:
        return
    from compiler.custom_modules import import_custom

    for name in modules:
        try:
            import_custom(name)
        except (ImportError, FileNotFoundError) as error:
            raise click.BadParameter(f"{name}: {error}", context, parameter) from error
        except Exception as error:
            raise Failed(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def show_custom_ops(names: Iterable[str]) -> None:
    """Print the custom operators of a model or a plan, if there are any."""
    if listed := ", ".join(names):
        console.print(f"custom operators, which functions of your program compute: {listed}", soft_wrap=True)
