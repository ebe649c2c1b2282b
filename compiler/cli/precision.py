"""`candlec zoo precision`: the rounding errors of plans and of onnxruntime against double precision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from compiler.atomic_files import write_whole
from compiler.cli import arguments
from compiler.cli.folder import entries_of, files_of, folder_options
from compiler.cli.output import Cell, console, errors, json_option, markdown, print_json, table, working
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.accuracy.precision import Errors
    from compiler.zoo.index import Entry

COLUMNS = ("model", ">cases", ">plan", ">onnxruntime", ">ratio")
NOT_MEASURED = "not measured, without a form in double precision or without floating-point outputs"


@click.command(cls=Verb, short_help="Compare rounding errors with onnxruntime's.")
@folder_options
@click.option(
    "--at-most",
    type=arguments.Finite(0, min_open=True),
    default=3.0,
    show_default=True,
    metavar="X",
    help="Largest ratio of a plan's error to onnxruntime's error.",
)
@click.option(
    "--markdown",
    "page",
    type=arguments.OUTPUT,
    metavar="FILE",
    help="Write the table and the command to a Markdown file.",
)
@json_option
@click.pass_context
def command(
    context: click.Context, folder: Path, names: tuple[str, ...], at_most: float, page: Path | None, as_json: bool
) -> None:
    """Measure the rounding errors of each model's plan and of onnxruntime against the model in double precision.

    An error is the largest difference divided by the output's largest magnitude. The command reports the largest error
    of all outputs for all inputs, and the ratio of the plan's error to onnxruntime's. In this ratio, an error below
    1.2e-7, which is one rounding of float32, counts as 1.2e-7. The errors of a quantized model are unknown,
    because it cannot be computed in double precision. The exit code is 1 if a ratio is more than --at-most.

    \b
    candlec zoo precision
    candlec zoo precision --zoo ../zoo --markdown precision.md
    """
    entries = entries_of(folder, names)
    arguments.check_outputs({"--markdown": page}, files_of(folder, entries))
    found = {entry.name: _measured(entry) for entry in entries}
    is_right = all(errors is None or errors.ratio <= at_most for errors in found.values())
    if page is not None:
        write_whole(page, _page(entries, found).encode())
    if as_json:
        print_json({"ok": is_right, "at_most": at_most, "models": {name: _data(each) for name, each in found.items()}})
    else:
        table(COLUMNS, _rows(entries, found))
        console.print(_summary(found), soft_wrap=True)
        for name, each in found.items():
            if each is not None and each.ratio > at_most:
                problem = f" {name}: its error is {each.ratio:.2f} times onnxruntime's, more than --at-most {at_most:g}"
                errors.print(Text.assemble(("error:", "bold red"), problem), soft_wrap=True)
    context.exit(0 if is_right else 1)


def _measured(entry: Entry) -> Errors | None:
    """The worst errors of all cases."""
    import compiler
    from compiler.accuracy.precision import errors_of, exact_outputs, together
    from compiler.accuracy.reference import Reference
    from compiler.zoo.index import with_shapes

    reference, measured = Reference(entry.path), []
    for case in entry.cases:
        with working(f"{entry.name}, {case.stem}"):
            inputs = entry.inputs(case)
            model = with_shapes(entry.path, {name: array.shape for name, array in inputs.items()})
            found, exact = compiler.load(compiler.compile(model)).run(inputs), exact_outputs(model, inputs)
            each = None if exact is None else errors_of(exact, found, reference.run(inputs))
        if each is None:
            return None
        measured.append(each)
    return together(measured)


def _rows(entries: Sequence[Entry], found: dict[str, Errors | None]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for entry in entries:
        errors = found[entry.name]
        cells = (
            ["–"] * 3 if errors is None else [f"{errors.plan:.1e}", f"{errors.reference:.1e}", f"{errors.ratio:.2f}"]
        )
        rows.append([entry.name, str(len(entry.cases)), *cells])
    return rows


def _summary(found: dict[str, Errors | None]) -> str:
    """The worst ratio, and the models without one."""
    ratios = {name: errors.ratio for name, errors in found.items() if errors is not None}
    skipped = [name for name, errors in found.items() if errors is None]
    worst = max(ratios, key=lambda name: ratios[name], default=None)
    said = [] if worst is None else [f"worst error ÷ onnxruntime's: {ratios[worst]:.2f} ({worst})"]
    return "; ".join([*said, *([f"{NOT_MEASURED}: {', '.join(skipped)}"] if skipped else [])])


def _data(errors: Errors | None) -> dict[str, Any] | None:
    if errors is None:
        return None
    return {"plan": errors.plan, "onnxruntime": errors.reference, "ratio": errors.ratio}


def _page(entries: Sequence[Entry], found: dict[str, Errors | None]) -> str:
    from compiler.bench.machine import described, in_words

    command = " ".join(["candlec", *sys.argv[1:]])
    legend = "Largest errors against double precision, as a fraction of the output's largest magnitude."
    machine = f"{in_words(described(['onnxruntime']))}. {legend}"
    title = "# Rounding errors beside onnxruntime"
    parts = [title, f"`{command}`", machine, markdown(COLUMNS, _rows(entries, found)), f"- {_summary(found)}"]
    return "\n\n".join(parts) + "\n"
