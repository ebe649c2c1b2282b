"""`candlec zoo`: compile every model of a folder in every way, and compare it with onnxruntime."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.atomic_files import write_whole
from compiler.cli import arguments, compare, github, precision, update
from compiler.cli.drifts import Compared, compared, show_drifts
from compiler.cli.ended import exit_code, given_options, show_problems
from compiler.cli.folder import (
    entries_of,
    files_of,
    folder_options,
    known_differences,
    known_facts,
    runner_options,
)
from compiler.cli.group import Group
from compiler.cli.output import errors, json_option, print_json, write_text
from compiler.cli.progress import Models
from compiler.cli.renamed import Verb
from compiler.cli.tables import zoo as zoo_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.batch import Settings
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.suite import CaseOutcome


@click.group(cls=Group)
def command() -> None:
    """Check the models of a folder against onnxruntime. The file INDEX.json in the folder lists the models.

    INDEX.json is a list with one object for each model. `name` is the name of the model, `file` is the model file, and
    `cases` lists .npz files of inputs. Paths are relative to the folder. An optional `tolerance`, with its `reason`,
    replaces the tolerance of the dtype. An optional `uncertain` gives the reason why results of the model may be
    uncertain (≈, see `candlec verify`). An optional list `tags` has words for --only. Other keys are for human readers.

    A baseline is a TOML file of your own that lists known differences. Use it for a folder that other people maintain.
    It has one table for each model, with the `reason`. The entry `pinned` is for plans that are compiled for the input
    shapes of each case, and `unpinned` for plans with dynamic shapes (`zoo run --unpin`). Each entry has a `verdict`
    (`uncertain` or `different`) and `at_most`, the allowed multiple of the tolerance. For a model that the compiler
    refuses, an entry has `refused` instead, the list of the error codes.

    A file of facts is a TOML file. It lists facts of each model that must not change: the verdict, the sizes, the
    steps, the rewrites, and the kernels for each instruction-set level in the file. `zoo update --facts` writes it, and
    `zoo run --facts` compares it. Such a file is for one kind of device.

    \b
    candlec zoo run --zoo models
    candlec zoo run --zoo ../zoo --timeout 300 --memory-limit 4G --results zoo.jsonl --resume
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    candlec zoo run --zoo ../zoo --baseline zoo.toml
    candlec zoo update --zoo ../zoo --facts zoo.facts.toml
    candlec zoo run --zoo ../zoo --facts zoo.facts.toml
    candlec zoo compare before.jsonl after.jsonl
    candlec zoo precision --zoo ../zoo
    """


command.add_command(compare.command, "compare")
command.add_command(precision.command, "precision")
command.add_command(update.command, "update")


@command.command(cls=Verb, short_help="Compare every model with onnxruntime.")
@folder_options
@click.option(
    "--unpin", is_flag=True, help="Compile with dynamic shapes; a static model gets a dynamic first dimension."
)
@click.option(
    "--baseline",
    type=arguments.INPUT,
    metavar="FILE",
    help="File that lists the models with known differences.",
)
@click.option(
    "--facts",
    "facts",
    type=arguments.INPUT,
    metavar="FILE",
    help="Fail if a fact of a model differs from this file: see `candlec zoo update --help`.",
)
@click.option(
    "--junit", "report", type=arguments.OUTPUT, metavar="FILE", help="Write the results as JUnit XML to this file."
)
@click.option(
    "--summary",
    "page",
    type=arguments.OUTPUT,
    metavar="FILE",
    help="Write the results as Markdown to this file, for example the summary of a job of GitHub.",
)
@arguments.named_device_option("Device to run plans on.")
@runner_options
@json_option
@click.pass_context
def run(
    context: click.Context,
    folder: Path,
    only: tuple[str, ...],
    unpin: bool,
    baseline: Path | None,
    facts: Path | None,
    report: Path | None,
    page: Path | None,
    device: str,
    settings: Settings,
    as_json: bool,
) -> None:
    """Compile each model, run it on each of its inputs, and compare every output with onnxruntime's.

    The command compiles each model with and without optimization, and runs it with one thread and with two, or on the
    device. A case is a file of inputs that INDEX.json lists. Without --unpin, the command compiles for the input
    shapes of each case. `candlec verify --help` explains the marks.

    Each model has a process of its own. If it crashes, takes longer than --timeout, or takes more memory than
    --memory-limit, its result says so and names its last phase, such as the pass that has run or the case. The other
    models are not affected. The limit of memory does not count what the process takes before it loads the model.

    --results writes each result to a file as soon as it is known. If the command ends early, the same command with
    --resume keeps these results and checks the other models. It also checks a model again if the model file, its
    inputs, the options, the compiler or onnxruntime have changed, or if the model reached a limit that has another
    value now. `--only failed` checks the models again that failed in this file.

    The exit code is 1 if the compiler refuses a model, or if a result is different (✗) or uncertain (≈) and neither
    INDEX.json nor the baseline allows it. It is also 1 if the baseline lists a model that is equal now, or that is not
    in the folder. A model with missing or invalid files, one that onnxruntime cannot run, and one whose process
    crashes or reaches a limit is always an error.

    With --facts, the exit code is also 1 if a fact differs from this file, for the better or the worse, or if the file
    does not list the same models as the folder. If the file lacks the level of this processor, the command only says
    so.

    In a job of GitHub (GITHUB_ACTIONS=true), the command also prints an annotation for each problem.

    \b
    candlec zoo run
    candlec zoo run --zoo models --unpin --junit zoo.xml
    candlec zoo run --zoo ../zoo --baseline zoo.toml --facts zoo.facts.toml
    candlec zoo run --jobs 4 --timeout 300 --memory-limit 4G --results zoo.jsonl
    candlec zoo run --results zoo.jsonl --resume
    candlec zoo run --results zoo.jsonl --only failed
    candlec zoo run --summary "$GITHUB_STEP_SUMMARY"
    candlec zoo run --only tag:speech --only op:Conv
    candlec zoo run --device cuda
    """
    from compiler.zoo.suite import Case, check_all

    entries = entries_of(folder, only, settings)
    known, recorded = known_differences(baseline), known_facts(facts, device)
    shapes: Shapes = "unpinned" if unpin else "pinned"
    files = [*files_of(folder, entries), *(path for path in (baseline, facts) if path)]
    arguments.check_outputs({"--junit": report, "--summary": page, "--results": settings.results}, files)
    with Models(shapes, settings.results) as progress:
        cases = [Case(entry, shapes, device, known.get(entry.name)) for entry in entries]
        found = check_all(cases, settings, progress)
    outcomes = [way for each in found for way in each.ways]
    stale = _stale(found, known, only)
    drift = compared(found, recorded, facts, only) if facts else Compared()
    problems = _problems(found, stale)
    if report is not None:
        from compiler.zoo.junit import junit

        write_whole(report, junit(outcomes, stale, drift.by_model))
    every = _joined(problems, drift.by_model)
    if page is not None:
        write_text(page, github.summary(f"{folder}, {shapes}, {device}", found, every, drift.notes))
    is_right = not every and all(each.ok for each in found)
    if as_json:
        lines = [{"model": model, "problem": problem} for model, problem in stale.items()]
        changes = {"drifts": [each.data for each in drift.drifts], "notes": drift.notes}
        print_json({"ok": is_right, "outcomes": [each.data for each in outcomes], "stale": lines, **changes})
    else:
        zoo_tables.show(found, device)
        _show_problems(found, stale, problems)
        if facts:
            show_drifts(drift, folder, facts, device)
    github.annotate(every)
    context.exit(exit_code({each.case.entry.name: each.ending for each in found}, is_right))


def _problems(found: Sequence[CaseOutcome], stale: Mapping[str, str]) -> dict[str, list[str]]:
    """The problems of each model, and those of its line of the baseline."""
    problems = {each.case.entry.name: [way.problem for way in each.ways if way.problem] for each in found}
    return _joined(problems, {name: [problem] for name, problem in stale.items()})


def _joined(*problems: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The problems by model, for each model that has any."""
    names = dict.fromkeys(name for each in problems for name in each)
    joined = {name: [line for each in problems for line in each.get(name, [])] for name in names}
    return {name: lines for name, lines in joined.items() if lines}


def _show_problems(found: Sequence[CaseOutcome], stale: Mapping[str, str], problems: Mapping[str, list[str]]) -> None:
    """Print the problems of models, and advice."""
    show_problems(problems, {each.case.entry.name: each.ending for each in found})
    ways = [way for each in found for way in each.ways]
    if any(each.problem and each.verdict in ("uncertain", "refused") for each in ways) or stale:
        update = shlex.join(["candlec", "zoo", "update", *given_options("--zoo", "--device", "--baseline")])
        update += "" if given_options("--baseline") else " --baseline FILE"
        errors.print(f"  help: `{update}` records the results; `uncertain` in INDEX.json allows ≈", soft_wrap=True)


def _stale(found: Sequence[CaseOutcome], known: dict[str, KnownDifference], only: Sequence[str]) -> dict[str, str]:
    """The models with a line of the baseline that no longer holds, and the problem with the line."""
    names = {each.case.entry.name: each.stale for each in found}
    missing = {name: "it is in the baseline, but not in the folder" for name in known if not only and name not in names}
    return {name: problem for name in known if (problem := {**names, **missing}.get(name))}
