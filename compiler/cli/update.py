"""`candlec zoo update`: write the known differences of the models of a folder to a baseline, and their facts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.cli import arguments
from compiler.cli.folder import (
    Selection,
    folder_options,
    known_differences,
    known_facts,
    measures_option,
    runner_options,
    tolerance_option,
)
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, json_option, print_json
from compiler.cli.progress import Models
from compiler.cli.renamed import Verb
from compiler.cli.times import check_time, measured, show_times, time_option
from compiler.cli.zoo_problems import exit_code, show_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.processes.ending import Ending
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.drift import Drift
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.renewal import Renewal
    from compiler.zoo.task_runs import TaskSettings
    from compiler.zoo.time_folder import Timed


@dataclass(frozen=True)
class Renewing:
    """The files to write, and the measurements for them."""

    baseline: Path | None
    facts: Path | None
    measures: Path | None
    tolerance: float | None
    is_timed: bool
    device: str

    def check_usage(self) -> None:
        """Refuse options that do not go together."""
        if self.baseline is None and self.facts is None:
            raise click.UsageError("name a file to write: add --baseline FILE, --facts FILE, or both")
        if self.is_timed:
            check_time(self.facts, self.device)

    def run(self, selection: Selection, settings: TaskSettings) -> Renewed:
        """Check the models, and write the files."""
        from compiler.zoo.renewal import renewals

        entries = selection.entries(settings, self.measures, self.tolerance)
        baseline, facts = self.baseline, self.facts
        outputs = {"--baseline": baseline, "--facts": facts, "--results": settings.results}
        arguments.check_outputs(outputs, [*selection.files(entries), *([self.measures] if self.measures else [])])
        known = known_differences(baseline if baseline is not None and baseline.exists() else None)
        recorded = known_facts(facts if facts is not None and facts.exists() else None, self.device)
        with Models(results=settings.results) as progress:
            made = renewals(entries, known, settings, progress, self.device)
        found = {entry.name: each for entry, each in zip(entries, made, strict=True)}
        whole = {entry: found[entry.name].facts["pinned"] for entry in entries if found[entry.name].facts}
        times = measured(whole, settings) if self.is_timed else {}
        changes, count = ({}, 0) if baseline is None else _renew(baseline, known, found, selection.only)
        drifts = [] if facts is None else _renew_facts(facts, recorded, found, times, selection.only)
        return Renewed(found, times, changes, count, drifts)


renewing_options = grouped(
    "renewing",
    Renewing,
    click.option("--baseline", type=arguments.OUTPUT, metavar="FILE", help="Baseline file to write."),
    click.option("--facts", type=arguments.OUTPUT, metavar="FILE", help="File of facts to write."),
    measures_option,
    tolerance_option,
    time_option("Also time each plan and onnxruntime, and write the ratio to the file of --facts."),
    arguments.named_device_option("Device to run plans on."),
)


@dataclass(frozen=True)
class Renewed:
    """The new entries and facts of models, their times, and what has changed in the baseline of `count` models."""

    found: dict[str, Renewal]
    times: dict[str, Timed]
    changes: dict[str, str]
    count: int
    drifts: list[Drift]

    @property
    def failed(self) -> dict[str, str]:
        """The models that could not be checked or timed, and why not."""
        from compiler.zoo.time_folder import time_problems

        return {name: each.problem for name, each in self.found.items() if each.problem} | time_problems(self.times)

    @property
    def endings(self) -> dict[str, Ending]:
        """How the process of each model ended. If a model could not be timed, the end of its measurement counts."""
        from compiler.zoo.time_folder import time_problems

        untimed = time_problems(self.times)
        return {name: (self.times if name in untimed else self.found)[name].ending for name in self.found}

    def print_data(self) -> None:
        """Print the results as JSON."""
        data = {"ok": not self.failed, "known": self.count, "changes": self.changes, "failed": self.failed}
        times = {name: each.data for name, each in self.times.items()}
        print_json({**data, "drifts": [each.data for each in self.drifts], "times": times})

    def show(self, baseline: Path | None, facts: Path | None) -> None:
        """Print what has changed in the files, the times, and the problems."""
        if baseline is not None:
            _show_changes(baseline, self.changes, self.count)
        if facts is not None:
            show_times(self.times)
            _show_facts(facts, self.found, self.drifts)
        show_problems({name: [problem] for name, problem in self.failed.items()}, self.endings)


@click.command(cls=Verb, short_help="Write the known differences to a baseline, and the facts to a file.")
@folder_options
@renewing_options
@runner_options
@json_option
@click.pass_context
def command(
    context: click.Context, selection: Selection, renewing: Renewing, settings: TaskSettings, as_json: bool
) -> None:
    """Check the models as `candlec zoo run` does, with and without --unpin, and write the differences to a baseline.

    The command keeps the reasons in the baseline, and the entries that are still correct. The reason of a new entry is
    the measured difference. You can replace it with a better reason. The command removes the entries of models whose
    results equal onnxruntime's, and of models that INDEX.json no longer lists. With --only, it changes only the entries
    of the selected models. Review the changes to the file.

    With --facts, the command writes the facts of the models to this file, which `candlec zoo run --facts` compares. It
    replaces the facts of the models in the folder, but keeps the facts of other instruction-set levels. You can
    therefore complete the file on another machine. The variable CANDLE_PLAN_ISA chooses a lower level of this
    machine's processor. The kinds of facts are:

    \b
    status                         the worst verdict, with the error codes of a refusal
    plan_bytes                     size of the optimized plan
    constants, constant_bytes      number and size of its constants
    operations                     multiplications and additions of its steps' formulas
    steps                          steps by operator
    rewrites.PASS                  rewrites of a pass, by rule
    host_steps                     steps that always run on the host, even with a GPU, such as arithmetic on sizes
    no_kernel                      steps that run on the host because the GPU has no kernel for them
    yardstick                      the reference for the rounding errors: double precision, or the reference noise
    error_percent, error_at_most   error of each output in percent of onnxruntime's, and the largest allowed one
    level.LEVEL.forms.OPERATOR     steps by the form of their kernel, see `candlec inspect --prepared`
    level.LEVEL.added              steps that the runtime adds
    level.LEVEL.unknown_steps      steps whose memory is not known before a run
    level.LEVEL.peak_bytes         peak memory of a run's values, without the steps of unknown_steps
    level.LEVEL.packed_bytes, unpacked_bytes, block
                                   size of constants in memory, and channels in a block
    level.LEVEL.time               time of the plan in percent of onnxruntime's, and its noise (only with --time);
                                   also the classes of two other times: that of the compilation, and that of the load
                                   of the plan (docs/zoo.md describes them)

    If the cases of a model have different shapes, its facts are those of all its plans together.

    With --time, the command also times each plan for the first case as `candlec zoo run --time` does, and writes the
    time to the table of pinned shapes. Without --time, the times in the file stay.

    Each model has a process of its own: `candlec zoo run --help` describes the options for it.

    The exit code is 1 if a model cannot be checked, crashes or reaches a limit, or if its difference cannot be
    measured, for example because an output has another shape. The entries and facts of such models stay unchanged. It
    is also 1 if a model cannot be timed. Such a model keeps its former time, but its other facts are new.

    \b
    candlec zoo update --zoo ../zoo --baseline zoo.toml
    candlec zoo update --zoo ../zoo --baseline zoo.toml --facts zoo.facts.toml
    candlec zoo update --zoo ../zoo --facts zoo.facts.toml --only unet
    candlec zoo update --zoo ../zoo --facts zoo.facts.toml --time
    candlec zoo update --zoo ../zoo --baseline zoo.toml --jobs 4 --results update.jsonl --resume
    """
    renewing.check_usage()
    renewed = renewing.run(selection, settings)
    if as_json:
        renewed.print_data()
    else:
        renewed.show(renewing.baseline, renewing.facts)
    context.exit(exit_code(renewed.endings, not renewed.failed))


def _renew(
    baseline: Path, known: Mapping[str, KnownDifference], found: Mapping[str, Renewal], only: Sequence[str]
) -> tuple[dict[str, str], int]:
    """Write the baseline, and return its changes by model, in words, and the number of its models."""
    from compiler.zoo.baseline import write_baseline

    kept = {name: each for name, each in known.items() if only and name not in found}
    after = kept | {name: each.known for name, each in found.items() if each.known is not None}
    write_baseline(baseline, after)
    changed = {name: (known.get(name), after.get(name)) for name in sorted(known.keys() | after.keys())}
    return {name: _change(*pair) for name, pair in changed.items() if pair[0] != pair[1]}, len(after)


def _renew_facts(
    path: Path, known: KnownFacts, found: Mapping[str, Renewal], times: Mapping[str, Timed], only: Sequence[str]
) -> list[Drift]:
    """Write the file of facts, and return what has changed in it. A time has changed if it left its band."""
    from compiler.zoo.drift import drifts, renewed_facts, time_drifts
    from compiler.zoo.facts_file import write_facts
    from compiler.zoo.time_folder import with_times

    facts = with_times({name: dict(each.facts) for name, each in found.items()}, times)
    write_facts(path, renewed_facts(known, facts, only))
    others = [each for each in time_drifts(known, facts) if not each.is_slower]
    return [*drifts(known, facts, only), *others]


def _show_changes(baseline: Path, changes: Mapping[str, str], count: int) -> None:
    for name, change in changes.items():
        console.print(f"{name}: {change}", soft_wrap=True)
    models = f"{count} {'model' if count == 1 else 'models'}"
    console.print(f"{baseline}: {models} with known differences", soft_wrap=True)


def _show_facts(path: Path, found: Mapping[str, Renewal], drifts: Sequence[Drift]) -> None:
    """Print the changes of facts, the levels in the file, and the number of models."""
    for each in drifts:
        console.print(f"{each.model}, {each}", soft_wrap=True)
    every = [facts for each in found.values() for facts in each.facts.values()]
    levels = ", ".join(sorted({level for facts in every for level in facts.levels})) or "no plan"
    count = sum(bool(each.facts) for each in found.values())
    console.print(f"{path}: the facts of {count} model{'s' * (count != 1)} ({levels})", soft_wrap=True)


def _change(before: KnownDifference | None, after: KnownDifference | None) -> str:
    """The change of an entry of the baseline, in words."""
    if after is None:
        return "removed"
    bounds = {
        shapes: "" if line.codes else f", at most {line.at_most:g} ×" for shapes, line in after.expectations.items()
    }
    lines = (f"{shapes} {line}{bounds[shapes]}" for shapes, line in after.expectations.items())
    return f"{'changed' if before else 'new'}: {'; '.join(lines)}"
