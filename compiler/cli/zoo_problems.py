"""Prints the problems of the models of a folder, and advice for models whose processes ended early."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rich.text import Text

from compiler.cli.failure import CRASHED
from compiler.cli.output import errors
from compiler.cli.verbose import is_verbose
from compiler.custom_modules import imported_modules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.processes.ending import Ending

__all__ = ["CHECKING", "COMPILING", "exit_code", "given_options", "is_rounded", "show_problems"]

COMPILING = ("--lower-3d", "--strict", "--custom")
"""The options that decide how models are compiled. `candlec bisect` has them too."""
CHECKING = ("--cache", "--measures", "--tolerance", "--precision")
"""The other options that decide the results of `candlec zoo run` and `candlec zoo update`."""

_WHAT_IS_CHECKED = (
    "--zoo",
    "--unpin",
    "--both",
    "--device",
    "--baseline",
    "--facts",
    "--time",
    "--profile",
    "--results",
    *CHECKING,
    *COMPILING,
)
"""The options that a command to check a model again needs."""

_HELP = {
    "timed out": "`{command} {one} --timeout SECONDS` gives the model more time",
    "out of memory": "`{command} {one} --memory-limit SIZE` gives the model more memory",
    "crashed": "`{command} {one}` runs the model alone; if it crashes again, please report it with the model",
    "raised": "this is a bug in the compiler: please report it with the model and with the output of `{verbose} {one}`",
}
"""Kind of ending → advice."""


def show_problems(
    problems: Mapping[str, list[str]], endings: Mapping[str, Ending], files: Mapping[str, str] | None = None
) -> None:
    """Print the problems of each model, and advice for each kind of early end, with the first such model.

    `files` has the files of the models that the user named, and that `--only` therefore does not select.
    """
    for name, each in problems.items():
        for problem in dict.fromkeys(each):
            errors.print(Text.assemble(("error:", "bold red"), f" {name}: {problem}"), soft_wrap=True)
    context = click.get_current_context()
    command = " ".join(part for part in (context.command_path, shlex.join(given_options(*_WHAT_IS_CHECKED))) if part)
    verbose = command.replace(" ", " --verbose ", 1)
    advised: dict[str, str] = {}
    for name, ending in endings.items():
        if ending.kind in _HELP and (ending.kind != "raised" or ending.is_bug):
            advised.setdefault(ending.kind, name)
        if ending.traceback and ending.is_bug and is_verbose():
            errors.print(ending.traceback, soft_wrap=True)
    for kind, name in advised.items():
        one = shlex.quote(files[name]) if files and name in files else f"--only {shlex.quote(name)}"
        advice = _HELP[kind].format(command=command, verbose=verbose, one=one)
        errors.print(f"  help: {advice}", soft_wrap=True)


def given_options(*names: str) -> list[str]:
    """The options among `names` that the user set, as arguments of a command."""
    context, found = click.get_current_context(), list[str]()
    for option in context.command.params:
        name, source = option.opts[0], context.get_parameter_source(option.name or "")
        if name not in names or source is not ParameterSource.COMMANDLINE:
            continue
        if name == "--custom":
            found += [part for each in imported_modules() for part in (name, each.name)]
        else:
            value = context.params[option.name or ""]
            found += [name] if value is True else [name, str(value)]
    return found


def is_rounded() -> bool:
    """Whether `--precision` rounds products. `candlec bisect` has no such option: it compiles for float32."""
    return given_options("--precision")[1:] not in ([], ["f32"])


def exit_code(endings: Mapping[str, Ending], is_right: bool) -> int:
    """0 if all is right, 1 otherwise, and the code of a bug if the compiler raised an unexpected exception."""
    return CRASHED if any(each.is_bug for each in endings.values()) else 0 if is_right else 1
