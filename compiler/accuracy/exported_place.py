"""The first value of an exported model that differs from the value of PyTorch's graph with the same name.

PyTorch exports a module in two steps. It captures a graph of its own operators, and translates each operator to ONNX.
The names of the graph's nodes become names of ONNX values. The search runs PyTorch's graph operator by operator, and
compares each value with the plan's. The compiler optimizes nothing in this plan, so that it keeps most values.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from compiler.accuracy.compare import Comparison, compare
from compiler.accuracy.layerwise import named_values
from compiler.accuracy.module_runs import Call, array, leaves
from compiler.accuracy.verify import random_outputs
from compiler.errors import CompileError, InputError, RunError
from compiler.frontend.load import load_model
from compiler.ir.origin import Origin, of
from compiler.options import Options
from compiler.pipeline import compile
from compiler.plan.stored import with_outputs
from compiler.runtime.session import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compiler.frontend.export_request import Exported

__all__ = ["place_of_difference"]

_CAPTURED = (
    "no value differs from PyTorch's graph: torch.export captured another function than the module's Python code"
)
_OPTIMIZED = "the plan without optimization has no difference: `candlec bisect {path}` finds the pass that causes it"


def place_of_difference(exported: Exported, call: Call) -> str:
    """A sentence that names the first module whose value differs, its class, line of Python and ONNX nodes.

    All values before this one are equal, within the tolerance of their dtype.
    """
    if exported.program is None:
        from compiler.accuracy.exported_taps import place_in_recorded

        return place_in_recorded(exported, call)
    try:
        plan = compile(exported.path, Options(optimize=False))
    except CompileError as error:
        return f"cannot locate it: without optimization, the compiler refuses the model: {error.diagnostics[0].message}"
    inputs, places = call.inputs(exported.inputs), dict(named_values(plan))
    renamed = dict(zip(exported.results, exported.outputs, strict=True))
    wider = with_outputs(plan, [place.value for place in places.values()])
    random = random_outputs(wider)
    try:
        found = load(wider).run(inputs)
    except (InputError, RunError) as error:
        return f"the model fails before a value differs: {error}"
    differs: list[Comparison] = []

    def visit(name: str, value: Any) -> bool:
        """Compare a value of PyTorch's graph, and say whether it differs."""
        known = renamed.get(name, name)
        if known not in found:
            return False
        report = compare({known: array(value)}, {known: found.pop(known)}, random=random)
        differs.extend(each for each in report.outputs if not each.ok)
        return not report.ok

    try:
        _interpret(exported, call, visit)
    except Exception as error:  # an operator of PyTorch may raise anything
        return f"cannot locate it: PyTorch's graph fails: {type(error).__name__}: {error}"
    if differs:
        return _described(exported, call, differs[0])
    expected = dict(zip(exported.outputs, call.run(), strict=True))
    is_equal = compare(expected, load(plan).run(inputs), random=random).ok
    return _OPTIMIZED.format(path=exported.path) if is_equal else _CAPTURED


def _interpret(exported: Exported, call: Call, visit: Callable[[str, Any], bool]) -> None:
    """Run PyTorch's graph until `visit`, which gets the name and value of each tensor, returns true."""
    import torch

    class Interpreter(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: torch.fx.Node) -> Any:
            value = super().run_node(node)
            if node.op == "call_function" and isinstance(value, torch.Tensor) and visit(node.name, value):
                raise StopIteration
            return value

    program = exported.program
    assert program is not None
    weights: Mapping[str, Any] = {**dict(program.named_buffers()), **program.state_dict, **program.constants}
    given = iter(leaves((call.args, call.kwargs)))
    arguments = [
        next(given) if spec.target is None else weights[spec.target] for spec in program.graph_signature.input_specs
    ]
    with torch.no_grad(), suppress(StopIteration):
        Interpreter(program.graph_module).run(*arguments)


def _described(exported: Exported, call: Call, differs: Comparison) -> str:
    nodes = load_model(exported.path).model.graph
    makers = (of(node) for node in nodes if any(value.name == differs.name for value in node.outputs))
    origin = next(makers, Origin(nodes=(differs.name,)))
    path, kind = origin.module, origin.layer or type(call.module).__name__
    where = f"{path} : {kind}" if path else kind
    line = f", {origin.source}" if origin.source else ""
    size = differs.problem or f"{differs.max_abs:.2g}, allowed {differs.allowed:.2g}"
    return f"the first module that differs is {where}{line}, in {' + '.join(origin.nodes)} ({size})"
