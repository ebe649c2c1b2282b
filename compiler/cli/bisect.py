"""`candlec bisect`: find the first optional pass after which a plan is wrong, and the first wrong step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments
from compiler.cli.custom import custom_option
from compiler.cli.failure import Failed
from compiler.cli.given import Given, input_option, seed_option, size_option
from compiler.cli.grouped import grouped
from compiler.cli.output import console, errors, json_option, print_json
from compiler.cli.verify import ADVICE_ON_INPUTS, layer_data, output_data, show_step
from compiler.cli.volumes import lower_when_compiling

if TYPE_CHECKING:
    from compiler.accuracy.bisect import Culprit, WrongResult
    from compiler.accuracy.crash import Crash
    from compiler.accuracy.extract import Extracted

MOST_PLACES = 10


@dataclass(frozen=True)
class Search:
    """The kind of failure to find, the inputs, and the folder for the first wrong step."""

    inputs: tuple[str, ...]
    sizes: dict[str, int]
    dims: dict[str, int]
    lower_3d: bool
    strict: bool
    seed: int
    what: str
    output: Path | None
    threads: int | None
    tolerance: float | None

    @property
    def given(self) -> Given:
        """The inputs of the runs."""
        return Given(self.inputs, self.sizes, self.seed)

    def check_usage(self) -> None:
        """Refuse options that do not go together."""
        if self.what == "crash" and (self.output is not None or self.tolerance is not None):
            raise click.UsageError("--what crash compares no values: leave out --output and --tolerance")
        if self.output is not None:
            arguments.check_new_folder(self.output, "--output")

    def crash(self, model: Path) -> Crash | None:
        """The crash of a model."""
        from compiler.accuracy.crash import find_crash

        with _phases() as on_phase:
            return find_crash(
                model,
                self.given.arrays,
                dims=self.dims,
                lower_3d=self.lower_3d,
                strict=self.strict,
                threads=self.threads,
                on_phase=on_phase,
            )

    def error(self, model: Path) -> tuple[WrongResult, Extracted | None]:
        """The wrong result of a model; and its first wrong step as a small model, if the user named a folder for it."""
        from compiler.accuracy.bisect import find_error
        from compiler.accuracy.extract import extract_step

        shared: dict[str, Any] = {"threads": self.threads, "tolerance": self.tolerance}
        with _phases() as on_phase:
            with _suggest_crash():
                compiling: dict[str, Any] = {
                    "dims": self.dims,
                    "lower_3d": self.lower_3d,
                    "strict": self.strict,
                }
                wrong = find_error(model, self.given.arrays, **compiling, on_phase=on_phase, **shared)
            if self.output is None or wrong.step is None:
                return wrong, None
            self.output.mkdir(parents=True, exist_ok=True)
            return wrong, extract_step(model, wrong, self.output, **shared)


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
        type=click.Choice(["error", "crash"]),
        default="error",
        show_default=True,
        help="What to find: results that differ from onnxruntime's, or a crash of the compiler or of a run.",
    ),
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


@click.command()
@click.argument("model", type=arguments.INPUT)
@search_options
@json_option
@click.pass_context
def command(context: click.Context, model: Path, search: Search, as_json: bool) -> None:
    """Find the first optional pass after which the plan of MODEL is wrong, and the first wrong step.

    The command first compares the optimized plan with onnxruntime, as `candlec verify` does. If the plan is different,
    and the plan without optional passes is equal, the command searches for the first optional pass after which the plan
    is different. It prints the places that this pass rewrote, and the first step of the plan whose value differs from
    onnxruntime's. It compares intermediate values as `candlec verify --layerwise` does.

    With -o, it also writes three files. step.onnx is the part of the model that computes the value of this step.
    step.npz holds the inputs of this part. `python replay.py` compares the results of this part with onnxruntime's.
    If the weights of this part are large, they are in a fourth file, step.data.

    The plans of a model of more than 1 GiB are temporary files, in the folder that TMPDIR names or in /tmp.

    With --what crash, the command looks for an unexpected exception, a run that fails, or a process that dies. It
    compiles and runs the model in processes of their own. A model that the compiler refuses does not count as a crash.

    The exit code is 0 if nothing is wrong, and 1 if the command found something.

    \b
    candlec bisect model.onnx
    candlec bisect model.onnx --input io.npz -o build/step
    candlec bisect model.onnx --what crash
    """
    search.check_usage()
    is_random = search.given.is_random
    if search.what == "crash":
        crash = search.crash(model)
        _show_crash(model, crash, as_json, is_random=is_random)
        context.exit(0 if crash is None else 1)
    wrong, part = search.error(model)
    _show_error(model, wrong, part, as_json, is_random=is_random)
    context.exit(0 if wrong.report.ok else 1)


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


def _show_error(model: Path, wrong: WrongResult, part: Extracted | None, as_json: bool, *, is_random: bool) -> None:
    """Print where the results go wrong."""
    report, step = wrong.report, wrong.step
    if as_json:
        document = {
            "ok": report.ok,
            "what": "error",
            "outputs": [output_data(each) for each in report.outputs],
            "pass": _culprit_data(wrong.culprit),
            "step": None if step is None else layer_data(step),
            "files": [] if part is None else [str(each) for each in part.files],
            "files_differ": None if part is None else part.differs,
        }
        print_json(document)
        return
    if report.ok:
        console.print(f"nothing is wrong with the plan of {model}: {report.summary}", style="green", soft_wrap=True)
        return
    console.print(f"the plan of {model} is wrong: {report.summary}", style="red", soft_wrap=True)
    _show_culprit(wrong.culprit, "the plan is different")
    console.print()
    if step is None:
        console.print("no intermediate value that both the plan and the model have differs", soft_wrap=True)
    else:
        show_step(step)
    if part is not None:
        _show_part(part)
    if is_random:
        console.print(ADVICE_ON_INPUTS, soft_wrap=True)


def _show_part(part: Extracted) -> None:
    """Print the files of the small model, and whether they show the difference."""
    if not part.files:
        console.print(f"no files: {part.problem}", soft_wrap=True)
        return
    console.print(f"wrote {', '.join(map(str, part.files))}", soft_wrap=True)
    if not part.differs:
        reason = part.problem or "the plan of this part of the model equals onnxruntime's result"
        console.print(f"the files do not show the difference: {reason}", style="yellow", soft_wrap=True)


def _show_crash(model: Path, crash: Crash | None, as_json: bool, *, is_random: bool) -> None:
    """Print how the model crashes."""
    if as_json:
        found = {} if crash is None else {"phase": crash.phase, "message": crash.message, "reference": crash.reference}
        culprit = None if crash is None else crash.culprit
        print_json({"ok": crash is None, "what": "crash", **found, "pass": _culprit_data(culprit)})
        return
    if crash is None:
        console.print(f"nothing is wrong: {model} compiles, and its plan runs", style="green", soft_wrap=True)
        return
    doing = "compiling" if crash.phase == "compile" else "running the plan of"
    console.print(f"{doing} {model} fails: {crash.message}", style="red", soft_wrap=True)
    _show_culprit(crash.culprit, "it fails")
    if crash.reference:
        console.print(f"{crash.reference}\n  help: correct the inputs or the model, not the plan", soft_wrap=True)
    if is_random and crash.phase == "run":
        console.print("  help: give real inputs with --input, because a run may fail on random ones", soft_wrap=True)


def _show_culprit(culprit: Culprit | None, what: str) -> None:
    """Print the pass and the places that it rewrote."""
    if culprit is None:
        console.print(f"{what} without optional passes too, so no optional pass is the cause", soft_wrap=True)
        return
    console.print(f"{what} as soon as this optional pass runs: {culprit.name}", soft_wrap=True)
    if culprit.others:
        console.print(f"  or one of those before it: {', '.join(culprit.others)}", soft_wrap=True)
    console.print(f"  {culprit.result}: {len(culprit.places)}", soft_wrap=True)
    for origin in culprit.places[:MOST_PLACES]:
        console.print(f"  --> {origin}", soft_wrap=True)
    if (more := len(culprit.places) - MOST_PLACES) > 0:
        console.print(f"  --> … and {more} more", soft_wrap=True)


def _culprit_data(culprit: Culprit | None) -> dict[str, Any] | None:
    """A pass as JSON."""
    if culprit is None:
        return None
    places = [asdict(each) for each in culprit.places[:MOST_PLACES]]
    more = {"result": culprit.result, "count": len(culprit.places), "places": places}
    return {"name": culprit.name, "others": list(culprit.others), **more}
