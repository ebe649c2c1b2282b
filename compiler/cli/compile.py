"""`candlec compile`: compile an ONNX model into a plan file."""

from __future__ import annotations

import math
import textwrap
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from compiler.cli import arguments, auto_precision, calibration, custom, factory, quantized, states, volumes
from compiler.cli.input_options import Given, given_options
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, errors, json_option, megabytes, print_json, table, working
from compiler.cli.renamed import Verb
from compiler.cli.report import Reporting, pass_summary, report_options, show_verified, verified_data
from compiler.cli.target import plan_file
from compiler.errors import did_you_mean, program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from compiler import Options, Plan
    from compiler.accuracy.precision_choice import Choice
    from compiler.options import Precision
    from compiler.plan.state import Asked
    from compiler.rewrite.report import PassReport


@dataclass
class Record:
    """The reports of the passes, each with the time that the pass took."""

    passes: list[tuple[PassReport, float]] = field(default_factory=list)
    last: float = field(default_factory=time.perf_counter)

    def add(self, report: PassReport) -> None:
        """Add the report of a pass."""
        now = time.perf_counter()
        self.passes.append((report, now - self.last))
        self.last = now


class Command(Verb):
    """The verb, whose help ends with the names of the passes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the passes that `--passes` chooses from."""
        from compiler import Options
        from compiler.pipeline import passes

        optional = {step.name: pass_summary(step.name) for step in passes(Options()) if not step.needed}
        with formatter.section("Optional passes, in order"):
            formatter.write_dl(list(optional.items()))


@dataclass(frozen=True)
class CompilerOptions:
    """How to compile a model."""

    dims: dict[str, int]
    passes: str | None
    skipped: tuple[str, ...]
    no_optimize: bool
    max_memory: int | None
    asked: Asked | None
    weights: str | None
    precision: Precision | Literal["auto"]
    max_loss: float | None
    calibration: tuple[str, ...]
    keep: tuple[str, ...]
    lower_3d: bool
    strict: bool
    keep_weights: bool
    strip_origins: bool
    verify_passes: bool

    def check_usage(self) -> None:
        """Refuse options that do not go together."""
        if self.no_optimize and self.passes is not None:
            raise click.UsageError("--no-optimize skips all passes of --passes: give only one of the two options")
        if self.keep_weights and self.weights is not None:
            raise click.UsageError("--weights changes weights: leave it out, or --keep-weights")
        if self.precision != "f32" and (self.keep_weights or self.weights is not None):
            other = "--weights" if self.weights is not None else "--keep-weights"
            raise click.UsageError(f"--precision changes weights: leave it out, or {other}")
        if self.precision == "auto" and self.max_loss is None:
            raise click.UsageError(
                "--precision auto needs the largest loss of the outputs: give --max-loss, such as 0.5%"
            )
        if self.precision != "auto" and self.max_loss is not None:
            raise click.UsageError("--max-loss is for --precision auto: leave it out, or give both")
        if self.calibration and self.precision not in ("int8", "auto"):
            raise click.UsageError("--calibration is for --precision int8 and auto: leave it out, or give both")

    def options(self, file: Path, record: Record, dump: Path | None) -> Options:
        """The options to compile a file. The compiler adds reports of passes to a record, and graphs to a folder."""
        from compiler import Options

        chosen = None if self.passes is None else [name.strip() for name in self.passes.split(",") if name.strip()]
        _check_names(chosen or (), "--passes")
        _check_names(self.skipped, "--skip-pass")
        return Options(
            optimize=not self.no_optimize,
            passes=chosen,
            skip_passes=self.skipped,
            dims=self.dims,
            max_memory=self.max_memory,
            state=self.asked,
            weights=self.weights,
            precision="int8" if self.precision == "auto" else self.precision,
            calibration=calibration.read_cases(self.calibration, file),
            keep=self.keep,
            lower_3d=self.lower_3d,
            strict=self.strict,
            keep_weights=self.keep_weights,
            strip_origins=self.strip_origins,
            verify_passes=self.verify_passes,
            on_pass=record.add,
            on_model=None if dump is None else _dump(dump),
        )


