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
from compiler.cli.output import Cell, console, json_option, print_json, table, working
from compiler.cli.verify import MARKS
from compiler.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler import Plan
    from compiler.compare import Comparison, Verdict
    from compiler.reference import Reference
    from compiler.zoo import Entry


@dataclass(frozen=True)
class Way:
    """How a model is compiled and run."""

    optimize: bool
    threads: int

    def __str__(self) -> str:
        return f"{'optimised' if self.optimize else 'plain'}, {self.threads} thread{'s' if self.threads > 1 else ''}"


STYLES = {"random": "", "uncertain": "yellow", "different": "red"}
WAYS = tuple(Way(optimize, threads) for optimize in (True, False) for threads in (1, 2))


@dataclass(frozen=True)
class Outcome:
    """How one way of running one model ended: the verdict on the worst of its outputs (see `candlec verify`).

    `remarks` say what is not equal, and by how much; `share` is the worst difference as a part of what is allowed.
    """

    model: str
    way: str
    verdict: Verdict
    remarks: tuple[str, ...] = ()
    share: float = float("inf")
    seconds: float = 0.0

    @property
    def mark(self) -> Text:
        """What the table shows."""
        return MARKS[self.verdict]


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
    pinned to those of the case, unless --unpin is given. Exit code 1 when one differs or is refused. What the marks
    mean, `candlec verify --help` says; INDEX.json may state the `tolerance` of a model, and has to state the `reason`
    of a wide one.

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
        print_json([{**vars(each), "ok": each.verdict != "different"} for each in outcomes])
    else:
        _show(entries, outcomes)
    context.exit(1 if any(each.verdict == "different" for each in outcomes) else 0)


def check(entry: Entry, unpin: bool) -> list[Outcome]:
    """The outcome of every way of running a model, on all of its cases."""
    from compiler.reference import Reference, ReferenceFailed

    try:
        reference = Reference(entry.path)
        return [_check_way(entry, reference, way, unpin) for way in WAYS]
    except ReferenceFailed as error:
        return [Outcome(entry.name, str(way), "different", (str(error),)) for way in WAYS]


def _check_way(entry: Entry, reference: Reference, way: Way, unpin: bool) -> Outcome:
    """What all cases have together."""
    start = time.perf_counter()
    found = [_check_case(entry, case, reference, way, unpin) for case in entry.cases]
    return Outcome(
        entry.name,
        str(way),
        verdict=worst_of([each.verdict for each in found]),
        remarks=tuple(remark for each in found for remark in each.remarks),
        share=max(each.share for each in found),
        seconds=time.perf_counter() - start,
    )


def _check_case(entry: Entry, case: Path, reference: Reference, way: Way, unpin: bool) -> Outcome:
    import compiler
    from compiler.check import compare_with_reference, random_outputs

    inputs = entry.inputs(case)
    try:
        plan = _compile(entry, inputs, way.optimize, unpin)
        outputs = compiler.load(plan, threads=way.threads).run(inputs)
    except (compiler.CompileError, compiler.InputError, compiler.PlanError, compiler.RunError) as error:
        return Outcome(entry.name, str(way), "different", (f"{case.stem}: {error}",))
    report = compare_with_reference(reference, inputs, outputs, entry.tolerance, random_outputs(plan))
    name = case.stem.removeprefix(f"{entry.name}.")
    remarks = tuple(f"{name}: {_remark(each)}" for each in report.outputs if each.verdict != "equal")
    return Outcome(entry.name, str(way), worst_of([each.verdict for each in report.outputs]), remarks, report.worst)


def _remark(output: Comparison) -> str:
    """What is to be said of an output that is not equal."""
    if output.verdict == "random":
        return f"{output.name}: random numbers, only dtype and shape were compared"
    if output.problem or output.note:
        return f"{output.name}: {output.problem or output.note}"
    said = f"{output.name}: {output.max_abs:.1e} off, {output.allowed:.1e} allowed"
    if output.doubt <= output.allowed:
        return said
    return f"{said}; {output.nearest:.1e} from the nearer of onnxruntime's two answers, {output.doubt:.1e} apart"


def _compile(entry: Entry, inputs: dict[str, Any], optimize: bool, unpin: bool) -> Plan:
    import compiler
    from compiler.zoo import unpinned, with_shapes

    shapes = {name: array.shape for name, array in inputs.items()}
    model = unpinned(entry.path) if unpin else with_shapes(entry.path, shapes)
    return compiler.compile(model, compiler.Options(optimize=optimize))


def _show(entries: list[Entry], outcomes: list[Outcome]) -> None:
    """One row a model: which ways are right, how near, how long."""
    from compiler.compare import counted

    rows: list[list[Cell]] = []
    verdicts: list[Verdict] = []
    for entry in entries:
        mine = [each for each in outcomes if each.model == entry.name]
        worst, seconds = max(each.share for each in mine), sum(each.seconds for each in mine)
        rows.append(
            [entry.name, str(len(entry.cases)), *(each.mark for each in mine), _times(worst), f"{seconds:.1f} s"]
        )
        verdicts.append(worst_of([each.verdict for each in mine]))
    table(("model", ">cases", *map(str, WAYS), ">of tolerance", ">time"), rows)
    for verdict, style in STYLES.items():
        found = [each for each in outcomes if each.verdict == verdict]
        for line in dict.fromkeys(f"{each.model}, {remark}" for each in found for remark in each.remarks):
            console.print(Text.assemble(MARKS[verdict], " ", (line, style)), soft_wrap=True)
    for entry in entries:
        if entry.reason:
            console.print(f"{entry.name}: a tolerance of {entry.tolerance:g}: {entry.reason}", soft_wrap=True)
    console.print(f"in every way, {counted(verdicts, 'model')}", soft_wrap=True)


def _times(share: float) -> str:
    """A part of the tolerance, or how many times it."""
    return f"{share:.0%}" if share <= 1 else f"{share:.1f} ×" if share < float("inf") else ""


def worst_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on all together."""
    return max(verdicts, key=list(MARKS).index, default="equal")


def _junit(outcomes: list[Outcome]) -> bytes:
    """The outcomes in the form that CI servers read: one test a model and way."""
    failures = sum(each.verdict == "different" for each in outcomes)
    suite = ElementTree.Element("testsuite", name="zoo", tests=str(len(outcomes)), failures=str(failures))
    for each in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=each.model, name=each.way, time=f"{each.seconds:.3f}"
        )
        text = "\n".join(each.remarks)
        if each.verdict == "different":
            ElementTree.SubElement(case, "failure", message=text)
        elif text:
            ElementTree.SubElement(case, "system-out").text = text
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
