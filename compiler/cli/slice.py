"""`candlec zoo slice`: choose models that cover every operator, rule and kernel form of a zoo."""

from __future__ import annotations

from pathlib import Path

import click

from compiler.cli import arguments
from compiler.cli.compare import records_of
from compiler.cli.failure import Failed
from compiler.cli.output import errors, json_option, print_json
from compiler.cli.renamed import Verb
from compiler.cli.streams import echo


@click.command(cls=Verb, short_help="Choose models that cover every operator, rule and kernel form.")
@click.argument("file", type=arguments.INPUT)
@click.option(
    "--overhead",
    type=arguments.Finite(min=0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that a model takes in addition to its checks, such as its export.",
)
@json_option
def command(file: Path, overhead: float, as_json: bool) -> None:
    """Print the names of a few models that together cover every operator, rule and kernel form in FILE.

    FILE is a file of results (`candlec zoo run --results`) or a file of facts (`candlec zoo update --facts`). The name
    of a file of facts ends with .toml. The operators are the operators of the plans. FILE may have kernel forms for
    several instruction-set levels. The same form at two levels counts as two forms. A chain of fused operators, such as
    MatMul + Add + Gelu, counts as its pairs of neighbors: MatMul + Add and Add + Gelu. A model that the compiler
    refuses has no operators, rules or forms.

    The command chooses the models by the times in the file of results, so that their checks take little time. Without
    times, it chooses few models. Equal files give the same models. With --overhead, it chooses fewer models if their
    checks take only a little longer.

    \b
    candlec zoo run --results zoo.jsonl
    candlec zoo slice zoo.jsonl > slice.txt
    candlec zoo slice zoo.jsonl --overhead 10 > slice.txt
    candlec zoo run --only @slice.txt
    """
    from compiler.zoo.slice import slice_of

    made = slice_of(records_of(file), overhead)
    if not made.models:
        raise Failed(f"{file} has no facts of plans: write it with `candlec zoo run --results` or `update --facts`")
    if as_json:
        print_json({"ok": True, **made.data})
        return
    for name in made.models:
        echo(name)
    counts = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in made.counts.items())
    own, whole = made.seconds
    time = "" if own is None or whole is None else f", in {own:,.1f} of {whole:,.1f} s"
    errors.print(f"{len(made.models)} of {len(made.whole)} models{time}: {counts}", soft_wrap=True)