compiler_options = grouped(
    "chosen",
    CompilerOptions,
    arguments.pin_option,
    click.option(
        "--passes",
        metavar="LIST",
        help="Names of the optional passes to run, separated by commas: see the list below.  [default: all]",
    ),
    click.option(
        "--skip-pass", "skipped", multiple=True, metavar="NAME", help="Leave out this optional pass. May be repeated."
    ),
    click.option("--no-optimize", is_flag=True, help="Run none of the optional passes."),
    arguments.memory_option("Limit the memory of all values of a run, for example 2GB. Use it for untrusted models."),
    states.state_option(
        "Feed outputs back as inputs of the next run. OUT=IN is a pair of names, as 'present.*=past.*', where * stands "
        "for any text. auto pairs the names that exporters write. `candlec run --steps` runs a plan with a state. May "
        "be repeated."
    ),
    quantized.weights_options,
    auto_precision.loss_option,
    calibration.calibration_option,
    volumes.lower_option(
        "Replace operators of three spatial dimensions with 2-D ones, and list how many nodes, bytes and multiply-adds "
        "this adds. Without this option, the compiler refuses such operators."
    ),
    arguments.strict_option,
    click.option(
        "--keep-weights",
        is_flag=True,
        help="Keep the weights of the model under their own names, so that `candlec run --weights` can replace them. "
        "No pass uses their values. For example, the compiler does not fold batch normalizations. The plan may be "
        "slower.",
    ),
    click.option("--strip-origins", is_flag=True, help="Omit module paths and source lines from the plan."),
    click.option("--verify-passes", is_flag=True, help="Verify the graph after every pass, to find compiler bugs."),
)

dump_option = click.option(
    "--dump-passes",
    "dump",
    type=arguments.FOLDER,
    metavar="FOLDER",
    help="After each pass that changes the graph, write it to this new folder as an ONNX file, for example for Netron.",
)


@click.command(cls=Command)
@click.argument("model", type=arguments.INPUT)
@click.option(
    "-o", "--output", type=arguments.OUTPUT, metavar="PLAN", help="Write the plan to this file.  [default: MODEL.plan]"
)
@compiler_options
@given_options
@report_options
@dump_option
@custom.custom_option
@factory.export_options
@json_option
def command(
    model: Path,
    output: Path | None,
    chosen: CompilerOptions,
    given: Given,
    reporting: Reporting,
    dump: Path | None,
    how: factory.How,
    as_json: bool,
) -> None:
    """Compile MODEL into a plan, and show what each pass did. MODEL is an ONNX file, or PACKAGE.MODULE:FACTORY.

    A plan is one file with everything that a run needs. A pass is a stage of the compiler that rewrites the graph of
    the model. The same model and options give the same bytes.

    If MODEL names a Python function FACTORY, the command exports the PyTorch module that the function returns, as
    `candlec export` does, and compiles it. --opset, --exporter, --no-check and --locate are options of this export.

    The page of --report shows what each pass did and where, by PyTorch module and line of Python. It also shows where a
    rule of a pass almost applied and why it did not (near misses), the graph by module, the cost of each layer, and the
    memory in use at each step. The page needs no other file and no network. With --profile or --verify, the command
    runs the plan with the inputs of --input, or with random ones.

    \b
    candlec compile model.onnx
    candlec compile model.onnx -o build/model.plan --dim batch=1
    candlec compile model.onnx --passes drop_identities,fold_weight_norm,fold_constants --report report.html
    candlec compile model.onnx --report report.html --profile --verify --input io.npz
    candlec compile model.onnx --skip-pass fuse_epilogues --dump-passes build/passes
    candlec compile decoder.onnx --state auto
    candlec compile decoder.onnx --weights int4 --keep lm_head
    candlec compile decoder.onnx --weights decoder.gguf
    candlec compile model.onnx --custom my_operators.py
    candlec compile encoder.onnx --precision bf16
    candlec compile detector.onnx --precision int8 --calibration inputs/
    candlec compile encoder.onnx --precision auto --max-loss 1% --input io.npz
    candlec compile nets.unet:build -o unet.plan
    """
    chosen.check_usage()
    reporting.check_usage(given, needs_inputs=chosen.max_loss is not None)
    target, record = plan_file(model, output, reporting.report), Record()
    with factory.model_file(model, how) as (file, done):
        plan, seconds, made = _compiled(model, file, chosen, given, chosen.options(file, record, dump))
        plan.save(target)
        verified = reporting.write(model, file, plan, record.passes, given)
    is_right = verified is None or verified.ok
    if as_json:
        found = {**factory.facts(done), **_facts(plan, record, made), **verified_data(verified)}
        print_json({"ok": is_right, "plan": str(target), "seconds": seconds, **found})
    else:
        _show(plan, record, made, chosen)
        factory.show(done)
        _warn_of_memory(plan, chosen.max_memory)
        show_verified(verified)
        console.print(f"{target}: {megabytes(len(plan.data))}, compiled in {seconds:.2f} s", style="bold")
    click.get_current_context().exit(0 if is_right else 1)


def _compiled(
    model: Path, file: Path, chosen: CompilerOptions, given: Given, options: Options
) -> tuple[Plan, float, Choice | None]:
    """The plan, the seconds of its compilation, and the choice of `--precision auto`."""
    import compiler

    made = None if chosen.max_loss is None else auto_precision.choose(file, options, chosen.max_loss, given)
    start = time.perf_counter()
    with working(f"compiling {model}"):
        plan = compiler.compile(file, options if made is None else made.options)
    return plan, time.perf_counter() - start, made


