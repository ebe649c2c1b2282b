"""`candlec export`: a PyTorch module as an ONNX file."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import console, errors, json_option, megabytes, print_json, working

if TYPE_CHECKING:
    from compiler.accuracy.exported_check import Checked

FORMS = "(module, arguments) or (module, arguments, dynamic)"


@click.command()
@click.argument("factory", metavar="PACKAGE.MODULE:FACTORY")
@click.option(
    "-o", "--output", required=True, type=arguments.OUTPUT, metavar="MODEL.onnx", help="Write the model to this file."
)
@click.option("--opset", type=arguments.Whole(18), metavar="N", help="Opset of the model.  [default: PyTorch's]")
@click.option("--no-check", is_flag=True, help="Do not compare the model with the module.")
@click.option("--locate", is_flag=True, help="If the model differs from the module, name the first part that differs.")
@json_option
def command(factory: str, output: Path, opset: int | None, no_check: bool, locate: bool, as_json: bool) -> None:
    """Export a PyTorch module to ONNX. The Python function FACTORY returns the module and its arguments.

    The command calls FACTORY(), which must return the tuple (module, arguments) or (module, arguments, dynamic).
    `arguments` is the tuple of arguments with which to call the module. `dynamic` names the dimensions that may vary:
    for example, {"x": {0: "batch"}} names the first dimension of the argument x. The command looks for PACKAGE in the
    current folder first.

    PyTorch's exporter sometimes writes a model that computes a different function than the module. The command
    therefore compiles the model, runs the module and the plan, and compares every output. It uses the given arguments.
    If `dynamic` names dimensions, it also uses random arguments of other sizes. If an output differs, the exit code is
    1. The command keeps the file of the model, so that you can examine it. --no-check skips the comparison, which takes
    about as long as a compilation and a few runs of the module. --locate names the first module that differs, its class
    and its line of Python.

    \b
    candlec export nets.unet:build -o unet.onnx
    candlec export nets.unet:build -o unet.onnx --locate
    """
    if output.suffix != ".onnx":  # otherwise it might be the module's own file
        raise click.BadParameter(f"{output}: the name of a model file must end with .onnx", param_hint="--output")
    if no_check and locate:
        raise click.UsageError("--locate needs the check: leave out --no-check", click.get_current_context())
    with working("importing the module"):
        made = _call(factory)
    checked = _export(factory, made, output, opset, locate=locate, check=not no_check)
    size, notes = output.stat().st_size, () if checked is None else checked.notes
    if as_json:
        runs = 0 if checked is None else checked.runs
        print_json({"ok": True, "model": str(output), "bytes": size, "checked": runs, "notes": list(notes)})
        return
    console.print(f"{output}: {megabytes(size)}")
    if checked is not None and checked.runs:
        sizes = ", ".join(f"{name}={size}" for name, size in checked.sizes.items())
        console.print(f"the model computes what the module computes{f', also with {sizes}' if sizes else ''}")
    for note in notes:
        errors.print(f"warning: {note}", style="yellow", soft_wrap=True)


def _export(
    factory: str, made: tuple[Any, ...], output: Path, opset: int | None, *, locate: bool, check: bool
) -> Checked | None:
    """Write the model, and check it unless `check` is false."""
    from compiler.accuracy.exported_check import check_model
    from compiler.accuracy.module_runs import Call
    from compiler.frontend.export import ExportError, write_model

    module, given, *rest = made
    dynamic = (rest[0] if rest else None) or {}
    with working("exporting"), _explained(factory), _partial_graphs_hidden():
        exported = write_model(module, given, output, dynamic, None, None, opset)
    if not check:
        return None
    try:
        with working("comparing the model with the module"):
            return check_model(exported, Call(module, tuple(given), {}), dynamic, locate=locate)
    except ExportError as error:
        raise Failed(str(error)) from error


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
        kind = type(made).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        raise _unusable(f"{factory}() must return {FORMS}, but returned {article} {kind}")
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
