"""`candlec check`: can a model be compiled, and if not, what is in the way?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.failure import diagnostic_data, show_diagnostics
from compiler.cli.output import RIGHT, WRONG, Cell, console, json_option, print_json, table, working

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler import Diagnostic, Options


@click.command(short_help="Say whether a model can be compiled.")
@click.argument("model", type=click.Path(path_type=Path))
@arguments.pin_option
@json_option
@click.pass_context
def command(context: click.Context, model: Path, sizes: dict[str, int], as_json: bool) -> None:
    """Say for every operator of MODEL whether it can be compiled, and for each node in the way, why not and where.

    Nothing is written. Exit code 1 when the model cannot be compiled.

    \b
    candlec check model.onnx
    candlec check model.onnx --json
    """
    import compiler

    with working(f"checking {model}"):
        counts = _operators(model)
        findings = _findings(model, compiler.Options(optimize=False, dims=sizes))
    if as_json:
        print_json(
            {"ok": not findings, "operators": counts, "diagnostics": [diagnostic_data(each) for each in findings]}
        )
    else:
        _show(counts, findings)
    context.exit(1 if findings else 0)


def _findings(model: Path, options: Options) -> Sequence[Diagnostic]:
    import compiler

    try:
        compiler.compile(model, options)
    except compiler.CompileError as error:
        return error.diagnostics
    return ()


def _operators(model: Path) -> Counter[str]:
    """How many nodes of each operator the model has, those of nested graphs too."""
    from compiler.loader import load

    return Counter(node.op_type for node in load(model).model.graph.all_nodes())


def _show(counts: Counter[str], findings: Sequence[Diagnostic]) -> None:
    """One row an operator, then the findings."""
    nodes = Counter(node.partition("(")[0] for each in findings if each.origin for node in each.origin.nodes)
    rows: Iterator[list[Cell]] = (
        [WRONG if nodes[name] else RIGHT, name, str(count), str(nodes[name] or "")]
        for name, count in counts.most_common()
    )
    table(("", "operator", ">nodes", ">refused"), rows)
    if findings:
        show_diagnostics(findings)
    else:
        console.print("can be compiled", style="green")
