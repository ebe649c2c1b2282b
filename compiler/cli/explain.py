"""`candlec explain`: what a diagnostic's code means."""

from __future__ import annotations

import textwrap

import click

from compiler.cli.output import console, json_option, print_json, table


@click.command(short_help="Explain a diagnostic's code.")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain CODE, such as CC0301; without it, list every code.

    \b
    candlec explain CC0301
    candlec explain
    """
    from compiler.errors import PAGES

    if code is not None and code.upper() not in PAGES:
        raise click.BadParameter(f"there is no code {code!r}; `candlec explain` lists them", param_hint="CODE")
    pages = PAGES if code is None else {code.upper(): PAGES[code.upper()]}
    if as_json:
        print_json(pages)
    elif code is None:
        table(("code", "meaning"), ((each, page.partition(". ")[0].rstrip(".")) for each, page in pages.items()))
    else:
        console.print(f"{code.upper()}\n", style="bold")
        console.print(textwrap.fill(pages[code.upper()], 100), soft_wrap=True)
