"""`candlec zoo precision`: the rounding errors of plans and of onnxruntime against double precision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.folder import Selection, folder_options, runner_options
from compiler.cli.output import Cell, console, json_option, markdown, print_json, table, write_text
from compiler.cli.progress import Models
from compiler.cli.renamed import Verb
from compiler.cli.zoo_problems import exit_code, show_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.zoo.index import Entry
    from compiler.zoo.precision import Precision
    from compiler.zoo.task_runs import TaskSettings

COLUMNS = ("model", ">cases", ">plan", ">onnxruntime", ">ratio")
NOT_MEASURED = "not measured, without a form in double precision or without floating-point outputs"


ratio_option = click.option(
    "--at-most",
    type=arguments.Finite(0, min_open=True),
    default=3.0,
    show_default=True,
    metavar="X",
    help="Largest allowed ratio of a plan's error to onnxruntime's error.",
)
page_option = click.option(
    "--markdown",
    "page",
    type=arguments.OUTPUT,
    metavar="FILE",
    help="Write the table and the command to a Markdown file.",
)


@click.command(cls=Verb, short_help="Compare rounding errors with onnxruntime's.")
@folder_options
@ratio_option
@page_option
@runner_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    selection: Selection,
    at_most: float,
    page: Path | None,
    settings: TaskSettings,
    as_json: bool,
) -> None:
    """Measure the rounding errors of each model's plan and of onnxruntime against the model in double precision.

    An error is the largest difference divided by the output's largest magnitude. The command reports the largest error
    of all outputs for all inputs, and the ratio of the plan's error to onnxruntime's. In this ratio, an error below
    1.2e-7, which is one rounding of float32, counts as 1.2e-7. The errors of a quantized model are unknown,
    because it cannot be computed in double precision.

    Each model has a process of its own: `candlec zoo run --help` describes the options for it. The exit code is 1 if a
    ratio is more than --at-most, or if a model cannot be measured, crashes or reaches a limit.

    \b
    candlec zoo precision
    candlec zoo precision --zoo ../zoo --jobs 4 --timeout 300
    candlec zoo precision --zoo ../zoo --markdown precision.md
    """
    from compiler.zoo.precision import precisions

    entries = selection.entries(settings)
    arguments.check_outputs({"--markdown": page, "--results": settings.results}, selection.files(entries))
    with Models(results=settings.results) as progress:
        made = precisions(entries, at_most, settings, progress)
    found = {entry.name: each for entry, each in zip(entries, made, strict=True)}
    problems = {name: [each.problem] for name, each in found.items() if each.problem}
    endings = {name: each.ending for name, each in found.items()}
    if page is not None:
        write_text(page, _page(entries, found))
    if as_json:
        print_json({"ok": not problems, "at_most": at_most, **_data(found)})
    else:
        table(COLUMNS, _rows(entries, found))
        console.print(_summary(found), soft_wrap=True)
        show_problems(problems, endings)
    context.exit(exit_code(endings, not problems))


def _rows(entries: Sequence[Entry], found: Mapping[str, Precision]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for entry in entries:
        errors = found[entry.name].errors
        cells = (
            ["–"] * 3 if errors is None else [f"{errors.plan:.1e}", f"{errors.reference:.1e}", f"{errors.ratio:.2f}"]
        )
        rows.append([entry.name, str(len(entry.cases)), *cells])
    return rows


def _summary(found: Mapping[str, Precision]) -> str:
    """The worst ratio, and the models without one."""
    ratios = {name: each.errors.ratio for name, each in found.items() if each.errors is not None}
    skipped = [name for name, each in found.items() if each.errors is None and not each.problem]
    worst = max(ratios, key=lambda name: ratios[name], default=None)
    said = [] if worst is None else [f"worst error ÷ onnxruntime's: {ratios[worst]:.2f} ({worst})"]
    return "; ".join([*said, *([f"{NOT_MEASURED}: {', '.join(skipped)}"] if skipped else [])])


def _data(found: Mapping[str, Precision]) -> dict[str, Any]:
    failed = {name: each.problem for name, each in found.items() if each.problem and each.errors is None}
    return {"models": {name: _errors(each) for name, each in found.items()}, "failed": failed}


def _errors(each: Precision) -> dict[str, float] | None:
    if each.errors is None:
        return None
    return {"plan": each.errors.plan, "onnxruntime": each.errors.reference, "ratio": each.errors.ratio}


def _page(entries: Sequence[Entry], found: Mapping[str, Precision]) -> str:
    from compiler.bench.machine import described, in_words

    command = " ".join(["candlec", *sys.argv[1:]])
    legend = "Largest errors against double precision, as a fraction of the output's largest magnitude."
    machine = f"{in_words(described(['onnxruntime']))}. {legend}"
    title = "# Rounding errors beside onnxruntime"
    parts = [title, f"`{command}`", machine, markdown(COLUMNS, _rows(entries, found)), f"- {_summary(found)}"]
    return "\n\n".join(parts) + "\n"
