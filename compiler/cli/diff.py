"""`candlec diff`: show what differs between two models or plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.output import json_option, print_json, working

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler import Plan, TensorInfo


@click.command()
@click.argument("before", type=arguments.INPUT)
@click.argument("after", type=arguments.INPUT)
@click.option("--plans", is_flag=True, help="Compile models, and compare the plans instead of the models.")
@click.option("--run", "runs", is_flag=True, help="Also run both on the same random inputs, and compare the results.")
@arguments.input_option
@arguments.size_option
@arguments.seed_option
@arguments.tolerance_option
@arguments.pin_option
@arguments.threads_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    before: Path,
    after: Path,
    plans: bool,
    runs: bool,
    inputs: tuple[str, ...],
    sizes: dict[str, int],
    seed: int,
    dims: dict[str, int],
    tolerance: float | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Show what differs between BEFORE and AFTER: two models, two plans, or a model and a plan.

    For two models, the command shows the inputs, outputs, nodes, constants and opsets that differ. If one of them is a
    plan, or with --plans, it compiles the models and compares the plans: also their sizes, their operations
    (multiplications and additions), the memory of a run, and the forms of the kernels on this processor. The graphs
    that `candlec compile --dump-passes` writes are models: compare two of them to see what a pass has changed.

    Nodes correspond if they compute the same from the same inputs. The command uses names of intermediate values only
    to match the remaining nodes. It does not report values that differ only in their names. A constant that
    corresponds to another one is `changed` if its elements differ. The graphs of If, Loop and Scan count as
    attributes of their nodes. The command shows such an attribute as its number of nodes and a digest.

    With --run or --input, the command also runs both on the same inputs. It shows the largest differences of each
    output from BEFORE: absolute, relative to the element, and in units in the last place. The mark ✓ means that the
    difference is at most the tolerance. It also compares the intermediate values that both name, and shows the first
    that differs. If it compares plans, it runs these plans. Otherwise, it compiles both models without optimization
    to run them.

    The exit code is 0 if nothing differs, and 1 if something does. It is 1 even for a difference within the tolerance
    (✓).

    \b
    candlec diff old.onnx new.onnx
    candlec diff old.onnx new.onnx --plans --dim batch=1
    candlec diff old.plan new.onnx --run --size batch=4
    candlec diff passes/058-fold_batch_norm.onnx passes/062-fuse_epilogues.onnx --input io.npz
    """
    from compiler.cli.tables.diff import numbers_data, show
    from compiler.diff import difference

    runs = runs or bool(inputs)
    _check_usage((before, after), runs, plans, sizes, dims)

    def given(declared: Sequence[TensorInfo]) -> Mapping[str, Any]:
        return arguments.given_inputs(declared, inputs, sizes, seed)

    with working(f"comparing {before} with {after}"):
        found = difference(
            _read(before),
            _read(after),
            plans=plans,
            inputs=given if runs else None,
            dims=dims,
            threads=threads,
            tolerance=tolerance,
        )
    if as_json:
        print_json({"ok": found.is_equal, **found.data, "numbers": numbers_data(found.numbers)})
    else:
        show(str(before), str(after), found)
    context.exit(0 if found.is_equal else 1)


def _check_usage(
    files: Sequence[Path], runs: bool, plans: bool, sizes: Mapping[str, int], dims: Mapping[str, int]
) -> None:
    """Refuse options that would have no effect."""
    if sizes and not runs:
        raise click.UsageError("--size sets sizes of random inputs: add --run")
    count = sum(map(arguments.is_plan, files))
    if dims and count == len(files):
        raise click.UsageError("--dim fixes sizes at compile time, and both files are plans: leave --dim out")
    if dims and not (count or plans or runs):
        raise click.UsageError("--dim fixes sizes at compile time: add --plans to compile the models")


def _read(file: Path) -> Path | Plan:
    """The plan in a file, or the path of a model."""
    from compiler import Plan

    return Plan.load(file) if arguments.is_plan(file) else file
