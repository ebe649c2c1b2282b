"""`candlec diff`: show what differs between two models or plans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.custom import custom_option
from compiler.cli.input_options import Given, input_option, seed_option, size_option
from compiler.cli.option_groups import grouped
from compiler.cli.output import json_option, print_json, working, write_text
from compiler.cli.renamed import Verb
from compiler.cli.streams import encodable
from compiler.cli.target import check_page
from compiler.cli.volumes import lower_when_compiling

if TYPE_CHECKING:
    from compiler import Plan
    from compiler.diff import Difference


@dataclass(frozen=True)
class Comparison:
    """The objects to compare: the files, or the plans of models; and whether to run both on the same inputs."""

    plans: bool
    runs: bool
    inputs: tuple[str, ...]
    sizes: dict[str, int]
    seed: int
    tolerance: float | None
    dims: dict[str, int]
    lower_3d: bool
    strict: bool
    threads: int | None

    def difference(self, before: Path, after: Path) -> Difference:
        """What differs between two files."""
        from compiler.diff import difference

        runs = self.runs or bool(self.inputs)
        self._check_usage((before, after), runs)
        given = Given(self.inputs, self.sizes, self.seed)
        with working(f"comparing {before} with {after}"):
            return difference(
                _read(before),
                _read(after),
                plans=self.plans,
                inputs=given.arrays if runs else None,
                dims=self.dims,
                lower_3d=self.lower_3d,
                strict=self.strict,
                threads=self.threads,
                tolerance=self.tolerance,
            )

    def _check_usage(self, files: tuple[Path, Path], runs: bool) -> None:
        """Refuse options that would have no effect."""
        if self.sizes and not runs:
            raise click.UsageError("--size sets sizes of random inputs: add --run")
        count = sum(map(arguments.is_plan, files))
        if self.dims and count == len(files):
            raise click.UsageError("--dim fixes sizes at compile time, and both files are plans: leave --dim out")
        if self.dims and not (count or self.plans or runs):
            raise click.UsageError("--dim fixes sizes at compile time: add --plans to compile the models")
        if self.lower_3d and count == len(files):
            raise click.UsageError("--lower-3d changes models when compiling, and both files are plans: leave it out")
        if self.lower_3d and not (count or self.plans or runs):
            raise click.UsageError("--lower-3d changes models when compiling: add --plans to compile them")


comparison_options = grouped(
    "comparison",
    Comparison,
    click.option("--plans", is_flag=True, help="Compile models, and compare the plans instead of the models."),
    click.option(
        "--run", "runs", is_flag=True, help="Also run both on the same random inputs, and compare the results."
    ),
    input_option,
    size_option,
    seed_option,
    arguments.tolerance_option,
    arguments.pin_option,
    lower_when_compiling,
    arguments.strict_option,
    custom_option,
    arguments.threads_option,
)


@click.command(cls=Verb)
@click.argument("before", type=arguments.INPUT)
@click.argument("after", type=arguments.INPUT)
@comparison_options
@click.option("--report", type=arguments.OUTPUT, metavar="FILE.html", help="Also write what differs as an HTML page.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    before: Path,
    after: Path,
    comparison: Comparison,
    report: Path | None,
    as_json: bool,
) -> None:
    """Show what differs between BEFORE and AFTER: two models, two plans, or a model and a plan.

    For two models, the command shows the inputs, outputs, nodes, constants and opsets that differ. With --plans, or if
    one of the files is a plan, the command compiles the models and compares the plans. It then also compares the sizes
    of the plans, their operations (multiplications and additions), the memory of a run, and the forms of the kernels on
    this processor. The graphs that `candlec compile --dump-passes` writes are models: compare two of them to see what a
    pass has changed.

    Nodes correspond if they compute the same function of the same inputs. The command uses names of intermediate values
    only to match the remaining nodes. It does not report values that differ only in their names. A constant that
    corresponds to another one is `changed` if its elements differ. The graphs of If, Loop and Scan count as attributes
    of their nodes. The command shows such an attribute as its number of nodes and a digest.

    With --run or --input, the command also runs both on the same inputs. It shows the largest differences of each
    output from BEFORE: absolute, relative to the element, and in units in the last place. The mark ✓ means that the
    difference is at most the tolerance. It also compares the intermediate values that correspond, and shows the first
    difference. If it compares plans, it runs these plans. Otherwise, it compiles both models without optimization to
    run them.

    With --report, the command also writes a page with all differences. It groups the nodes by PyTorch module. The page
    needs no other file and no network.

    The exit code is 0 if nothing differs, and 1 if something does. It is 1 even for a difference within the tolerance
    (✓).

    \b
    candlec diff old.onnx new.onnx
    candlec diff old.onnx new.onnx --plans --dim batch=1
    candlec diff old.plan new.onnx --run --size batch=4
    candlec diff old.plan new.plan --report diff.html
    candlec diff passes/058-fold_batch_norm.onnx passes/062-fuse_epilogues.onnx --input io.npz
    """
    from compiler.cli.tables.diff import numbers_data, show

    arguments.check_outputs({"--report": report}, [before, after])
    check_page(report)
    found = comparison.difference(before, after)
    if report is not None:
        _write_page(report, before, after, found)
    if as_json:
        print_json({"ok": found.is_equal, **found.data, "numbers": numbers_data(found.numbers)})
    else:
        show(str(before), str(after), found)
    context.exit(0 if found.is_equal else 1)


def _write_page(path: Path, before: Path, after: Path, found: Difference) -> None:
    """Write the difference as an HTML page."""
    from compiler.cli.tables.diff import summary
    from compiler.page.difference import difference_data
    from compiler.page.write import html_of

    names = encodable(str(before)), encodable(str(after))
    write_text(path, html_of(difference_data(*names, found, f"{summary(*names, found)}."), "difference"))


def _read(file: Path) -> Path | Plan:
    """The plan in a file, or the path of a model."""
    from compiler import Plan

    return Plan.load(file) if arguments.is_plan(file) else file
