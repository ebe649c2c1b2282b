"""`candlec zoo update`: write the known differences of the models of a folder to a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.ended import exit_code, show_problems
from compiler.cli.folder import entries_of, files_of, folder_options, known_differences, runner_options
from compiler.cli.output import console, json_option, print_json
from compiler.cli.progress import Models
from compiler.cli.renamed import Verb

if TYPE_CHECKING:
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.batch import Settings


@click.command(cls=Verb, short_help="Write the known differences to a baseline.")
@folder_options
@click.option("--baseline", type=arguments.OUTPUT, required=True, metavar="FILE", help="Baseline file to write.")
@runner_options
@json_option
@click.pass_context
def command(
    context: click.Context, folder: Path, only: tuple[str, ...], baseline: Path, settings: Settings, as_json: bool
) -> None:
    """Check the models as `candlec zoo run` does, with and without --unpin, and write the differences to a baseline.

    The command keeps the reasons in the file, and the entries that are still correct. The reason of a new entry is the
    measured difference; you can replace it with a better one. The command removes the entries of models
    whose results equal onnxruntime's, and of models that INDEX.json no longer lists. With --only, it changes only the
    entries of these models. Review the changes to the file.

    Each model has a process of its own: `candlec zoo run --help` describes the options for it.

    The exit code is 1 if a model cannot be checked, crashes or reaches a limit, or if its difference cannot be
    measured, for example because an output has another shape. The entries of such models stay unchanged.

    \b
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    candlec zoo update --zoo ../zoo --baseline zoo.toml --jobs 4 --results update.jsonl --resume
    """
    from compiler.zoo.baseline import write_baseline
    from compiler.zoo.renewal import renewals

    entries = entries_of(folder, only, settings)
    arguments.check_outputs({"--baseline": baseline, "--results": settings.results}, files_of(folder, entries))
    known = known_differences(baseline if baseline.exists() else None)
    with Models(results=settings.results) as progress:
        made = renewals(entries, known, settings, progress)
    found = {entry.name: each for entry, each in zip(entries, made, strict=True)}
    endings = {name: each.ending for name, each in found.items()}
    kept = {name: each for name, each in known.items() if only and name not in found}
    after = kept | {name: each.known for name, each in found.items() if each.known is not None}
    write_baseline(baseline, after)
    changed = {name: (known.get(name), after.get(name)) for name in sorted(known.keys() | after.keys())}
    changes = {name: _change(*pair) for name, pair in changed.items() if pair[0] != pair[1]}
    failed = {name: each.problem for name, each in found.items() if each.problem}
    if as_json:
        print_json({"ok": not failed, "known": len(after), "changes": changes, "failed": failed})
    else:
        for name, change in changes.items():
            console.print(f"{name}: {change}", soft_wrap=True)
        models = f"{len(after)} {'model' if len(after) == 1 else 'models'}"
        console.print(f"{baseline}: {models} with known differences", soft_wrap=True)
        show_problems({name: [problem] for name, problem in failed.items()}, endings)
    context.exit(exit_code(endings, not failed))


def _change(before: KnownDifference | None, after: KnownDifference | None) -> str:
    """The change of an entry of the baseline, in words."""
    if after is None:
        return "removed"
    bounds = {
        shapes: "" if line.codes else f", at most {line.at_most:g} ×" for shapes, line in after.expectations.items()
    }
    lines = (f"{shapes} {line}{bounds[shapes]}" for shapes, line in after.expectations.items())
    return f"{'changed' if before else 'new'}: {'; '.join(lines)}"
