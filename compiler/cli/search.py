"""The options of `candlec bisect`: what to find, and the good side to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.custom import custom_option
from compiler.cli.failure import Failed
from compiler.cli.folder import known_facts
from compiler.cli.input_options import Given, input_option, seed_option, size_option
from compiler.cli.option_groups import grouped
from compiler.cli.output import errors
from compiler.cli.volumes import lower_when_compiling

if TYPE_CHECKING:
    from compiler import Options, Plan
    from compiler.bisect.crash import Crash
    from compiler.bisect.error import WrongResult
    from compiler.bisect.extract import Extracted
    from compiler.bisect.good import Good
    from compiler.bisect.result import SearchResult
    from compiler.bisect.subject import Subject
    from compiler.zoo.index import Entry

__all__ = ["Search", "search_options"]


@dataclass(frozen=True)
class Search:
    """The kind of failure to find, the inputs, the good side, and the folder for the first wrong step."""

    inputs: tuple[str, ...]
    sizes: dict[str, int]
    dims: dict[str, int]
    lower_3d: bool
    strict: bool
    seed: int
    what: str
    good: Path | None
    facts: Path | None
    folder: Path | None
    unpin: bool
    output: Path | None
    threads: int | None
    tolerance: float | None

    @property
    def given(self) -> Given:
        """The inputs of the runs."""
        return Given(self.inputs, self.sizes, self.seed)

    def check_usage(self) -> None:
        """Refuse options that do not go together."""
        for is_wrong, problem in self._problems():
            if is_wrong:
                raise click.UsageError(problem)
        if self.output is not None:
            arguments.check_new_folder(self.output, "--output")
        if self.good is not None and not arguments.is_plan(self.good):
            advice = f"compile it with the previous version of the compiler: `candlec compile {self.good} -o OLD.plan`"
            raise click.BadParameter(f"{self.good} is no plan: {advice}", param_hint="--good")

    def _problems(self) -> Iterator[tuple[bool, str]]:
        what, has_facts = f"--what {self.what}", self.facts is not None
        compares = self.output is not None or self.tolerance is not None
        yield self.what != "error" and compares, f"{what} compares no values: leave out --output and --tolerance"
        yield self.what == "crash" and self.good is not None, f"{what} needs no good side: leave out --good"
        yield self.good is not None and has_facts, "--good and --facts are two good sides: give one"
        said = "--facts records no values: use it with --what memory, time or steps, or give --good"
        yield has_facts and self.what in ("error", "crash"), said
        missing = not has_facts and self.good is None
        yield self.what == "steps" and missing, f"{what} needs a good side: give --good OLD.plan or --facts FILE"
        inputs = bool(self.inputs or self.sizes or self.seed)
        advice = "leave out --input, --size and --seed"
        yield has_facts and (inputs or bool(self.dims)), f"--facts takes the cases of the zoo: {advice}, and --dim"
        yield self.what in ("memory", "steps") and inputs, f"{what} runs no plan: {advice}; --dim fixes a dimension"
        yield (
            not has_facts and (self.unpin or self.folder is not None),
            "--zoo and --unpin are for --facts: leave them out",
        )
        yield (
            self.unpin and self.what == "time",
            f"only plans with fixed shapes have times: leave out --unpin, or {what}",
        )

    def crash(self, model: Path) -> Crash | None:
        """The crash of a model."""
        from compiler.bisect.crash import find_crash

        with _phases() as on_phase:
            return find_crash(model, self.given.arrays, **self._compiling, threads=self.threads, on_phase=on_phase)

    def error(self, model: Path) -> tuple[WrongResult, Extracted | None]:
        """The wrong result of a model; and its first wrong step as a small model, if the user named a folder for it."""
        from compiler.bisect.error import find_error
        from compiler.bisect.extract import extract_step

        shared: dict[str, Any] = {"threads": self.threads, "tolerance": self.tolerance}
        good = self._plan(model)
        with _phases() as on_phase:
            with _suggest_crash():
                wrong = find_error(model, self.given.arrays, **self._compiling, good=good, on_phase=on_phase, **shared)
            if self.output is None or wrong.step is None:
                return wrong, None
            self.output.mkdir(parents=True, exist_ok=True)
            return wrong, extract_step(model, wrong, self.output, **shared)

    def change(self, model: Path) -> SearchResult:
        """The change of the memory, the time or the steps of a model's plan."""
        from compiler.bisect.memory import find_memory
        from compiler.bisect.slower import find_time
        from compiler.bisect.steps import find_steps

        entry = None if self.facts is None else self._entry(model)
        good = self._good(model, entry)
        with _phases() as on_phase:
            subject = self._subject(model, entry, on_phase)
            if self.what == "memory":
                return find_memory(subject, good)
            if self.what == "time":
                return find_time(subject, self._inputs(entry), good)
            assert good is not None  # see `check_usage`
            return find_steps(subject, good)

    @property
    def _compiling(self) -> dict[str, Any]:
        return {"dims": self.dims, "lower_3d": self.lower_3d, "strict": self.strict}

    def _entry(self, model: Path) -> Entry:
        from compiler.bisect.good import entry_of

        try:
            return entry_of(model, self.folder)
        except ValueError as error:
            raise Failed(str(error)) from error

    def _plan(self, model: Path) -> Plan | None:
        """The older plan. A warning says if it is the plan of another model."""
        from compiler import Plan

        if self.good is None:
            return None
        plan = Plan.load(self.good)
        if not arguments.is_of(plan, model):
            warning = f"warning: {self.good} is not the plan of {model}, or the model has changed"
            errors.print(warning, style="yellow", soft_wrap=True)
        return plan

    def _good(self, model: Path, entry: Entry | None) -> Good | None:
        from compiler.bisect.good import GoodPlan, facts_in

        if entry is not None:
            return facts_in(
                known_facts(self.facts, "cpu"), str(self.facts), entry, "unpinned" if self.unpin else "pinned"
            )
        plan = self._plan(model)
        return None if plan is None else GoodPlan(plan, str(self.good))

    def _subject(self, model: Path, entry: Entry | None, on_phase: Callable[[str], None]) -> Subject:
        from compiler import Options
        from compiler.bisect.good import sources_of
        from compiler.bisect.subject import Subject

        base: Options = Options(**self._compiling)
        if entry is None:
            return Subject([model], base, self.threads, on_phase)
        sources = sources_of(entry, "unpinned" if self.unpin else "pinned")
        return Subject(sources, base, self.threads or 1, on_phase)

    def _inputs(self, entry: Entry | None) -> Any:
        return self.given.arrays if entry is None else entry.inputs(entry.cases[0])


