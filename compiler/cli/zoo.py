"""`candlec zoo`: every model of a folder, compiled in every way, against onnxruntime."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import click
from rich.text import Text

from compiler.cli import arguments
from compiler.cli.failure import Failed
from compiler.cli.output import NEAR, RIGHT, WRONG, Cell, console, json_option, print_json, table, working
from compiler.files import write_whole

if TYPE_CHECKING:
    from compiler import Plan
    from compiler.reference import Reference
    from compiler.zoo import Entry


@dataclass(frozen=True)
class Way:
    """How a model is compiled and run."""

    optimize: bool
    threads: int

    def __str__(self) -> str:
        return f"{'optimised' if self.optimize else 'plain'}, {self.threads} thread{'s' if self.threads > 1 else ''}"


WAYS = tuple(Way(optimize, threads) for optimize in (True, False) for threads in (1, 2))


@dataclass(frozen=True)
class Outcome:
    """How one way of running one model ended; `problem` is empty where it equals onnxruntime.

    `share` is the worst difference as a part of what is allowed. `doubt` is the largest difference that onnxruntime's
    own optimisations make, where that widened a tolerance; else it is zero.
    """

    model: str
    way: str
    problem: str
    share: float = float("inf")
    doubt: float = 0.0
    seconds: float = 0.0

    @property
    def mark(self) -> Text:
        """What the table shows."""
        return WRONG if self.problem else NEAR if self.doubt else RIGHT


@click.group(short_help="Check a folder of models against onnxruntime.")
def command() -> None:
    """Check the models of a folder, which its INDEX.json describes, against onnxruntime.

    INDEX.json is a list of objects: each has the `name` of a model, its `file` and `cases`, .npz files of inputs, by
    paths relative to the folder, and may have a `tolerance`, where that of the dtype does not do.

    \b
    candlec zoo run --path models
    """


@command.command(short_help="Compile and run every model, every way.")
@click.option(
    "--path",
    "folder",
    type=click.Path(path_type=Path),
    default="models",
    show_default=True,
    metavar="FOLDER",
    help="The folder with INDEX.json.",
)
@click.option("--model", "names", multiple=True, metavar="NAME", help="Only this model. May be repeated.")
@click.option("--unpin", is_flag=True, help="Leave symbolic dimensions so; where there are none, make the first one.")
@click.option("--junit", type=arguments.OUTPUT, metavar="FILE", help="Write the outcome as JUnit XML.")
@json_option
@click.pass_context
def run(
    context: click.Context, folder: Path, names: tuple[str, ...], unpin: bool, junit: Path | None, as_json: bool
) -> None:
    """Compile each model, run it on each of its inputs, and compare every output with onnxruntime's.

    Each is compiled optimised and unoptimised, and run with one thread and with two. The shapes of the inputs are
    pinned to those of the case, unless --unpin is given. Exit code 1 when one differs or is refused. What counts as a
    difference, `candlec verify --help` says.

    \b
    candlec zoo run
    candlec zoo run --path models --unpin --junit zoo.xml
    """
    from compiler.zoo import read_index

    try:
        entries = read_index(folder, names)
    except ValueError as error:
        raise Failed(str(error)) from error
    read = [folder / "INDEX.json", *(each for entry in entries for each in (entry.path, *entry.cases))]
    arguments.check_outputs({"--junit": junit}, read)
    outcomes: list[Outcome] = []
    for entry in entries:
        with working(entry.name):
            outcomes.extend(check(entry, unpin))
    if junit is not None:
        write_whole(junit, _junit(outcomes))
    if as_json:
        print_json([{**vars(each), "ok": not each.problem} for each in outcomes])
    else:
        _show(entries, outcomes)
    context.exit(1 if any(each.problem for each in outcomes) else 0)


def check(entry: Entry, unpin: bool) -> list[Outcome]:
    """The outcome of every way of running a model, on all of its cases."""
    from compiler.reference import Reference, ReferenceFailed

    try:
        reference = Reference(entry.path)
        return [_check_way(entry, reference, way, unpin) for way in WAYS]
    except ReferenceFailed as error:
        return [Outcome(entry.name, str(way), str(error)) for way in WAYS]


def _check_way(entry: Entry, reference: Reference, way: Way, unpin: bool) -> Outcome:
    """What all cases have together."""
    start = time.perf_counter()
    found = [_check_case(entry, case, reference, way, unpin) for case in entry.cases]
    return Outcome(
        entry.name,
        str(way),
        problem=next((each.problem for each in found if each.problem), ""),
        share=max(each.share for each in found),
        doubt=max(each.doubt for each in found),
        seconds=time.perf_counter() - start,
    )


def _check_case(entry: Entry, case: Path, reference: Reference, way: Way, unpin: bool) -> Outcome:
    import compiler
    from compiler.check import compare_with_reference

    inputs = entry.inputs(case)
    try:
        plan = _compile(entry, inputs, way.optimize, unpin)
        outputs = compiler.load(plan, threads=way.threads).run(inputs)
    except (compiler.CompileError, compiler.InputError, compiler.PlanError, compiler.RunError) as error:
        return Outcome(entry.name, str(way), f"{case.stem}: {error}")
    report = compare_with_reference(reference, inputs, outputs, entry.tolerance)
    wrong = [
        f"{each.name}: {each.problem or f'{each.max_abs:.1e} > {each.allowed:.1e}'}"
        for each in report.outputs
        if not each.ok
    ]
    problem = f"{case.stem}: {'; '.join(wrong)}" if wrong else ""
    return Outcome(entry.name, str(way), problem, report.worst, report.doubt)


def _compile(entry: Entry, inputs: dict[str, Any], optimize: bool, unpin: bool) -> Plan:
    import compiler
    from compiler.zoo import unpinned, with_shapes

    shapes = {name: array.shape for name, array in inputs.items()}
    model = unpinned(entry.path) if unpin else with_shapes(entry.path, shapes)
    return compiler.compile(model, compiler.Options(optimize=optimize))


def _show(entries: list[Entry], outcomes: list[Outcome]) -> None:
    """One row a model: which ways are right, how near, how long."""
    rows: list[list[Cell]] = []
    for entry in entries:
        mine = [each for each in outcomes if each.model == entry.name]
        worst, seconds = max(each.share for each in mine), sum(each.seconds for each in mine)
        rows.append(
            [entry.name, str(len(entry.cases)), *(each.mark for each in mine), f"{worst:.0%}", f"{seconds:.1f} s"]
        )
    table(("model", ">cases", *map(str, WAYS), ">of allowed", ">time"), rows)
    for problem in dict.fromkeys(f"{each.model}: {each.problem}" for each in outcomes if each.problem):
        console.print(f"✗ {problem}", style="red", soft_wrap=True)
    if doubts := {each.model: each.doubt for each in sorted(outcomes, key=lambda each: each.doubt) if each.doubt}:
        text = ", ".join(f"{model} ({doubt:.1e})" for model, doubt in doubts.items())
        console.print(
            f"≈ within twice the difference that onnxruntime's own optimisations make: {text}", soft_wrap=True
        )
    right = sum(not any(each.problem for each in outcomes if each.model == entry.name) for entry in entries)
    console.print(f"{right} of {len(entries)} models equal onnxruntime in every way")


def _junit(outcomes: list[Outcome]) -> bytes:
    """The outcomes in the form that CI servers read: one test a model and way."""
    failures = sum(bool(each.problem) for each in outcomes)
    suite = ElementTree.Element("testsuite", name="zoo", tests=str(len(outcomes)), failures=str(failures))
    for each in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=each.model, name=each.way, time=f"{each.seconds:.3f}"
        )
        if each.problem:
            ElementTree.SubElement(case, "failure", message=each.problem)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
