"""`candlec verify`: compare a plan's outputs with onnxruntime's."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.compile_options import compiling_option
from compiler.cli.custom import custom_option
from compiler.cli.failure import Failed
from compiler.cli.input_options import Given, given_options
from compiler.cli.output import (
    NEAR,
    RIGHT,
    UNKNOWN,
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
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler import Plan
    from compiler.accuracy.compare import Comparison, Report
    from compiler.accuracy.layerwise import Layer
    from compiler.zoo.compile_options import Compiling

MARKS = {
    "equal": RIGHT,
    "random": UNKNOWN,
    "uncertain": NEAR,
    "different": WRONG,
    "refused": WRONG,
    "failed": WRONG,
    "timed out": WRONG,
    "out of memory": WRONG,
    "crashed": WRONG,
}

MOST_ULP = 10_000
"""The largest number shown. Any difference from an element near zero is millions of units in the last place."""

COMPARISON_COLUMNS = ("", "output", "dtype", "shape", ">max abs", ">max rel", ">max ulp", ">tolerance")

ADVICE = """\
  help: verify a plan of `candlec compile --no-optimize`: if it is equal, an optional pass is the cause
  help: `candlec bisect MODEL` finds this pass, and the first step that differs
  help: set --tolerance if this model allows larger differences"""

ADVICE_ON_WEIGHTS = """\
  help: the plan has weights with fewer bits (`candlec compile --weights`), so its outputs differ by design: set
        --tolerance to the difference that you allow, such as 0.05, or verify a plan compiled without --weights"""

ADVICE_ON_PRECISION = """\
  help: the plan multiplies rounded numbers (`candlec compile --precision`), so its outputs differ by design: set
        --tolerance to the difference that you allow, such as 0.05, or verify a plan compiled without --precision"""

ADVICE_ON_INPUTS = """\
  help: give real inputs with --input: random inputs may enlarge rounding errors"""


@click.command(cls=Verb)
@click.argument("model", type=arguments.INPUT)
@click.argument("plan", type=arguments.INPUT, required=False)
@given_options
@arguments.tolerance_option
@click.option("--layerwise", is_flag=True, help="Also compare intermediate values; show the first one that differs.")
@arguments.device_option
@arguments.threads_option
@compiling_option
@custom_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: Path,
    plan: Path | None,
    given: Given,
    tolerance: float | None,
    layerwise: bool,
    device: str,
    threads: int | None,
    compiling: Compiling,
    as_json: bool,
) -> None:
    """Run MODEL in onnxruntime and PLAN on the same inputs, and compare every output.

    Without PLAN, the command compiles MODEL. For each output, it shows the worst absolute difference with its
    tolerance. It also shows the largest difference relative to the element, and the largest difference in units in the
    last place.

    \b
    ✓  equal: each element is within its tolerance, which is the sum of two numbers. The first is a fraction
       (--tolerance) of the largest element of the same group. The second is one rounding step of the output's largest
       element. The tolerance is never larger than the same fraction of the output's largest element. Elements of one
       group have comparable magnitudes: the scores of boxes are one group, and their coordinates another. Integers,
       strings and booleans are identical.
    ≈  uncertain: onnxruntime's results with and without its optimizations differ by more than the tolerance. This
       difference is the reference noise. The output is not equal, but differs from one of these results by at most
       the reference noise plus the tolerance.
    ?  random numbers, which differ between any two programs: dtype and shape are the same
    ✗  not equal

    Without --tolerance, an output with a larger difference also counts as equal in two cases. First, the output is
    within the tolerance of onnxruntime's result without optimizations. Second, its rounding errors are similar to
    onnxruntime's: in the whole output and in each group of elements, each error is within the tolerance, or at most
    three times as large as onnxruntime's. A rounding error is the difference from the model's result in double
    precision, which this compiler computes for models without quantization. The second case does not apply if
    onnxruntime's largest error is more than 30 times the plan's: such a large error has another cause than rounding.
    With --tolerance, only this tolerance counts.

    The exit code is 1 if an output has a ✗.

    On processors with AVX2 or AVX-512 and without VNNI, onnxruntime's products of uint8 and int8 saturate. On these
    processors, the command gives onnxruntime an equivalent model that uses uint8. A line below the table says so.

    With --layerwise, the command also compares the intermediate values of the plan that have a name in the model. It
    compares them in the order of the plan, with the values that onnxruntime computes node by node. The first value that
    differs shows where to look. A plan without optimization (`candlec compile --no-optimize`) has nearly all values of
    the model. A plan with fused steps has few of them.

    \b
    candlec verify model.onnx
    candlec verify model.onnx model.plan --input io.npz
    candlec verify model.onnx --size batch=4 --tolerance 1e-4
    candlec verify model.onnx --precision bf16 --tolerance 0.01
    candlec verify model.onnx --layerwise
    candlec verify model.onnx --device cuda
    """
    import compiler
    from compiler.accuracy.layerwise import compare_layers

    compared, is_other = _plan_of(model, plan, compiling)
    arrays = given.arrays(compared.inputs)
    options: dict[str, Any] = {"threads": threads, "tolerance": tolerance}
    with_suggestion = given.suggest_sizes(compared.inputs)
    with working("comparing with onnxruntime"), _suggest_plan(is_other), with_suggestion:
        report = compiler.verify(model, compared, arrays, device, **options)
    layers = None
    if layerwise:
        with working("comparing intermediate values"), _suggest_plan(is_other):
            layers = compare_layers(model, compared, arrays, device, **options)
    show(report, layers, as_json, says_device=device != "cpu", advice=_advice(compared, given))
    context.exit(0 if report.ok else 1)


def _plan_of(model: Path, file: Path | None, compiling: Compiling) -> tuple[Plan, bool]:
    """The plan in a file, or of the model without a file; and whether it is the plan of another model."""
    import compiler
    from compiler.cli.arguments import is_plan
    from compiler.errors import program
    from compiler.pipeline import compile_stored

    if file is not None and model.is_file() and file.is_file() and is_plan(model) and not is_plan(file):
        raise click.UsageError(f"MODEL and PLAN are swapped: write `{program()} verify {file} {model}`")
    if compiling.lower_3d and file is not None:
        raise click.UsageError("--lower-3d changes the model when compiling: leave it out, or leave out PLAN")
    if compiling.precision != "f32" and file is not None:
        raise click.UsageError("--precision rounds products when compiling: leave it out, or leave out PLAN")
    if compiling.strict and file is not None:
        raise click.UsageError("--strict refuses models when compiling: leave it out, or leave out PLAN")
    with working(f"compiling {model}"):
        options = compiler.Options(**compiling.options)
        plan = compile_stored(model, options) if file is None else compiler.Plan.load(file)
    is_other = file is not None and not arguments.is_of(plan, model)
    if is_other:
        warning = f"warning: {file} is not the plan of {model}, or the model has changed"
        errors.print(warning, style="yellow", soft_wrap=True)
    return plan, is_other


def _advice(plan: Plan, given: Given) -> str:
    """The advice for outputs that differ."""
    passes = plan.document["passes"]
    if not {"halve_products", "quantize_products", "round_products"}.isdisjoint(passes):
        return ADVICE_ON_PRECISION
    if "quantize_weights" in passes:
        return ADVICE_ON_WEIGHTS
    return f"{ADVICE}\n{ADVICE_ON_INPUTS}" if given.is_random else ADVICE


@contextmanager
def _suggest_plan(is_other: bool) -> Iterator[None]:
    """Suggest the plan of the model if a comparison with another plan fails."""
    from compiler import InputError
    from compiler.accuracy.reference import ReferenceFailed

    try:
        yield
    except (InputError, ReferenceFailed) as error:
        if not is_other:
            raise
        raise Failed(f"{error}\n  help: pass the plan of this model") from error


def show(
    report: Report,
    layers: Sequence[Layer] | None,
    as_json: bool,
    *,
    says_device: bool = False,
    advice: str = ADVICE,
) -> None:
    """Print a comparison of outputs, and of intermediate values if there is one. Advice follows if outputs differ."""
    if as_json:
        document = {
            "ok": report.ok,
            "equal": report.equal,
            "device": report.device,
            "note": report.note,
            "outputs": [output_data(each) for each in report.outputs],
        }
        print_json(document if layers is None else {**document, "layers": [layer_data(each) for each in layers]})
        return
    if layers is not None:
        _show_layers(layers)
    table(COMPARISON_COLUMNS, (comparison_cells(each) for each in report.outputs))
    for each in report.outputs:
        for line in _remarks(each):
            console.print(f"{each.name}: {line}", style="" if each.ok else "red", soft_wrap=True)
    if report.note:
        console.print(report.note, soft_wrap=True)
    style = "green" if report.equal else "yellow" if report.ok else "red"
    where = f"on {report.device}, " if says_device else ""
    console.print(where + report.summary, style=style, soft_wrap=True)
    if not report.ok:
        console.print(advice, soft_wrap=True)


def _show_layers(layers: Sequence[Layer]) -> None:
    """Print the number of equal values, and the first different one."""
    from compiler.accuracy.compare import counted

    first = next((each for each in layers if each.output.verdict not in ("equal", "random")), None)
    if first is not None:
        show_step(first)
    said = counted([each.output.verdict for each in layers], "value")
    console.print(f"intermediate values: {said}\n", soft_wrap=True)


def show_step(first: Layer) -> None:
    """Print the first value that differs, and its step."""
    table(("", "first to differ", *COMPARISON_COLUMNS[2:]), [comparison_cells(first.output)])
    console.print(f"step {first.step}, {first.op}   {first.origin}", soft_wrap=True)
    if said := first.output.problem or first.output.note:
        console.print(said, style="red", soft_wrap=True)


def layer_data(layer: Layer) -> dict[str, Any]:
    """The comparison of an intermediate value as JSON."""
    return {"step": layer.step, "op": layer.op, "origin": layer.origin, **output_data(layer.output)}


def output_data(output: Comparison) -> dict[str, Any]:
    """The comparison of an output as JSON."""
    # `doubt` is the former name of `reference_noise`.
    return {**asdict(output), "doubt": output.reference_noise, "verdict": output.verdict, "ok": output.ok}


def comparison_cells(output: Comparison) -> list[Cell]:
    """The cells of a comparison, below `COMPARISON_COLUMNS`."""
    if output.problem:  # no values were compared
        shape = f"{shape_text(output.shape)}: {output.problem}"
        return [MARKS[output.verdict], output.name, output.dtype, shape, "", "", "", ""]
    ulp = str(output.max_ulp) if output.max_ulp <= MOST_ULP else f"> {MOST_ULP:,}"
    numbers = [f"{output.max_abs:.1e}", f"{output.max_rel:.1e}", ulp, f"{output.allowed:.1e}"]
    return [MARKS[output.verdict], output.name, output.dtype, shape_text(output.shape), *numbers]


def _remarks(output: Comparison) -> list[str]:
    """The remarks on an output that is not equal."""
    if output.verdict == "random":
        return ["random numbers differ between any two programs; dtype and shape are the same"]
    said = [each for each in (output.problem, "" if output.verdict == "equal" else output.note) if each]
    if output.reference_noise > output.allowed:
        said.append(
            f"onnxruntime's results with and without its optimizations differ by {output.reference_noise:.1e}; "
            f"the output is {output.nearest:.1e} from the nearer one"
        )
    if output.error is not None and output.reference_error is not None:
        said.append(
            f"against this compiler's result in double precision, the output's error is {output.error:.1e}, "
            f"onnxruntime's {output.reference_error:.1e}"
        )
    return said
