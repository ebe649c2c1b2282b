"""The options of `candlec zoo run` for the checks and for the files to compare with; and the check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.atomic_files import write_whole
from compiler.cli import arguments, github
from compiler.cli.drifts import show_drifts
from compiler.cli.folder import known_differences, known_facts, measures_option, tolerance_option
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, print_json, write_text
from compiler.cli.profiles import check_profile, profile_option, profiled
from compiler.cli.progress import Models
from compiler.cli.times import check_time, measured, time_option
from compiler.cli.zoo_report import show_judgment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.cli.folder import Selection
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.folder_judgment import Judgment
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.task_runs import TaskSettings

__all__ = ["Checking", "checking_options"]


@dataclass(frozen=True)
class Checking:
    """The checks to do, the known differences and facts to compare with, and the files for the results."""

    unpin: bool
    both: bool
    baseline: Path | None
    facts: Path | None
    measures: Path | None
    tolerance: float | None
    is_timed: bool
    is_profiled: bool
    report: Path | None
    summary: Path | None
    device: str

    @property
    def kinds(self) -> tuple[Shapes, ...]:
        """The kinds of shapes of the plans."""
        from compiler.zoo.outcome import SHAPES

        return SHAPES if self.both else ("unpinned",) if self.unpin else ("pinned",)

    def check_usage(self, settings: TaskSettings) -> None:
        """Refuse options that do not go together."""
        if self.both and self.unpin:
            raise click.UsageError("--both includes the plans of --unpin: leave out --unpin")
        if self.is_timed:
            check_time(self.facts, self.device, unpin=self.unpin)
        if self.is_profiled:
            check_profile(settings)

    def run(self, selection: Selection, settings: TaskSettings) -> dict[Shapes, Judgment]:
        """Check the models. Returns a judgment for each kind of shapes."""
        from compiler.zoo.suite import Case, check_all

        entries = selection.entries(settings, self.measures, self.tolerance)
        known, recorded = known_differences(self.baseline), known_facts(self.facts, self.device)
        files = [*selection.files(entries), *(path for path in (self.baseline, self.facts, self.measures) if path)]
        outputs = {"--junit": self.report, "--summary": self.summary, "--results": settings.results}
        arguments.check_outputs(outputs, files)
        with Models(" and ".join(self.kinds), settings.results) as progress:
            cases = [Case(one, kind, self.device, known.get(one.name)) for kind in self.kinds for one in entries]
            found = check_all(cases, settings, progress)
        by_kind = {kind: [each for each in found if each.case.shapes == kind] for kind in self.kinds}
        return {kind: self._judgment(each, known, recorded, selection, settings) for kind, each in by_kind.items()}

    def _judgment(
        self,
        found: Sequence[CaseOutcome],
        known: Mapping[str, KnownDifference],
        recorded: KnownFacts,
        selection: Selection,
        settings: TaskSettings,
    ) -> Judgment:
        """The judgment on the outcomes for a kind of shapes, after the measurements."""
        from compiler.zoo.compared_facts import ComparedFacts, compare_facts
        from compiler.zoo.folder_judgment import Judgment, stale_lines

        pinned = [each for each in found if each.case.shapes == "pinned"]
        whole = {each.case.entry: each.facts for each in pinned if each.facts is not None}
        times = measured(whole, settings, recorded) if self.is_timed and pinned else None
        profiles = profiled(found, settings) if self.is_profiled else {}
        drift = ComparedFacts()
        if self.facts is not None:
            drift = compare_facts(found, times, recorded, self.facts, selection.only)
        return Judgment(found, stale_lines(found, known, selection.only), times or {}, profiles, drift)

    def report_on(self, judgments: Mapping[Shapes, Judgment], folder: Path, as_json: bool) -> None:
        """Write the files of results, and print the results."""
        if self.report is not None:
            from compiler.zoo.junit import junit

            write_whole(self.report, junit(judgments))
        if self.summary is not None:
            parts = [
                github.summary(f"{folder}, {kind}, {self.device}", each.found, each.problems, each.drift.notes)
                for kind, each in judgments.items()
            ]
            write_text(self.summary, "\n".join(parts))
        if as_json:
            print_json(self._data(judgments))
            return
        for kind, judgment in judgments.items():
            if self.both:
                console.print(f"{kind} shapes", style="bold")
            show_judgment(judgment, self.device)
            if self.facts:
                entries = {each.case.entry.name: each.case.entry for each in judgment.found}
                show_drifts(judgment.drift, folder, self.facts, self.device, entries)

    def _data(self, judgments: Mapping[Shapes, Judgment]) -> dict[str, Any]:
        """The results as JSON; those for both kinds of shapes under the names of the kinds."""
        data: dict[str, Any] = {kind: judgment.data for kind, judgment in judgments.items()}
        return {"ok": all(each["ok"] for each in data.values()), **data} if self.both else data[self.kinds[0]]


checking_options = grouped(
    "checking",
    Checking,
    click.option(
        "--unpin",
        is_flag=True,
        help="Compile with dynamic shapes. Each input of a static model gets a dynamic first dimension.",
    ),
    click.option(
        "--both",
        is_flag=True,
        help="Check with the shapes of each case and with dynamic shapes, in one process for each model.",
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
    tolerance_option,
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
