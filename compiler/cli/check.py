"""`candlec check`: can a model be compiled, and if not, what is in the way?"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.failure import diagnostic_data, show_diagnostics
from compiler.cli.output import RIGHT, UNKNOWN, WRONG, Cell, console, json_option, print_json, table, working

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compiler import CompileError, Options
    from compiler.origin import Origin


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
        refusal = _refusal(model, compiler.Options(optimize=False, dims=sizes))
    findings = refusal.diagnostics
    if as_json:
        unchecked = [name for place in refusal.unchecked for name in place.nodes]
        data = [diagnostic_data(each) for each in findings]
        print_json({"ok": not findings, "operators": counts, "diagnostics": data, "unchecked": unchecked})
    else:
        _show(counts, refusal)
    context.exit(1 if findings else 0)


def _refusal(model: Path, options: Options) -> CompileError:
    """Why the model cannot be compiled; empty where it can."""
    import compiler

    try:
        compiler.compile(model, options)
    except compiler.CompileError as error:
        return error
    return compiler.CompileError([])


def _operators(model: Path) -> Counter[str]:
    """How many nodes of each operator the model has, those of nested graphs and of functions that it calls too."""
    import compiler
    from compiler.graph import nodes_of
    from compiler.loader import load
    from compiler.passes.inline_functions import inline_functions

    loaded = load(model, []).model
    with contextlib.suppress(compiler.CompileError):  # compiling it says what is wrong with its functions
        inline_functions.run(loaded)
    return Counter(node.op_type for node in nodes_of(loaded))


def _show(counts: Counter[str], refusal: CompileError) -> None:
    """One row an operator, then the findings."""
    places = [each.origin for each in refusal.diagnostics if each.origin]
    refused, unchecked = _by_operator(places), _by_operator(refusal.unchecked)
    rows: Iterator[list[Cell]] = (
        [
            WRONG if refused[name] else UNKNOWN if unchecked[name] else RIGHT,
            name,
            str(count),
            str(refused[name] or ""),
            str(unchecked[name] or ""),
        ]
        for name, count in counts.most_common()
    )
    table(("", "operator", ">nodes", ">refused", ">not checked"), rows)
    if refusal.diagnostics:
        show_diagnostics(refusal.diagnostics)
        if unchecked:
            console.print(
                f"{unchecked.total()} nodes behind these are not checked: too little is known of their inputs"
            )
    else:
        console.print("can be compiled", style="green")


def _by_operator(places: Iterable[Origin]) -> Counter[str]:
    """The number of different nodes at these places, by operator."""
    nodes = {node for place in places for node in place.nodes}
    return Counter(node.partition("(")[0] for node in nodes)
