"""Passes are tested with text: a graph in ONNX's text form goes in, `graph_text` comes out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

import compiler
from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.errors import CompileError, Diagnostic
from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model
from compiler.ir.graph import constant_of, nodes_of
from compiler.ir.text import graph_text
from compiler.passes.infer_shapes import infer_shapes
from compiler.rewrite.report import Pass, PassReport


def parse_(text: str, *, opset: int = 20, domains: str = "") -> ir.Model:
    """A model from the text of its graph, as `compiler.frontend.load` gives it."""
    imports = ", ".join([f'"" : {opset}', *[f'"{domain}" : 1' for domain in domains.split()]])
    proto = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{textwrap.dedent(text)}")
    return load_model(proto).model


def outputs_of(model: ir.Model, seed: int = 0) -> list[np.ndarray]:
    """onnxruntime's outputs for random inputs; a symbolic dimension is 3."""
    proto = ir.serde.serialize_model(model)
    for graph in (proto.graph,):
        del graph.value_info[:]
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.inputs:
        assert value.shape is not None and value.dtype is not None
        shape = [dim if isinstance(dim, int) else 3 for dim in value.shape]
        feeds[value.name] = np.asarray(random.standard_normal(shape) * 3).astype(value.dtype.numpy())
    return list(Reference(proto, optimize=False).run(feeds).values())


def untyped_of(model: ir.Model) -> set[ir.Value]:
    """The outputs of nodes that have no known type."""
    return {value for node in nodes_of(model) for value in node.outputs if value.type is None}


def check_pass_(
    pass_: Pass,
    before: str | ir.Model,
    after: str | None = None,
    *,
    opset: int = 20,
    domains: str = "",
    same_results: tuple[float, float] | None = (0, 0),
) -> PassReport:
    """Runs a pass. Compares the graph with `after`, and the results before and after the pass (rtol, atol).

    Infers shapes first if the pass requires them. The graph must satisfy the invariants, and a second run must change
    nothing. Returns the report.
    """
    model = parse_(before, opset=opset, domains=domains) if isinstance(before, str) else before
    original = outputs_of(model) if same_results else []
    if "shapes" in pass_.requires:
        infer_shapes.run(model)
    untyped = untyped_of(model)
    report = pass_.run(model)
    text = graph_text(model.graph)
    if "shapes" in pass_.requires:
        assert untyped_of(model) <= untyped, "the pass makes nodes without types"
    if after is not None:
        assert text == textwrap.dedent(after).lstrip("\n")
    assert violations(model) == []
    again = pass_.run(model)
    assert graph_text(model.graph) == text and not again.changed, "running the pass twice changes the graph"
    if same_results:
        rtol, atol = same_results
        for found, expected in zip(outputs_of(model), original, strict=True):
            np.testing.assert_allclose(found, expected, rtol, atol)
    return report


@pytest.fixture
def check_pass() -> Callable[..., PassReport]:
    """The function `check_pass_` as a fixture."""
    return check_pass_


@pytest.fixture
def parse() -> Callable[..., ir.Model]:
    """The function `parse_` as a fixture."""
    return parse_


def evaluate_(nodes, results, opsets):
    """Runs nodes with onnxruntime: an evaluator that does not need the lowerings under test."""
    given = {value for node in nodes for value in node.inputs if value is not None}
    constants = [value for value in given if constant_of(value) is not None]
    names = {}
    protos = []
    for number, node in enumerate(nodes):
        for value in (*node.inputs, *node.outputs):
            if value is not None:
                value.name = value.name or f"unnamed{len(names)}"
                names.setdefault(value, f"v{len(names)}")
        proto = ir.serde.serialize_node(node)
        proto.name = f"n{number}"
        del proto.input[:], proto.output[:]
        proto.input.extend("" if value is None else names[value] for value in node.inputs)
        proto.output.extend(names[value] for value in node.outputs)
        protos.append(proto)
    graph = onnx.helper.make_graph(
        protos,
        "constants",
        [],
        [onnx.helper.make_empty_tensor_value_info(names[value]) for value in results],
        [onnx.numpy_helper.from_array(constant_of(value), names[value]) for value in constants],
    )
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    try:
        return list(Reference(model).run({}).values())
    except ReferenceFailed as error:
        raise CompileError([Diagnostic("CC0201", str(error))]) from error


@pytest.fixture
def evaluate() -> Callable[..., list[np.ndarray]]:
    """The function `evaluate_` as a fixture."""
    return evaluate_


@pytest.fixture
def check_export(tmp_path, quick_exports) -> Callable[..., list[str]]:
    """A function that exports a module or function with PyTorch, and compares the plan with onnxruntime.

    `exporter` is "dynamo" or "script"; `dims` names the axes that are symbols, by argument. Gives the plan's operators.
    """
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Function(torch.nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, *arguments):
            return self.function(*arguments)

    def exported(module, arrays, exporter, opset, dims):
        is_function = not isinstance(module, torch.nn.Module)
        if is_function:
            module = Function(module)
        path, given = tmp_path / "m.onnx", {}
        if dims and exporter == "dynamo":
            shapes = tuple({axis: torch.export.Dim(name) for axis, name in of.items()} for of in dims)
            given["dynamic_shapes"] = (shapes,) if is_function else shapes
        elif dims:
            names = [f"input{index}" for index in range(len(dims))]
            given |= {"input_names": names, "dynamic_axes": dict(zip(names, dims, strict=True))}
        arguments = tuple(map(torch.from_numpy, arrays))
        is_dynamo = exporter == "dynamo"
        torch.onnx.export(module.eval(), arguments, path, dynamo=is_dynamo, opset_version=opset, verbose=False, **given)
        return path

    def check(module, arrays, *, tolerance, exporter="dynamo", opset=None, dims=None):
        torch.manual_seed(0)
        path = exported(module, arrays, exporter, opset or {"dynamo": 20, "script": 17}[exporter], dims)
        plan = compiler.compile(path, compiler.Options(verify_passes=True))
        session = compiler.load(plan, threads=1)
        feeds = {info.name: array for info, array in zip(session.inputs, arrays, strict=True)}
        expected = Reference(path).run(feeds)
        for found, wanted in zip(session.run(feeds).values(), expected.values(), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
        return [next(iter(step["op"])) for step in plan.document["main"]["steps"]]

    return check
