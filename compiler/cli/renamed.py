"""Renamed options. Their former names still work, with a warning, and no help shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compiler.cli.output import errors
from compiler.cli.verbose import WithVerbose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FORMER_NAMES", "Verb"]

FORMER_NAMES = {
    "--dim": "--size",
    "--model": "--only",
    "--path": "--zoo",
    "--steps": "--list-steps",
    "--strict": "--fail-on-bad-rows",
}
"""Deprecated names of options, with their present names. They hold in verbs that have the present name, but no option
with the former one: `candlec run` keeps `--steps`, and verbs that compile a model keep `--dim` and `--strict`."""


class Verb(WithVerbose):
    """A verb that accepts the former names of its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments after each former name is replaced."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        former = {old: new for old, new in FORMER_NAMES.items() if new in own and old not in own}
        found = {name for name, _ in map(_name_and_rest, _before_separator(args)) if name in former}
        if not ctx.resilient_parsing:
            for name in sorted(found):
                warning = f"warning: {name} is deprecated in this command: use {former[name]}"
                errors.print(warning, style="yellow", soft_wrap=True)
        try:
            return super().parse_args(ctx, list(_renamed(args, former)))
        except click.NoSuchOption as error:
            if error.option_name == "--size" and "--dim" in own:
                raise click.UsageError("No such option '--size'. Did you mean '--dim'?", ctx) from None
            raise


def _before_separator(args: list[str]) -> list[str]:
    """The arguments before `--`, which ends the options."""
    return args[: args.index("--")] if "--" in args else args


def _name_and_rest(argument: str) -> tuple[str, str]:
    """`--dim=batch=1` → `("--dim", "=batch=1")`."""
    name, sign, value = argument.partition("=")
    return name, sign + value


def _renamed(args: list[str], former: dict[str, str]) -> Iterator[str]:
    """The arguments with present names."""
    options = _before_separator(args)
    pairs: Iterable[tuple[str, str]] = map(_name_and_rest, options)
    yield from (former.get(name, name) + rest for name, rest in pairs)
    yield from args[len(options) :]
