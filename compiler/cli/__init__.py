"""The command line: one file a verb, loaded when it is used.

Exit codes: 0 done, 1 the check failed or the model is refused, 2 wrong usage. Results go to the standard output,
diagnostics and progress to the standard error.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler import errors
from compiler.cli.failure import Failed, report
from compiler.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERBS", "main"]

INTERRUPTED, CLOSED_PIPE = 130, 141
"""What a shell says of a program that SIGINT or SIGPIPE ended."""

VERBS = ("compile", "run", "verify", "check", "inspect", "bench", "zoo", "export", "explain", "ops")


class Verbs(click.Group):
    """The verbs, each the `command` of the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which one meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"compiler.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb. Who closes the pipe behind it has seen enough."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if error.filename is not None:  # that of an output
                raise Failed(f"{error.filename}: {error.strerror}") from error
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where the rest is flushed to
            ctx.exit(CLOSED_PIPE)


def _version() -> str:
    try:
        return version("candle-compiler")
    except PackageNotFoundError:
        return "(not installed)"


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(_version(), prog_name="candlec")
def program() -> None:
    """Compile ONNX models into plans, and run them.

    \b
    candlec compile model.onnx                 writes model.plan
    candlec run model.plan --input io.npz      runs it
    candlec verify model.onnx model.plan       compares it with onnxruntime

    Each verb has its own --help. `cc` is the same program: it hands everything that is not a verb to the system's C
    compiler, so that both can live in one environment.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)  # what it finds odd, diagnostics say better
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in arguments
    try:
        code = program.main(arguments, prog_name=Path(errors.program()).name, standalone_mode=False)
    except click.exceptions.Abort:
        code = _ended("interrupted", INTERRUPTED, as_json)
        click.echo("interrupted", err=True)
    except click.ClickException as error:
        code = _ended(error.format_message(), error.exit_code, as_json)
        error.show()
    except Exception as error:
        code = report(error, as_json)
    sys.exit(code if isinstance(code, int) else 0)


def _ended(why: str, code: int, as_json: bool) -> int:
    """Tell a program why there is no result; gives the exit code."""
    if as_json:
        print_json({"ok": False, "error": why})
    return code
