"""`candlec verify`: a plan's outputs beside onnxruntime's."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.output import (
    NEAR,
    RIGHT,
    WRONG,
    Cell,
    console,
    errors,
    json_option,
    print_json,
    shape_text,
    table,
    working,
)

if TYPE_CHECKING:
    from compiler.check import Comparison, Report


@click.command(short_help="Compare a plan with onnxruntime.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("plan", type=click.Path(path_type=Path), required=False)
@arguments.input_option
@arguments.size_option
@arguments.seed_option
@click.option(
    "--tolerance",
    type=arguments.Finite(0),
    metavar="X",
    help="The difference allowed, as a part of the output's scale.  [default: by dtype, 1e-5 for float32]",
)
@arguments.device_option
@arguments.threads_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: Path,
    plan: Path | None,
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    seed: int,
    tolerance: float | None,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Run MODEL in onnxruntime and PLAN (or the model, compiled now) on the same inputs, and compare every output.

    For each output the worst difference is shown: absolute, relative to the element, and in units in the last place.
    An output passes when its absolute difference is at most the tolerance times its largest element. Integers, strings
    and booleans have to be equal. Where rounding errors grow beyond the default tolerance, twice the difference that
    onnxruntime's own optimisations make is allowed, and that is said. Exit code 1 when an output does not pass.

    \b
    candlec verify model.onnx
    candlec verify model.onnx model.plan --input io.npz
    candlec verify model.onnx --dim batch=4 --tolerance 1e-4
    """
    import compiler

    with working(f"compiling {model}"):
        compared = compiler.compile(model) if plan is None else compiler.Plan.load(plan)
    if plan is not None and not arguments.is_of(compared, model):
        warning = f"warning: {plan} was compiled from another model file than {model}"
        errors.print(warning, style="yellow", soft_wrap=True)
    given = arguments.given_inputs(compared.inputs, inputs, sizes, seed)
    with working("comparing with onnxruntime"):
        report = compiler.verify(model, compared, given, device, threads=threads, tolerance=tolerance)
    show(report, as_json)
    context.exit(0 if report.ok else 1)


def show(report: Report, as_json: bool) -> None:
    """Print a comparison."""
    if as_json:
        print_json({"ok": report.ok, "outputs": [{**asdict(each), "ok": each.ok} for each in report.outputs]})
        return
    columns = ("", "output", "dtype", "shape", ">max abs", ">max rel", ">max ulp", ">allowed")
    table(columns, (_cells(each) for each in report.outputs))
    for each in report.outputs:
        if each.problem:
            console.print(f"{each.name}: {each.problem}", style="red")
        elif each.widened:
            console.print(f"{each.name}: onnxruntime's own optimisations make a difference of {each.doubt:.1e} here")
    verdict = ("equal to onnxruntime within the tolerance", "green") if report.ok else ("not equal", "red")
    console.print(verdict[0], style=verdict[1])


def _cells(output: Comparison) -> list[Cell]:
    numbers = [f"{output.max_abs:.1e}", f"{output.max_rel:.1e}", str(output.max_ulp), f"{output.allowed:.1e}"]
    mark = WRONG if not output.ok else NEAR if output.widened else RIGHT
    return [mark, output.name, output.dtype, shape_text(output.shape), *numbers]
