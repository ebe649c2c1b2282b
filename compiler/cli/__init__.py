"""The command line: one file a verb, loaded when it is used.

Exit codes: 0 done, 1 the check failed or the model is refused, 2 wrong usage. Results go to the standard output,
diagnostics and progress to the standard error.
"""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import click

from compiler import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VERBS", "main"]

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
    from compiler.cli.failure import report

    logging.getLogger("onnx_ir").setLevel(logging.CRITICAL)  # what it finds odd, diagnostics say better
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = program.main(arguments, prog_name=errors.program(), standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        sys.exit(report(error, as_json="--json" in arguments))
    sys.exit(code if isinstance(code, int) else 0)
