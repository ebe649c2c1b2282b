"""`candlec zoo`: compile every model of a folder in every way, and compare it with onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from compiler.atomic_files import write_whole
from compiler.cli import arguments, precision
from compiler.cli.failure import Failed
from compiler.cli.folder import entries_of, files_of, folder_options
from compiler.cli.output import Cell, console, errors, json_option, print_json, table, working
from compiler.cli.renamed import Verb
from compiler.cli.verify import MARKS
from compiler.zoo.outcomes import Outcome, Stale, check, judged, stale_expectations, together, variants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.accuracy.compare import Verdict
    from compiler.zoo.baseline import KnownDifference, Shapes
    from compiler.zoo.index import Entry

STYLES: dict[Verdict, str] = {
    "equal": "",
    "random": "",
    "uncertain": "yellow",
    "different": "red",
    "refused": "red",
    "failed": "red",
}


@click.group()
def command() -> None:
    """Check the models of a folder against onnxruntime. The file INDEX.json in the folder lists the models.

    INDEX.json is a list with one object for each model. `name` is the name of the model, `file` is the model file, and
    `cases` lists .npz files of inputs. Paths are relative to the folder. An optional `tolerance`, with its `reason`,
    replaces the tolerance of the dtype. An optional `uncertain` gives the reason why results of the model may be
    uncertain (≈, see `candlec verify`). Other keys are for human readers.

    A baseline is a TOML file of your own that lists known differences. Use it for a folder that other people maintain.
    It has one table for each model, with the `reason`. The entry `pinned` is for plans that are compiled for the input
    shapes of each case, and `unpinned` for plans with dynamic shapes (`zoo run --unpin`). Each entry has a `verdict`
    (`uncertain` or `different`) and `at_most`, the allowed multiple of the tolerance. For a model that the compiler
    refuses, an entry has `refused` instead, the list of the error codes.

    \b
    candlec zoo run --zoo models
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    candlec zoo run --zoo ../zoo --baseline zoo.toml
    candlec zoo precision --zoo ../zoo
    """


command.add_command(precision.command, "precision")


@command.command(cls=Verb, short_help="Compare every model with onnxruntime.")
@folder_options
@click.option(
    "--unpin", is_flag=True, help="Compile with dynamic shapes; a static model gets a dynamic first dimension."
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that lists the models with known differences.",
)
@click.option(
    "--junit", "report", type=arguments.OUTPUT, metavar="FILE", help="Write the results as JUnit XML to this file."
)
@arguments.named_device_option("Device to run plans on.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    folder: Path,
    names: tuple[str, ...],
    unpin: bool,
    baseline: Path | None,
    report: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Compile each model, run it on each of its inputs, and compare every output with onnxruntime's.

    The command compiles each model with and without optimization, and runs it with one thread and with two, or on the
    device. A case is a file of inputs that INDEX.json lists. Without --unpin, the command compiles for the input
    shapes of each case. `candlec verify --help` explains the marks.

    The exit code is 1 if the compiler refuses a model, or if a result is different (✗) or uncertain (≈) and neither
    INDEX.json nor the baseline allows it. It is also 1 if the baseline lists a model that is equal now, or that is not
    in the folder. A model with missing or invalid files, or one that onnxruntime cannot run, is always an error.

    \b
    candlec zoo run
    candlec zoo run --zoo models --unpin --junit zoo.xml
    candlec zoo run --zoo ../zoo --baseline zoo.toml
    candlec zoo run --device cuda
    """
    entries, known = entries_of(folder, names), _known(baseline, names)
    shapes: Shapes = "unpinned" if unpin else "pinned"
    arguments.check_outputs({"--junit": report}, [*files_of(folder, entries), *([baseline] if baseline else [])])
    outcomes: list[Outcome] = []
    for entry in entries:
        line = known[entry.name].expectations.get(shapes) if entry.name in known else None
        outcomes += [judged(each, entry, line) for each in _checked(entry, shapes, device)]
    stale = list(stale_expectations(outcomes, known, shapes))
    if report is not None:
        from compiler.zoo.junit import junit

        write_whole(report, junit(outcomes, stale))
    is_right = not stale and not any(each.problem for each in outcomes)
    if as_json:
        told = {"outcomes": [each.data for each in outcomes], "stale": [vars(each) for each in stale]}
        print_json({"ok": is_right, **told})
    else:
        _show(entries, outcomes, device)
        _show_notes(outcomes)
        _show_reasons(entries, known)
        _show_problems(outcomes, stale)
    context.exit(0 if is_right else 1)


