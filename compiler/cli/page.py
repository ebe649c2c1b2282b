"""`candlec zoo page`: the results of one or more runs as an HTML file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import console
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(cls=Verb, short_help="Write the results as an HTML page.")
@click.argument("results", nargs=-1, required=True, type=arguments.INPUT)
@click.option(
    "-o",
    "--output",
    type=arguments.OUTPUT,
    default="page.html",
    show_default=True,
    metavar="FILE",
    help="HTML file to write.",
)
@click.option("--title", default="Models", show_default=True, metavar="TEXT", help="Title of the page.")
def command(results: tuple[Path, ...], output: Path, title: str) -> None:
    """Show the results of `candlec zoo run` on an HTML page. RESULTS are files that its option --results wrote.

    The page has a table of the models, with a column for each variant: a combination of optimization and threads. The
    reader can sort this table, and filter it, for example by the `tags` in INDEX.json. Each model has a view with its
    results, the differences of its outputs, the compiler's diagnostics, and the facts of its plan. If the results come
    from `zoo run --profile`, the view also has the time of each layer, operator and step, and the memory in use at each
    step.

    Name several files from the oldest to the newest: the page then draws the history of each number as a line. The
    files may have several kinds of checks: with pinned or unpinned shapes, on the CPU or on a GPU. For each kind, the
    page shows the results in the newest file that has this kind.

    The page needs no other file and no network. A browser opens it from the disk, and a server such as GitHub Pages may
    publish it. It contains the names of models, of layers and of source files.

    \b
    candlec zoo run --zoo models --results zoo.jsonl --profile
    candlec zoo page zoo.jsonl -o page.html
    candlec zoo page monday.jsonl tuesday.jsonl wednesday.jsonl -o page.html --title "Nightly models"
    """
    from compiler.page.results import write_page
    from compiler.zoo.results import read_results

    arguments.check_outputs({"--output": output}, results)
    names = _names(results)
    try:
        count = write_page(output, title, dict(zip(names, map(read_results, results), strict=True)))
    except ValueError as error:
        raise Failed(str(error)) from error
    console.print(f"{output}: {count} model{'s' * (count != 1)}", soft_wrap=True)


def _names(paths: Sequence[Path]) -> list[str]:
    """The names of the files in the page: without folder and suffix, unless two files would have the same name."""
    twice = [path for path, count in Counter(paths).items() if count > 1]
    if twice:
        raise click.UsageError(f"{twice[0]} is named twice")
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