def _warn_of_memory(plan: Plan, limit: int | None) -> None:
    """Warn of an output of a step above the limit of memory. A run fails unless the output is a view."""
    if limit is None:
        return
    from compiler.ir.dtypes import numpy_dtype

    main = plan.document["main"]
    for at, step in enumerate(main["steps"]):
        for value in (output for output in step["outputs"] if output is not None):
            kind = main["values"][value]["type"].get("Tensor")
            shape = None if kind is None else kind["shape"]
            if shape is None or kind["dtype"] == "string" or not all(isinstance(dim, int) for dim in shape):
                continue
            size = math.prod(shape) * numpy_dtype(kind["dtype"]).itemsize
            if size > limit:
                name = next(iter(step["op"])) if isinstance(step["op"], dict) else step["op"]
                text = f"warning: step {at}, {name}, has an output of {megabytes(size)}, more than --max-memory"
                text += ": runs may fail"
                errors.print(text, style="yellow", soft_wrap=True)
                return


def _dump(folder: Path) -> Callable[[PassReport, Any], None]:
    """The function that writes the graph after each pass to a folder, which must be new or empty."""
    from compiler.rewrite.dump import Dump

    arguments.check_new_folder(folder, "--dump-passes")
    folder.mkdir(parents=True, exist_ok=True)
    return Dump(folder)


def _check_names(chosen: Iterable[str], option: str) -> None:
    """Refuse the names of passes that are unknown, and of those that always run."""
    from compiler import Options
    from compiler.pipeline import current_name, passes

    all_passes = passes(Options())
    optional = {step.name for step in all_passes if not step.needed}
    needed = {step.name for step in all_passes} - optional
    names = [name for name in map(current_name, chosen) if name not in optional]
    unknown = {name: did_you_mean(name, optional) for name in names if name not in needed}
    wrong = [f"{name} always runs: leave it out" for name in names if name in needed]
    wrong += [f"there is no pass {name!r}{question and f': {question}'}" for name, question in unknown.items()]
    if wrong:
        advice = f"\n  help: `{program()} compile --help` lists the passes" if unknown else ""
        raise click.BadParameter("; ".join(wrong) + advice, param_hint=option)


def _facts(plan: Plan, record: Record, made: Choice | None) -> dict[str, Any]:
    return {
        **({} if made is None else {"choice": auto_precision.choice_data(made)}),
        "bytes": len(plan.data),
        "steps": dict(_steps(plan)),
        "state": [asdict(pair) for pair in plan.state],
        "custom_ops": plan.custom_ops,
        "passes": [
            {
                "name": report.name,
                "nodes_before": report.nodes_before,
                "nodes_after": report.nodes_after,
                "seconds": seconds,
                "fired": dict(Counter(each.rule for each in report.fired)),
                "notes": [{"origin": str(each.origin), "note": each.note} for each in report.fired if each.note],
                "warnings": [str(each) for each in report.warnings],
            }
            for report, seconds in record.passes
        ],
    }


def _steps(plan: Plan) -> Counter[str]:
    from compiler.plan.operators import op_name

    return Counter(op_name(step["op"]) for step in plan.document["main"]["steps"])


def _show(plan: Plan, record: Record, made: Choice | None, chosen: CompilerOptions) -> None:
    """Print the passes that changed the model, and the steps of the plan."""
    rows = [_row(report, seconds) for report, seconds in record.passes if report.fired]
    if rows:
        table(("pass", ">nodes", "", ">time", "what it did"), rows)
    for report, _ in record.passes:
        for warning in report.warnings:
            console.print(str(warning), style="yellow", soft_wrap=True)
    states.show_state(plan.state)
    quantized.show_weights([report for report, _ in record.passes])
    calibration.show_unquantized(_steps(plan), chosen.precision, chosen.calibration)
    volumes.show_prices([report for report, _ in record.passes])
    custom.show_custom_ops(plan.custom_ops)
    if made is not None:
        auto_precision.show_choice(made)
    before = next((report.nodes_before for report, _ in record.passes if report.name != "load"), 0)
    steps = _steps(plan)
    kinds = ", ".join(f"{count} {name}" for name, count in steps.most_common())
    summary = f"nodes: {before}, steps: {sum(steps.values())} ({kinds})"
    console.print(textwrap.fill(summary, console.width) if console.is_terminal else summary, soft_wrap=True)


def _row(report: PassReport, seconds: float) -> tuple[str, ...]:
    done = f"{report.result}: {len(report.fired)}"
    return report.name, str(report.nodes_before), f"→ {report.nodes_after}", f"{1e3 * seconds:.0f} ms", done
