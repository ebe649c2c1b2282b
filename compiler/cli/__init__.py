"""The command line: one file for each verb, imported when the verb runs.

Exit codes: 0 success, 1 model refused, difference found or command failed, 2 wrong usage, 70 compiler bug, 130
interrupted by Ctrl-C.
Results go to the standard output, diagnostics and progress to the standard error.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.command_group import Group
from compiler.cli.streams import StreamError, echo, naming, replace_unknown
from compiler.cli.verbose import VERBOSE
from compiler.errors import program as program_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERBS", "main"]

INTERRUPTED, CLOSED_PIPE = 130, 141
"""A shell's exit codes for programs that SIGINT or SIGPIPE ended."""

VERBS = {
    "compile": "Compile an ONNX model into a plan.",
    "run": "Run a plan.",
    "batch": "Run a plan on many rows of data.",
    "verify": "Compare a plan with onnxruntime.",
    "bisect": "Find the pass that makes a plan wrong, slower or larger.",
    "diff": "Show what differs between two models or plans.",
    "check": "Check whether the compiler supports a model.",
    "inspect": "Show the contents of a plan or a model.",
    "bench": "Time plans, and compare them with onnxruntime, OpenVINO and MNN.",
    "zoo": "Check a folder of models against onnxruntime.",
    "export": "Export a PyTorch module to ONNX.",
    "explain": "Explain an error code.",
    "ops": "List the supported ONNX operators.",
}
"""Verb → its line in `candlec --help`. This help imports no verb."""


class Verbs(Group):
    """The group of verbs. Each verb is the `command` of the module with its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of their use."""
        return list(VERBS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb."""
        if cmd_name not in VERBS:
            return None
        import logging

        logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)  # the compiler's diagnostics are clearer
        command = importlib.import_module(f"compiler.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb. If the reader of its output closes the pipe, the program ends quietly."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if error.filename is not None:  # the pipe is an output file
                from compiler.cli.failure import Failed

                raise Failed(f"{error.filename}: {error.strerror}") from error
            ctx.exit(CLOSED_PIPE)


def _show_version(ctx: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    """Print the version and exit."""
    if is_asked and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("candle-compiler")
        except PackageNotFoundError:
            found = "(not installed)"
        echo(f"candlec, version {found}")
        ctx.exit()


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def program() -> None:
    """Compile ONNX models into plans, and run them.

    \b
    candlec compile model.onnx                 writes model.plan
    candlec run model.plan --input io.npz      runs it
    candlec verify model.onnx model.plan       compares it with onnxruntime

    `candlec COMMAND --help` describes a command. Exit codes: 0 success, 1 model refused, difference found or command
    failed, 2 wrong usage, 70 compiler bug, 130 interrupted by Ctrl-C. The program `cc` has the same commands. With any
    other first argument, `cc` calls the system's C compiler, which has the same name.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    as_json, verbose = "--json" in arguments, VERBOSE in arguments
    replace_unknown()
    try:
        code = _run(arguments, as_json, verbose)
    except BrokenPipeError:  # while it reported an error as JSON
        code = CLOSED_PIPE
    except StreamError as error:
        from compiler.cli.failure import report

        code = report(error, verbose=verbose)
    sys.exit(_flushed(code))


def _run(arguments: list[str], as_json: bool, verbose: bool) -> int:
    """Run the command line, report an error, and return the exit code.

    Raises:
        BrokenPipeError, StreamError: the standard output does not take the report of an error as JSON.
    """
    try:
        code = program.main(arguments, prog_name=Path(program_name()).name, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return _ended("interrupted", INTERRUPTED, as_json)
    except click.ClickException as error:
        error.show()
        return _ended(error.format_message(), error.exit_code, as_json)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of the runtime is not an Exception
        from compiler.cli.failure import report

        return report(error, as_json, verbose)
    return code if isinstance(code, int) else 0


def _flushed(code: int) -> int:
    """Flush the standard output, and return the exit code, which is that of the failure if nothing else failed."""
    if sys.stdout is None:  # it is closed
        return code
    try:
        with naming("standard output"):
            sys.stdout.flush()
    except OSError as error:
        from compiler.cli.failure import report

        # Python would write the text again when it ends, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or (CLOSED_PIPE if isinstance(error, BrokenPipeError) else report(error))
    return code


def _ended(why: str, code: int, as_json: bool) -> int:
    """Print the reason as JSON if asked, and return the exit code."""
    if as_json:
        from compiler.cli.output import print_json

        print_json({"ok": False, "error": why})
    return code
