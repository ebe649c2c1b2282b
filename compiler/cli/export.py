"""`candlec export`: a PyTorch module as an ONNX file."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import console, json_option, megabytes, print_json, working

FORMS = "(module, arguments) or (module, arguments, dynamic)"


@click.command()
@click.argument("factory", metavar="PACKAGE.MODULE:FACTORY")
@click.option(
    "-o", "--output", required=True, type=arguments.OUTPUT, metavar="MODEL.onnx", help="Write the model to this file."
)
@click.option("--opset", type=arguments.Whole(18), metavar="N", help="Opset of the model.  [default: PyTorch's]")
@json_option
def command(factory: str, output: Path, opset: int | None, as_json: bool) -> None:
    """Export a PyTorch module to ONNX. The Python function FACTORY returns the module and its arguments.

    The command calls FACTORY(), which must return the tuple (module, arguments) or (module, arguments, dynamic).
    `arguments` is the tuple of arguments with which to call the module. `dynamic` names the dimensions that may vary:
    for example, {"x": {0: "batch"}} names the first dimension of the argument x. The command looks for PACKAGE in the
    current folder first.

    \b
    candlec export nets.unet:build -o unet.onnx
    """
    import compiler

    if output.suffix != ".onnx":  # otherwise it might be the module's own file
        raise click.BadParameter(f"{output}: the name of a model file must end with .onnx", param_hint="--output")
    with working("exporting"):
        module, given, *rest = _call(factory)
        with _explained(factory), _partial_graphs_hidden():
            compiler.export(module, given, output, rest[0] if rest else None, opset=opset)
    size = output.stat().st_size
    if as_json:
        print_json({"ok": True, "model": str(output), "bytes": size})
    else:
        console.print(f"{output}: {megabytes(size)}")


def _call(factory: str) -> tuple[Any, ...]:
    """The result of the factory. An error of the factory is wrong usage."""
    name, _, attribute = factory.partition(":")
    if not name or not attribute:
        raise _unusable(f"{factory!r} is not PACKAGE.MODULE:FACTORY")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(name), attribute)()
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "onnxscript"):
            message = f'this needs {error.name}, which is not installed: run pip install "candle-compiler[export]"'
            raise Failed(message) from error
        raise _unusable(f"{factory}: {type(error).__name__}: {error}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise _unusable(f"{factory}() must return {FORMS}, but returned a {type(made).__name__}")
    return made


def _unusable(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context())


@contextmanager
def _explained(factory: str) -> Iterator[None]:
    """Report errors of the module or of PyTorch as errors of the user, not of the compiler."""
    from compiler import ExportError

    try:
        yield
    except (ExportError, ModuleNotFoundError) as error:
        raise Failed(str(error)) from error
    except (TypeError, ValueError) as error:
        raise _unusable(f"{factory}: {error}") from error


def _partial_graphs_hidden() -> Any:
    """Hide the graphs that PyTorch prints when an export fails. They fill pages; --verbose shows them."""
    verbose = click.get_current_context().find_root().params["verbose"]
    return nullcontext() if verbose else redirect_stderr(io.StringIO())
