"""The option `--verbose`, which stands before or after a verb."""

from __future__ import annotations

import click

__all__ = ["VERBOSE", "WithVerbose", "is_verbose"]

VERBOSE = "--verbose"


def is_verbose() -> bool:
    """Whether the command line has the option."""
    return bool(click.get_current_context().meta.get(VERBOSE))


def _note(ctx: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    """Store the option for all commands of the command line. An option before the verb holds after it too."""
    if is_given:
        ctx.meta[VERBOSE] = True


_OPTION = click.Option(
    [VERBOSE], is_flag=True, expose_value=False, callback=_note, help="Show the traceback of an error."
)


class WithVerbose(click.Command):
    """A verb or group that has the option after its own ones."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command. `--verbose` stands before `--help`, which is the last one."""
        found, own = super().get_params(ctx), len(self.params)
        return [*found[:own], _OPTION, *found[own:]]
