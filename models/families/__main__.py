"""`python -m models.families`: exports small models of many families to a folder for `candlec zoo`.

Each export runs in a process of its own. It stays until its recipe, the code of exports or the version of a package
changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from compiler.processes.run import Limits, run_tasks, usable_processors
from models.families.catalog import LEDGER, recipes, unexportable
from models.families.exporting import export_task, files
from models.families.recipe import Recipe

console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/families"), show_default=True)
@click.option("--jobs", type=click.IntRange(1), help="The number of processes.  [default: one per processor]")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds per model.")
def main(names: tuple[str, ...], folder: Path, jobs: int | None, timeout: float) -> None:
    """Export the named models, by default all, to FOLDER, with inputs and an INDEX.json.

    models/families/unexportable.toml lists the models that PyTorch cannot export. It is an error if the export of
    another model fails, or if the export of one of these models succeeds.
    """
    known = recipes()
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"there is no model {unknown[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [known[name] for name in names or known if not files(known[name], folder)[0].exists()]
    wrong = list(_failures(missing, folder, jobs or usable_processors(), timeout))
    exported = [recipe for recipe in known.values() if files(recipe, folder)[0].exists()]
    index = [_entry(recipe, folder) for recipe in exported]
    (folder / "INDEX.json").write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n")
    console.print(f"{folder / 'INDEX.json'} lists {len(exported)} models")
    for sentence in wrong:
        console.print(f"✗ {sentence}")
    sys.exit(1 if wrong else 0)


def _failures(chosen: list[Recipe], folder: Path, jobs: int, timeout: float) -> Iterator[str]:
    """Export the models, and yield a sentence for each result that the ledger does not expect."""
    expected = unexportable()
    tasks = [(recipe, folder) for recipe in chosen]
    endings = run_tasks(export_task, tasks, jobs=jobs, limits=Limits(seconds=timeout), modules=["models.families.warm"])
    for number, (index, ending) in enumerate(endings, 1):
        name = chosen[index].name
        said = ending.sentence or f"{files(chosen[index], folder)[0].stat().st_size / 1e6:.1f} MB"
        console.print(f"{number}/{len(tasks)} {name}: {said[:200]} ({ending.seconds:.0f} s)")
        if ending.kind == "done" and name in expected:
            yield f"{name} is exported now: remove its line from {LEDGER}"
        elif ending.kind != "done" and name not in expected:
            yield f"{name}: {said}"


def _entry(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """The entry of the index."""
    model, *cases = files(recipe, folder)
    return {
        "name": recipe.name,
        "file": model.name,
        "source": str(recipe.network),
        "tags": [recipe.library, *recipe.tags],
        "cases": [case.name for case in cases],
    }


if __name__ == "__main__":
    main()
