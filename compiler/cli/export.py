"""`candlec export`: a PyTorch module as an ONNX file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from compiler.cli.failure import Failed
from compiler.cli.output import console, megabytes, working


@click.command(short_help="Export a PyTorch module to ONNX.")
@click.argument("factory", metavar="PACKAGE.MODULE:FACTORY")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="MODEL.onnx")
@click.option("--opset", type=click.IntRange(18), help="The opset to write.  [default: PyTorch's]")
def command(factory: str, output: Path, opset: int | None) -> None:
    """Export the module that FACTORY() returns as (module, arguments) or (module, arguments, dynamic).

    `dynamic` names the dimensions that may vary, as {"x": {0: "batch"}}. The working folder is searched first.

    \b
    candlec export nets.unet:build -o unet.onnx
    """
    import compiler

    module, arguments, *rest = _call(factory)
    with working("exporting"):
        compiler.export(module, arguments, output, rest[0] if rest else None, opset=opset)
    console.print(f"{output}: {megabytes(output.stat().st_size)}")


def _call(factory: str) -> tuple[Any, ...]:
    name, _, attribute = factory.partition(":")
    if not attribute:
        raise click.BadParameter(f"{factory!r} is not PACKAGE.MODULE:FACTORY", param_hint="FACTORY")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(name), attribute)()
    except (ImportError, AttributeError) as error:
        raise Failed(f"{factory}: {error}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise Failed(f"{factory}() must return (module, arguments) or (module, arguments, dynamic)")
    return made
