"""`candlec check`: whether the compiler supports a model, and if not, why."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from compiler.cli import arguments, custom
from compiler.cli.compile_options import CompilingWithSizes, sizes_and_compiling_option
from compiler.cli.failure import diagnostic_data, show_diagnostics
from compiler.cli.output import RIGHT, UNKNOWN, WRONG, Cell, console, errors, json_option, print_json, table, working
from compiler.cli.renamed import Verb
from compiler.cli.tables.placement import show_any_gpu, show_placement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compiler import CompileError, Diagnostic
    from compiler.ir.origin import Origin
    from compiler.rewrite.report import PassReport
    from compiler.runtime.steps import PlacedStep

MARKS = {"accepted": RIGHT, "refused": WRONG, "unchecked": UNKNOWN}


@dataclass(frozen=True)
class Operator:
    """The numbers of all, of refused and of unchecked nodes of one operator."""

    operator: str
    nodes: int
    refused: int
    unchecked: int

    @property
    def verdict(self) -> Literal["accepted", "refused", "unchecked"]:
        """The verdict on all of its nodes; `unchecked` if the compiler knows too little about some of them."""
        return "refused" if self.refused else "unchecked" if self.unchecked else "accepted"


@click.command(cls=Verb)
@click.argument("model", type=arguments.INPUT)
@arguments.named_device_option("Show which steps would run on this device, and which on the CPU. No GPU is needed.")
@arguments.strict_device_option("With --device cuda, exit with code 1 if the GPU has no kernel for a step.")
@sizes_and_compiling_option
@custom.custom_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: Path,
    device: str,
    strict_device: bool,
    compiling: CompilingWithSizes,
    as_json: bool,
) -> None:
    """Show which operators of MODEL the compiler supports, and why and where it refuses a node.

    The command writes no file. The exit code is 1 if the compiler refuses the model.

    With --device cuda, the command also shows where each step of the optimized plan runs. It does not look for a GPU,
    so the answer is the same for every GPU: cuda:7 means the same as cuda. If the GPU has no kernel for a step, the
    step runs on the CPU, and the command shows the amount of data that the step copies. With --strict-device, the exit
    code is 1 if there is such a step.

    \b
    ✓  supported
    ✗  refused; the errors below give the reason
    ?  unknown: the operator follows refused nodes, so the types or shapes of its inputs are not known

    \b
    candlec check model.onnx
    candlec check model.onnx --json
    candlec check model.onnx --device cuda
    candlec check model.onnx --custom my_operators.py
    """
    if strict_device and device == "cpu":
        raise click.UsageError("--strict-device needs another device than the CPU: add --device cuda")
    with working(f"checking {model}"):
        counts, custom_ops = _counts(model, compiling.strict)
        warnings, refusal = _findings(model, compiling.options)
    operators = _operators(counts, refusal)
    findings = [*warnings, *refusal.diagnostics]
    placed = _placement(model, compiling.options) if device != "cpu" and not refusal.diagnostics else []
    missing = [step for step in placed if step.host == "no_kernel"]
    is_right = not refusal.diagnostics and not (strict_device and missing)
    if as_json:
        unchecked = [name for place in refusal.unchecked for name in place.nodes]
        listed = [{**asdict(each), "verdict": each.verdict} for each in operators]
        data = [diagnostic_data(each) for each in findings]
        own = {"custom_ops": custom_ops} if custom_ops else {}
        steps = {} if device == "cpu" else {"device": device, "steps": [asdict(step) for step in placed]}
        print_json({"ok": is_right, "operators": listed, "diagnostics": data, "unchecked": unchecked, **own, **steps})
    else:
        _show(operators, findings)
        custom.show_custom_ops(custom_ops)
        _show_steps(device, placed, strict_device and bool(missing))
    context.exit(0 if is_right else 1)


def _show_steps(device: str, placed: list[PlacedStep], is_refused: bool) -> None:
    """Print where the steps run, and why the command refuses them."""
    if placed:
        show_placement(device, placed)
        show_any_gpu(device)
    if is_refused:
        sentence = f"refused: {device} lacks a kernel; without --strict-device, such steps fall back to the CPU"
        errors.print(sentence, style="red", soft_wrap=True)


def _placement(model: Path, options: dict[str, Any]) -> list[PlacedStep]:
    """The placement of the optimized plan's steps."""
    import compiler
    from compiler.runtime.steps import placed_steps

    return placed_steps(compiler.compile(model, compiler.Options(**options)))


def _findings(model: Path, options: dict[str, Any]) -> tuple[list[Diagnostic], CompileError]:
    """The warnings of passes, and the error of the compilation, without diagnostics if the model compiles."""
    import compiler

    warnings: dict[Diagnostic, None] = {}

    def add(report: PassReport) -> None:
        warnings.update(dict.fromkeys(report.warnings))

    try:
        compiler.compile(model, compiler.Options(optimize=False, on_pass=add, **options))
    except compiler.CompileError as error:
        return list(warnings), error
    return list(warnings), compiler.CompileError([])


def _counts(model: Path, strict: bool) -> tuple[Counter[str], list[str]]:
    """The number of nodes of each operator, also in nested graphs and called functions; and the custom operators."""
    import compiler
    from compiler.custom import registered
    from compiler.frontend.load import load_model
    from compiler.ir.graph import nodes_of
    from compiler.passes.inline_functions import inline_functions

    loaded = load_model(model, [], strict=strict).model
    with contextlib.suppress(compiler.CompileError):  # the compilation reports errors of functions
        inline_functions.run(loaded)
    nodes = list(nodes_of(loaded))
    found = [registered(node.domain, node.op_type) for node in nodes]
    return Counter(node.op_type for node in nodes), sorted({each.name for each in found if each is not None})


def _operators(counts: Counter[str], refusal: CompileError) -> list[Operator]:
    """The counts of each operator, most frequent first."""
    refused = _by_operator(each.origin for each in refusal.diagnostics if each.origin)
    unchecked = _by_operator(refusal.unchecked)
    return [Operator(name, count, refused[name], unchecked[name]) for name, count in counts.most_common()]


def _show(operators: list[Operator], findings: list[Diagnostic]) -> None:
    """Print one row for each operator, then the findings."""
    table(("", "operator", ">nodes", ">refused", ">not checked"), map(_cells, operators))
    show_diagnostics(findings)
    if unchecked := sum(each.unchecked for each in operators):
        nodes = "1 node is" if unchecked == 1 else f"{unchecked} nodes are"
        console.print(f"{nodes} not checked: the types or shapes of inputs are unknown")
    if not any(each.severity == "error" for each in findings):
        console.print("the compiler supports the model", style="green")


def _cells(operator: Operator) -> list[Cell]:
    counts = (operator.nodes, operator.refused or "", operator.unchecked or "")
    return [MARKS[operator.verdict], operator.operator, *map(str, counts)]


def _by_operator(places: Iterable[Origin]) -> Counter[str]:
    """The number of different nodes in these origins, by operator."""
    nodes = {node for place in places for node in place.nodes}
    return Counter(node.partition("(")[0] for node in nodes)
