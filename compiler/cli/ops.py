"""`candlec ops`: the ONNX operators that can be compiled."""

from __future__ import annotations

import click

from compiler.cli.output import console, json_option, print_json, table


@click.command(short_help="List the ONNX operators that can be compiled.")
@click.argument("names", nargs=-1, metavar="[OPERATOR]...")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List every ONNX operator that can be compiled, with the newest version of it that is understood.

    With OPERATOR, only those; exit code 1 when one of them cannot be compiled.

    \b
    candlec ops
    candlec ops Conv Einsum
    """
    from compiler.lower.node import LOWERINGS

    rows = sorted(
        (domain or "ai.onnx", name, lowering.newest, lowering.function.__module__.rpartition(".")[2])
        for (domain, name), lowering in LOWERINGS.items()
        if not names or name in names
    )
    missing = sorted(set(names) - {name for _, name, _, _ in rows})
    if as_json:
        print_json([dict(zip(("domain", "operator", "newest", "family"), row, strict=True)) for row in rows])
    elif rows:
        table(("operator", ">since version", "family", "domain"), ((n, str(v), f, d) for d, n, v, f in rows))
    for name in missing:
        console.print(f"{name} cannot be compiled", style="red")
    if not as_json and not names:
        console.print(f"{len(rows)} operators")
    click.get_current_context().exit(1 if missing else 0)
