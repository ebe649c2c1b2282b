"""The options of `candlec zoo run` for the checks and for the files to compare with; and the check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.atomic_files import write_whole
from compiler.cli import arguments, github
from compiler.cli.checked import show_judgment
from compiler.cli.drifts import show_drifts
from compiler.cli.folder import known_differences, known_facts, measures_option
from compiler.cli.grouped import grouped
from compiler.cli.output import print_json, write_text
from compiler.cli.profiles import check_profile, profile_option, profiled
from compiler.cli.progress import Models
from compiler.cli.times import check_time, measured, time_option

if TYPE_CHECKING:
    from compiler.cli.folder import Selection
    from compiler.zoo.judgment import Judgment
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.task_runs import TaskSettings

__all__ = ["Checking", "checking_options"]


@dataclass(frozen=True)
class Checking:
    """The checks to do, the known differences and facts to compare with, and the files for the results."""

    unpin: bool
    baseline: Path | None
    facts: Path | None
    measures: Path | None
    is_timed: bool
    is_profiled: bool
    report: Path | None
    summary: Path | None
    device: str

    @property
    def shapes(self) -> Shapes:
        """The kind of shapes of the plans."""
        return "unpinned" if self.unpin else "pinned"

    def check_usage(self, settings: TaskSettings) -> None:
        """Refuse options that do not go together."""
        if self.is_timed:
            check_time(self.facts, self.device, unpin=self.unpin)
        if self.is_profiled:
            check_profile(settings)

    def run(self, selection: Selection, settings: TaskSettings) -> Judgment:
        """Check the models."""
        from compiler.zoo.compared_facts import ComparedFacts, compare_facts
        from compiler.zoo.judgment import Judgment, stale_lines
        from compiler.zoo.suite import Case, check_all

        entries = selection.entries(settings, self.measures)
        known, recorded = known_differences(self.baseline), known_facts(self.facts, self.device)
        files = [*selection.files(entries), *(path for path in (self.baseline, self.facts, self.measures) if path)]
        outputs = {"--junit": self.report, "--summary": self.summary, "--results": settings.results}
        arguments.check_outputs(outputs, files)
        with Models(self.shapes, settings.results) as progress:
            cases = [Case(entry, self.shapes, self.device, known.get(entry.name)) for entry in entries]
            found = check_all(cases, settings, progress)
        whole = {each.case.entry: each.facts for each in found if each.facts is not None}
        times = measured(whole, settings, recorded) if self.is_timed else None
        profiles = profiled(found, settings) if self.is_profiled else {}
        drift = ComparedFacts()
        if self.facts is not None:
            drift = compare_facts(found, times, recorded, self.facts, selection.only)
        return Judgment(found, stale_lines(found, known, selection.only), times or {}, profiles, drift)

    def report_on(self, judgment: Judgment, folder: Path, as_json: bool) -> None:
        """Write the files of results, and print the results."""
        if self.report is not None:
            from compiler.zoo.junit import junit

            made = junit(judgment.outcomes, judgment.stale, judgment.problems_of_no_outcome)
            write_whole(self.report, made)
        if self.summary is not None:
            title = f"{folder}, {self.shapes}, {self.device}"
            write_text(self.summary, github.summary(title, judgment.found, judgment.problems, judgment.drift.notes))
        if as_json:
            print_json(judgment.data)
            return
        show_judgment(judgment, self.device)
        if self.facts:
            entries = {each.case.entry.name: each.case.entry for each in judgment.found}
            show_drifts(judgment.drift, folder, self.facts, self.device, entries)


checking_options = grouped(
    "checking",
    Checking,
    click.option(
        "--unpin",
        is_flag=True,
        help="Compile with dynamic shapes. Each input of a static model gets a dynamic first dimension.",
    ),
    click.option(
        "--baseline",
        type=arguments.INPUT,
        metavar="FILE",
        help="File that lists the models with known differences.",
    ),
    click.option(
        "--facts",
        "facts",
        type=arguments.INPUT,
        metavar="FILE",
        help="Fail if a fact of a model differs from this file: see `candlec zoo update --help`.",
    ),
    measures_option,
    time_option("Also time each plan and onnxruntime, and compare the ratio with that in the file of --facts."),
    profile_option,
    click.option(
        "--junit", "report", type=arguments.OUTPUT, metavar="FILE", help="Write the results as JUnit XML to this file."
    ),
    click.option(
        "--summary",
        type=arguments.OUTPUT,
        metavar="FILE",
        help="Write the results as Markdown to this file, for example the summary of a job of GitHub Actions.",
    ),
    arguments.named_device_option("Device to run plans on."),
)
