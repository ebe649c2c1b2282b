"""`candlec explain`: the meaning of an error code."""

from __future__ import annotations

import textwrap

import click

from compiler.cli.output import console, json_option, print_json, table
from compiler.cli.renamed import Verb

WIDTH = 80


@click.command(cls=Verb)
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """Explain the error code CODE, for example CC0301; without CODE, list every code.

    \b
    candlec explain CC0301
    candlec explain
    """
    from compiler.errors import PAGES, program

    wanted = PAGES.keys() if code is None else {code.upper()} & PAGES.keys()
    if not wanted:
        raise click.BadParameter(f"there is no code {code!r}; `{program()} explain` lists them", param_hint="CODE")
    if as_json:
        print_json({"ok": True, "codes": {each: PAGES[each]._asdict() for each in sorted(wanted)}})
    elif code is None:
        table(
            ("code", "meaning"), ((each, page.meaning.partition(". ")[0].rstrip(".")) for each, page in PAGES.items())
        )
    else:
        page = PAGES[code.upper()]
        console.print(f"{code.upper()}\n", style="bold")
        for text in (page.meaning, f"What to do: {page.advice}"):
            console.print(textwrap.fill(text.replace("`candlec ", f"`{program()} "), WIDTH) + "\n", soft_wrap=True)
