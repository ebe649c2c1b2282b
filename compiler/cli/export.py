"""`candlec export`: a PyTorch module as an ONNX file."""

from __future__ import annotations

from pathlib import Path

import click

from compiler.cli import arguments, factory
from compiler.cli.output import console, json_option, megabytes, print_json
from compiler.cli.renamed import Verb


@click.command(cls=Verb)
@click.argument("name", metavar="PACKAGE.MODULE:FACTORY")
@click.option(
    "-o", "--output", required=True, type=arguments.OUTPUT, metavar="MODEL.onnx", help="Write the model to this file."
)
@factory.export_options
@json_option
def command(name: str, output: Path, how: factory.How, as_json: bool) -> None:
    """Export a PyTorch module to ONNX. The Python function FACTORY returns the module and its arguments.

    The command calls FACTORY(), which must return the tuple (module, arguments) or (module, arguments, dynamic).
    `arguments` is the tuple of arguments with which to call the module, or a dict of arguments by name. `dynamic` names
    the dimensions that may vary: for example, {"x": {0: "batch"}} names the first dimension of the argument x. The
    command looks for PACKAGE in the current folder first.

    PyTorch has two exporters. dynamo captures a graph. torchscript runs the module once and records its operators, so
    the model keeps what Python decided in this run. If dynamo refuses the module, the command uses torchscript, and
    says so.

    PyTorch's exporters sometimes write a model that computes a different function than the module. The command
    therefore compiles the model, runs the module and the plan, and compares every output. It uses the given arguments.
    If `dynamic` names dimensions, it also uses random arguments of other sizes. If an output differs, the exit code is
    1. The command keeps the file of the model, so that you can examine it. --no-check skips the comparison, which takes
    about as long as a compilation and a few runs of the module. --locate names the first module that differs, its class
    and its line of Python.

    \b
    candlec export nets.unet:build -o unet.onnx
    candlec export nets.unet:build -o unet.onnx --locate
    candlec export nets.detector:build -o detector.onnx --exporter torchscript
    """
    if output.suffix != ".onnx":  # otherwise it might be the module's own file
        raise click.BadParameter(f"{output}: the name of a model file must end with .onnx", param_hint="--output")
    done = factory.export_factory(name, output, how)
    size = output.stat().st_size
    if as_json:
        print_json({"ok": True, "model": str(output), "bytes": size, **factory.facts(done)})
        return
    console.print(f"{output}: {megabytes(size)}")
    factory.show(done)
