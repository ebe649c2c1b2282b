"""`candlec export`: a PyTorch module as an ONNX file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import console, json_option, megabytes, print_json, working


@click.command(short_help="Export a PyTorch module to ONNX.")
@click.argument("factory", metavar="PACKAGE.MODULE:FACTORY")
@click.option("-o", "--output", required=True, type=arguments.OUTPUT, metavar="MODEL.onnx", help="The model file.")
@click.option("--opset", type=click.IntRange(18), metavar="N", help="The opset to write.  [default: PyTorch's]")
@json_option
def command(factory: str, output: Path, opset: int | None, as_json: bool) -> None:
    """Export the module that FACTORY() returns as (module, arguments) or (module, arguments, dynamic).

    `dynamic` names the dimensions that may vary, as {"x": {0: "batch"}}. The working folder is searched first.

    \b
    candlec export nets.unet:build -o unet.onnx
    """
    import compiler

    with working("exporting"), _explained(factory):
        module, given, *rest = _call(factory)
        compiler.export(module, given, output, rest[0] if rest else None, opset=opset)
    size = output.stat().st_size
    if as_json:
        print_json({"ok": True, "model": str(output), "bytes": size})
    else:
        console.print(f"{output}: {megabytes(size)}")


@contextmanager
def _explained(factory: str) -> Iterator[None]:
    """What goes wrong in the module, or in PyTorch, is no fault of the compiler."""
    try:
        yield
    except (click.ClickException, Failed):
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "onnxscript"):
            message = f'this needs {error.name}, which is not installed: pip install "candle-compiler[export]"'
            raise Failed(message) from error
        raise Failed(f"{factory}: {type(error).__name__}: {error}") from error


def _call(factory: str) -> tuple[Any, ...]:
    name, _, attribute = factory.partition(":")
    if not attribute:
        raise click.BadParameter(f"{factory!r} is not PACKAGE.MODULE:FACTORY", param_hint="FACTORY")
    sys.path.insert(0, str(Path.cwd()))
    made = getattr(importlib.import_module(name), attribute)()
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise Failed(f"{factory}() must return (module, arguments) or (module, arguments, dynamic)")
    return made