@command.command(cls=Verb, short_help="Write the known differences to a baseline.")
@folder_options
@click.option("--baseline", type=arguments.OUTPUT, required=True, metavar="FILE", help="Baseline file to write.")
@json_option
@click.pass_context
def update(context: click.Context, folder: Path, names: tuple[str, ...], baseline: Path, as_json: bool) -> None:
    """Check the models as `candlec zoo run` does, with and without --unpin, and write the differences to a baseline.

    The command keeps the reasons in the file, and the entries that are still correct. The reason of a new entry is the
    measured difference; you can replace it with a better one. The command removes the entries of models
    whose results equal onnxruntime's, and of models that INDEX.json no longer lists. With --model, it changes only the
    entries of these models. Review the changes to the file.

    The exit code is 1 if a model cannot be checked, or if its difference cannot be measured, for example because an
    output has another shape. The entries of such models stay unchanged.

    \b
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    """
    from compiler.zoo.baseline import write_baseline

    entries = entries_of(folder, names)
    arguments.check_outputs({"--baseline": baseline}, files_of(folder, entries))
    known = _known(baseline) if baseline.exists() else {}
    after = dict(known) if names else {}
    failed: dict[str, str] = {}
    for entry in entries:
        new, problem = _new_entry(entry, known.get(entry.name))
        after |= {entry.name: new} if new else {}
        if new is None:
            after.pop(entry.name, None)
        if problem:
            failed[entry.name] = problem
    write_baseline(baseline, after)
    changed = {name: (known.get(name), after.get(name)) for name in sorted(known.keys() | after.keys())}
    changes = {name: _change(*pair) for name, pair in changed.items() if pair[0] != pair[1]}
    if as_json:
        print_json({"ok": not failed, "known": len(after), "changes": changes, "failed": failed})
    else:
        for name, change in changes.items():
            console.print(f"{name}: {change}", soft_wrap=True)
        console.print(
            f"{baseline}: {len(after)} {'model' if len(after) == 1 else 'models'} with known differences",
            soft_wrap=True,
        )
        for name, problem in failed.items():
            errors.print(Text.assemble(("error:", "bold red"), f" {name}: {problem}"), soft_wrap=True)
    context.exit(1 if failed else 0)


def _new_entry(entry: Entry, known: KnownDifference | None) -> tuple[KnownDifference | None, str]:
    """The new entry of a model; or the former entry, and the reason why there is no new one."""
    from compiler.zoo.baseline import SHAPES, renewed

    outcomes = {shapes: _checked(entry, shapes) for shapes in SHAPES}
    every = [each for mine in outcomes.values() for each in mine]
    for each in every:
        if not together([each]).is_bounded:
            why = "it cannot be checked" if each.verdict == "failed" else "its difference has no bound"
            return known, f"{why}: {each.remarks[0]}"
    worst = max(every, key=lambda each: each.share)
    said = "Refused" if worst.verdict == "refused" else "As measured"
    found = {shapes: together(mine) for shapes, mine in outcomes.items()}
    return renewed(known, found, f"{said}: {'; '.join(worst.remarks[:1])}"), ""


def _known(baseline: Path | None, names: Sequence[str] = ()) -> dict[str, KnownDifference]:
    """The baseline's entries for the checked models."""
    from compiler.zoo.baseline import read_baseline

    if baseline is None:
        return {}
    try:
        return {name: each for name, each in read_baseline(baseline).items() if not names or name in names}
    except ValueError as error:
        raise Failed(str(error)) from error


