"""`candlec inspect`: the contents of a plan or a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from compiler.cli import arguments, custom
from compiler.cli.input_options import Given, size_option
from compiler.cli.option_groups import grouped
from compiler.cli.output import console, errors, json_option, megabytes, print_json, shape_text, table, working
from compiler.cli.renamed import Verb
from compiler.cli.streams import echo

if TYPE_CHECKING:
    import onnx_ir as ir

    from compiler import Plan
    from compiler.frontend.load import Loaded
    from compiler.runtime.session import Memory

_MOST_TEXT = 300
"""The number of characters to show of an entry of the metadata."""


@dataclass(frozen=True)
class Preparation:
    """Whether and how to prepare the steps of a plan. A model is compiled first, with the sizes `dims`."""

    prepared: bool
    alternatives: bool
    device: str
    dims: dict[str, int]
    sizes: dict[str, int]
    packing: Memory

    def check_usage(self, list_steps: bool) -> None:
        """Refuse options that would have no effect."""
        if self.dims and not self.prepared:
            raise click.UsageError("--dim needs --prepared, which compiles a model")
        if self.device != "cpu" and not self.prepared:
            raise click.UsageError("--device needs --prepared")
        if self.sizes and self.device == "cpu":
            raise click.UsageError("--size needs --prepared --device cuda, which runs the plan on random inputs")
        if list_steps and self.prepared:
            raise click.UsageError("--prepared shows every step: leave out --list-steps")
        if self.alternatives and not self.prepared:
            raise click.UsageError("--alternatives needs --prepared")

    def show(self, file: Path, as_json: bool) -> None:
        """Print the prepared steps of a plan, or of a model after compiling it."""
        if self.device != "cpu":
            self._show_on_gpu(file, as_json)
            return
        import compiler
        from compiler.cli.tables.prepared import show_alternatives, show_prepared

        if self.dims and _is_plan(file):
            raise click.UsageError(
                "--dim fixes sizes at compile time, and a plan is compiled: inspect the model with --dim"
            )
        plan = _plan_of(file, self.dims)
        prepared = compiler.load(plan, memory=self.packing).prepared()
        if as_json:
            # `untold` is the former name of `unknown_steps`.
            print_json({"ok": True, **asdict(prepared), "untold": prepared.unknown_steps})
        elif self.alternatives:
            show_alternatives(prepared)
        else:
            has_symbols = any(isinstance(dim, str) for each in plan.inputs for dim in each.shape or ())
            way = "inspect the model with --dim" if _is_plan(file) else "fix sizes with --dim"
            show_prepared(prepared, way if has_symbols else "")

    def _show_on_gpu(self, file: Path, as_json: bool) -> None:
        """Print the steps as a GPU would run them on random inputs."""
        from compiler.bench.expectation import expected_steps
        from compiler.cli.tables.expectation import expectation_data, show_expectation, show_gpu_alternatives

        dims, sizes = self.dims, self.sizes
        if dims and _is_plan(file):
            warning = "warning: --dim of a plan is deprecated: use --size for the sizes of random inputs"
            errors.print(warning, style="yellow", soft_wrap=True)
            dims, sizes = {}, {**dims, **sizes}
        plan = _plan_of(file, dims)
        steps = expected_steps(plan, Given(sizes=sizes).arrays(plan.inputs))
        if as_json:
            print_json({"ok": True, **expectation_data(steps)})
        elif self.alternatives:
            show_gpu_alternatives(steps)
        else:
            show_expectation(steps)


preparation_options = grouped(
    "preparation",
    Preparation,
    click.option(
        "--prepared",
        is_flag=True,
        help="Print every step as a session runs it: kernel, layouts, reused storage, memory in use.",
    ),
    click.option(
        "--alternatives",
        is_flag=True,
        help="With --prepared, print the forms that the runtime compared for each convolution and, on the CPU, each "
        "matrix product, and their expected times.",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu", "cuda"]),
        metavar="cpu|cuda",
        default="cpu",
        show_default=True,
        help="With --prepared, show the kernels of this device; no GPU is needed.",
    ),
    arguments.pin_option,
    size_option,
    arguments.packing_option,
)


@click.command(cls=Verb)
@click.argument("file", type=arguments.INPUT)
@click.option("--list-steps", is_flag=True, help="Print every step of a plan, or every node of a model.")
@preparation_options
@custom.custom_option
@json_option
def command(file: Path, list_steps: bool, preparation: Preparation, as_json: bool) -> None:
    """Show the source, inputs, outputs, constants and operators of FILE, which is a plan or an ONNX model.

    With --prepared, the command shows the steps as a session runs them. If FILE is a model, the command compiles the
    model first. The column "kernel" names the algorithm of a step. These words occur in many names:

    \b
    direct           a convolution that adds up the products of each output
    Winograd         a convolution with fewer multiplications, in tiles of outputs
    depthwise        a convolution with one channel in each group
    in rows          on images [N, C, H, W]
    in blocks        on images in blocks of B channels, [N, C/B, H, W, B]: B is 8 or 16, the same for the whole plan
    within the step  the step converts its image to blocks, and its result back
    int8             computes on 8-bit integers
    B prepacked      a matrix product whose right-hand matrix is packed when the plan is loaded
    Mul(·, x1)       elementwise functions on the result: · is the previous result; x0, x1 … are inputs of the step

    With --prepared --device cuda, the command lists the steps as a GPU would run them: kernels and library calls,
    launches and bytes. It also estimates the time on some GPUs from their published speed. It needs no GPU, because it
    only records the work of a run on random inputs. With --alternatives, the command lists the forms of each
    convolution, with their expected times on an H100.

    \b
    candlec inspect model.plan
    candlec inspect model.plan --list-steps
    candlec inspect model.onnx --json
    candlec inspect model.onnx --prepared --dim batch=1
    candlec inspect model.onnx --prepared --alternatives
    candlec inspect model.plan --prepared --device cuda --size batch=8
    candlec inspect model.plan --prepared --device cuda --alternatives
    """
    preparation.check_usage(list_steps)
    if preparation.prepared:
        preparation.show(file, as_json)
        return
    import compiler

    with working(f"reading {file}"):
        loaded = compiler.Plan.load(file) if _is_plan(file) else _loaded(file)
    if list_steps and not as_json:
        echo(_text_of(loaded), end=False)
        return
    facts = _plan_facts(loaded) if isinstance(loaded, compiler.Plan) else _model_facts(file, loaded)
    if as_json:
        print_json({"ok": True, **facts, **(_steps(loaded) if list_steps else {})})
    else:
        _show(file, facts)


def _is_plan(file: Path) -> bool:
    """Whether the file is a plan. The compiler reports a missing model, as in other verbs."""
    return arguments.is_plan(file) if file.exists() or file.suffix == ".plan" else False


def _loaded(file: Path) -> Loaded:
    from compiler.frontend.load import load_model

    return load_model(file)


def _plan_of(file: Path, dims: dict[str, int]) -> Plan:
    import compiler

    if _is_plan(file):
        return compiler.Plan.load(file)
    with working(f"compiling {file}"):
        return compiler.compile(file, compiler.Options(dims=dims))


def _text_of(loaded: Plan | Loaded) -> str:
    """The steps of a plan, or the nodes of a model and of its functions, one on each line."""
    import compiler
    from compiler.ir.text import model_text
    from compiler.plan.show import show

    return show(loaded) if isinstance(loaded, compiler.Plan) else model_text(loaded.model)


def _steps(loaded: Plan | Loaded) -> dict[str, Any]:
    """The steps or nodes as JSON data."""
    import compiler
    from compiler.ir.text import graph_nodes
    from compiler.plan.show import steps

    if isinstance(loaded, compiler.Plan):
        return {"steps": steps(loaded)}
    functions = loaded.model.functions.values()
    return {
        "steps": graph_nodes(loaded.model.graph),
        "functions": [
            {"domain": each.domain, "name": each.name, "steps": graph_nodes(each.graph)} for each in functions
        ],
    }


def _plan_facts(plan: Plan) -> dict[str, Any]:
    from compiler.plan.show import operators

    document = plan.document
    described = {"inputs": plan.inputs, "outputs": plan.outputs, "weights": plan.weights}
    return {
        "kind": "plan",
        "bytes": len(plan.data),
        "source_sha256": document["source_sha256"],
        "passes": document["passes"],
        **{
            key: [{"name": i.name, "dtype": i.dtype, "shape": i.shape} for i in infos]
            for key, infos in described.items()
        },
        "constants": len(document["constants"]),
        "operators": dict(operators(plan).most_common()),
        "metadata": document["metadata"],
    }


def _model_facts(file: Path, loaded: Loaded) -> dict[str, Any]:
    model = loaded.model
    constants = list(_constants(model.graph))
    operators = Counter(node.op_type for node in model.graph.all_nodes())
    return {
        "kind": "model",
        "bytes": file.stat().st_size,
        "sha256": loaded.sha256,
        "producer": f"{model.producer_name or ''} {model.producer_version or ''}".strip() or None,
        "opsets": {domain or "ai.onnx": opset for domain, opset in model.opset_imports.items()},
        "inputs": [_value_facts(value) for value in model.graph.inputs],
        "outputs": [_value_facts(value) for value in model.graph.outputs],
        "constants": len(constants),
        "constant_bytes": sum(each.nbytes for each in constants),
        "parameters": sum(math.prod(each.shape.numpy()) for each in constants if each.dtype.is_floating_point()),
        "operators": dict(operators.most_common()),
        "metadata": dict(model.metadata_props),
    }


def _constants(graph: ir.Graph) -> Iterator[ir.TensorProtocol]:
    """The constants of a graph and of its nested graphs: initializers and Constant nodes."""
    for each in (graph, *graph.subgraphs()):
        yield from (value.const_value for value in each.initializers.values() if value.const_value is not None)
        for node in each:
            if node.op_identifier() == ("", "Constant", "") and "value" in node.attributes:
                yield node.attributes["value"].as_tensor()


def _value_facts(value: Any) -> dict[str, Any]:
    from compiler.ir.dtypes import from_ir

    shape = None if value.shape is None else [dim if isinstance(dim, int) else dim.value for dim in value.shape]
    try:
        dtype = from_ir(value.dtype) if value.dtype else "?"
    except TypeError:
        dtype = str(value.dtype).lower()
    return {"name": value.name, "dtype": dtype, "shape": shape}


def _show(file: Path, facts: dict[str, Any]) -> None:
    """Print the facts as tables."""
    count = facts["constants"]
    held = f", {count} constant{'s' if count > 1 else ''}" if count else ""
    held += f" of {megabytes(facts['constant_bytes'])}" if facts.get("constant_bytes") else ""
    console.print(f"{file}: a {facts['kind']}, {megabytes(facts['bytes'])}{held}", style="bold")
    for key in ("producer", "opsets", "parameters", "sha256", "source_sha256"):
        if facts.get(key):
            console.print(f"{key.replace('_', ' ')}: {_text(facts[key])}", style="dim")
    if facts.get("passes"):
        console.print(f"passes: {len(facts['passes'])} (--json lists them)", style="dim")
        for key, text in facts["metadata"].items():
            console.print(f"{key}: {shorten(text, _MOST_TEXT)}", style="dim", soft_wrap=True)
    values = [(kind[:-1], each) for kind in ("inputs", "outputs", "weights") for each in facts.get(kind, ())]
    table(("", "name", "dtype", "shape"), ((kind, v["name"], v["dtype"], shape_text(v["shape"])) for kind, v in values))
    table(("operator", ">count"), ((name, str(count)) for name, count in facts["operators"].items()))
    custom.show_custom_ops(name for name in facts["operators"] if "::" in name)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
