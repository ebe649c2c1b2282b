"""Groups of commands, which suggest a command for a misspelled name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compiler.cli.verbose import WithVerbose
from compiler.errors import did_you_mean

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Group"]

_LEAST = 0.6
"""The similarity of a suggested name: `run` for `rum`."""


class Group(WithVerbose, click.Group):
    """A group of commands."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command of the first argument."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            question = did_you_mean(name, known, _LEAST)
            ctx.fail(f"there is no command {name!r}: {question or f'`{ctx.command_path} --help` lists them'}")
        return super().resolve_command(ctx, args)