def _checked(entry: Entry, shapes: Shapes, device: str = "cpu") -> list[Outcome]:
    with working(entry.name):
        outcomes = check(entry, shapes, device)
    if not errors.is_terminal:  # in a log, lines show the progress
        seconds = sum(each.seconds for each in outcomes)
        errors.print(f"{entry.name}, {shapes}: {together(outcomes)}, {seconds:.1f} s", soft_wrap=True)
    return outcomes


def _show(entries: Sequence[Entry], outcomes: Sequence[Outcome], device: str) -> None:
    """Print one row for each model (marks of all variants, difference, time), then the remarks on results."""
    from compiler.accuracy.compare import counted

    rows: list[list[Cell]] = []
    verdicts: list[Verdict] = []
    for entry in entries:
        mine = [each for each in outcomes if each.model == entry.name]
        worst = together(mine)
        marks, seconds = [MARKS[each.verdict] for each in mine], sum(each.seconds for each in mine)
        rows.append([entry.name, str(len(entry.cases)), *marks, _times(worst.share), f"{seconds:.1f} s"])
        verdicts.append(worst.verdict)
    table(("model", ">cases", *map(str, variants(device)), ">of tolerance", ">time"), rows)
    for shown, style in STYLES.items():
        found = [each for each in outcomes if each.verdict == shown]
        for line in dict.fromkeys(f"{each.model}, {remark}" for each in found for remark in each.remarks):
            console.print(Text.assemble(MARKS[shown], " ", (line, style)), soft_wrap=True)
    console.print(f"over all ways: {counted(verdicts, 'model')}", soft_wrap=True)


def _show_notes(outcomes: Sequence[Outcome]) -> None:
    """Print how onnxruntime's runs differ from the models' files."""
    for line in dict.fromkeys(f"{each.model}: {each.note}" for each in outcomes if each.note):
        console.print(line, soft_wrap=True)


def _show_reasons(entries: Sequence[Entry], known: Mapping[str, KnownDifference]) -> None:
    """Print the reasons for tolerances and known differences."""
    for entry in entries:
        if entry.reason:
            console.print(f"{entry.name}: tolerance {entry.tolerance:g}: {entry.reason}", soft_wrap=True)
        for reason in (entry.uncertain, known[entry.name].reason if entry.name in known else ""):
            if reason:
                console.print(f"{entry.name}: {reason}", soft_wrap=True)


def _show_problems(outcomes: Sequence[Outcome], stale: Sequence[Stale]) -> None:
    """Print the problems."""
    found: list[Outcome | Stale] = [*outcomes, *stale]
    for problem in dict.fromkeys(f"{each.model}: {each.problem}" for each in found if each.problem):
        errors.print(Text.assemble(("error:", "bold red"), " ", problem), soft_wrap=True)
    if any(each.problem and each.verdict in ("uncertain", "refused") for each in outcomes) or stale:
        help_text = "`candlec zoo update --baseline FILE` records the results; `uncertain` in INDEX.json allows ≈"
        errors.print(f"  help: {help_text}", soft_wrap=True)


def _change(before: KnownDifference | None, after: KnownDifference | None) -> str:
    """The change of an entry of the baseline, in words."""
    if after is None:
        return "removed"
    bounds = {
        shapes: "" if line.codes else f", at most {line.at_most:g} ×" for shapes, line in after.expectations.items()
    }
    lines = (f"{shapes} {line}{bounds[shapes]}" for shapes, line in after.expectations.items())
    return f"{'changed' if before else 'new'}: {'; '.join(lines)}"


def _times(share: float) -> str:
    """A difference as a fraction or a multiple of the tolerance."""
    return f"{share:.0%}" if share <= 1 else f"{share:.1f} ×" if share < float("inf") else ""