@contextmanager
def _suggest_crash() -> Iterator[None]:
    """Name the search for crashes if the plan does not run."""
    from compiler import RunError

    try:
        yield
    except RunError as error:
        advice = "--what crash tells whether an optional pass is the cause, and whether onnxruntime fails too"
        raise Failed(f"{error}\n  help: {advice}") from error


@contextmanager
def _phases() -> Iterator[Callable[[str], None]]:
    """A function that shows on a terminal what the command does."""
    if not errors.is_terminal:
        yield lambda _: None
        return
    with errors.status("compiling") as status:
        yield status.update


_WHAT = """\
What to find: results that differ from onnxruntime's or from those of --good (error), a crash of the compiler or of a \
run, or a plan that is slower (time), takes more memory, or has other steps than the good side."""

search_options = grouped(
    "search",
    Search,
    input_option,
    size_option,
    arguments.pin_option,
    lower_when_compiling,
    arguments.strict_option,
    custom_option,
    seed_option,
    click.option(
        "--what",
        type=click.Choice(["error", "time", "memory", "steps", "crash"]),
        default="error",
        show_default=True,
        help=_WHAT,
    ),
    click.option(
        "--good",
        type=arguments.INPUT,
        metavar="OLD.plan",
        help="Good side: a plan of the model that a previous version of the compiler made.  "
        "[default: onnxruntime for errors, or else the plan without optional passes]",
    ),
    click.option(
        "--facts",
        type=arguments.INPUT,
        metavar="FILE",
        help="Good side: the facts that `candlec zoo update --facts FILE` recorded for the model and its cases.",
    ),
    click.option(
        "--zoo",
        "folder",
        type=arguments.INPUT,
        metavar="FOLDER",
        help="Folder of models for --facts.  [default: the nearest one above MODEL whose INDEX.json lists it]",
    ),
    click.option("--unpin", is_flag=True, help="Compare with the facts of dynamic shapes, as `zoo run --unpin` does."),
    click.option(
        "-o",
        "--output",
        type=arguments.FOLDER,
        metavar="FOLDER",
        help="Write the first wrong step to this new folder, as a small model with its inputs and a program.",
    ),
    arguments.threads_option,
    arguments.tolerance_option,
)
