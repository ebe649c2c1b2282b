"""Weight norm as PyTorch's exporters write it: both APIs, every `dim`, every layer, both exporters."""

import io
import warnings

import numpy as np
import onnx
import pytest

from compiler.frontend.invariants import violations
from compiler.frontend.load import load_model
from compiler.ir.graph import constant_of
from compiler.passes.drop_dead_nodes import drop_dead_nodes
from compiler.passes.drop_identities import drop_identities
from compiler.passes.fold_constants import fold_constants
from compiler.passes.fold_weight_norm import fold_weight_norm
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline_functions
from compiler.passes.sort_nodes import sort_nodes

torch = pytest.importorskip("torch", reason="needs PyTorch")
nn = torch.nn

pytestmark = pytest.mark.usefixtures("quick_exports")

LAYERS = {
    "Conv1d": lambda: (nn.Conv1d(3, 4, 3), (1, 3, 8)),
    "Conv2d": lambda: (nn.Conv2d(3, 4, (3, 2)), (1, 3, 8, 8)),
    "ConvTranspose1d": lambda: (nn.ConvTranspose1d(3, 4, 3), (1, 3, 8)),
    "ConvTranspose2d": lambda: (nn.ConvTranspose2d(3, 4, 3), (1, 3, 8, 8)),
    "Linear": lambda: (nn.Linear(3, 4), (2, 3)),
    "Conv1d large": lambda: (nn.Conv1d(64, 64, 3), (1, 64, 8)),
}
APIS = {"hook": nn.utils.weight_norm, "parametrization": nn.utils.parametrizations.weight_norm}
EXPORTERS = {"dynamo": {"dynamo": True}, "unoptimized": {"dynamo": True, "optimize": False}}
EXPORTERS |= {"torchscript 17": {"opset_version": 17}, "torchscript 20": {"opset_version": 20}}


def export(module, shape, options, **more):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = {"dynamo": False, **options, **more}
        if arguments["dynamo"]:
            program = torch.onnx.export(module.eval(), (torch.randn(shape),), verbose=False, **arguments)
            return program.model_proto
        torch.onnx.export(module.eval(), (torch.randn(shape),), buffer, **arguments)
    return onnx.load_from_string(buffer.getvalue())


def double_precision_weight(module, shape):
    wide = module.double()
    wide(torch.zeros(shape, dtype=torch.float64))  # the hook computes the weight before a call
    return wide.weight.detach().numpy().astype(np.float32)


def fold(proto, evaluate):
    model = load_model(proto).model
    for step in (inline_functions, sort_nodes, infer_shapes, fold_constants(evaluate, only_indices=True), infer_shapes):
        step.run(model)
    report = fold_weight_norm(evaluate).run(model)
    again = fold_weight_norm(evaluate).run(model)
    assert not again.changed
    for step in (fold_constants(evaluate), drop_identities, drop_dead_nodes):
        step.run(model)
    assert violations(model) == []
    return model, report


def assert_folded(model, expected, rtol):
    """One layer is left, with the expected weight."""
    weights = [constant_of(value) for node in model.graph for value in node.inputs[1:2]]
    assert not {node.op_type for node in model.graph} & {"ReduceL2", "Div", "Mul", "Sqrt"}
    (weight,) = [array for array in weights if array is not None and array.ndim == expected.ndim]
    weight = weight if weight.shape == expected.shape else weight.T
    np.testing.assert_allclose(weight, expected, rtol, atol=0)


CASES = [(layer, api, exporter, 0) for layer in LAYERS for api in APIS for exporter in EXPORTERS]
CASES += [("Conv1d large", api, exporter, dim) for api in APIS for exporter in EXPORTERS for dim in (1, None)]


@pytest.mark.parametrize(("layer", "api", "exporter", "dim"), CASES)
def test_weight_norm(layer, api, exporter, dim, evaluate):
    torch.manual_seed(0)
    module, shape = LAYERS[layer]()
    module = APIS[api](module, dim=dim)
    proto = export(module, shape, EXPORTERS[exporter])
    model, report = fold(proto, evaluate)
    # The pass rounds once. The exporter rounds several times if it has folded the weight itself.
    assert report.changed or exporter in ("dynamo", "torchscript 17")
    assert_folded(model, double_precision_weight(module, shape), rtol=6e-8 if report.changed else 1e-6)


def test_it_says_which_layers_it_folded(evaluate):
    module = nn.Sequential(nn.Identity(), nn.utils.parametrizations.weight_norm(nn.Conv1d(64, 64, 3)))
    _, report = fold(export(module, (1, 64, 8), EXPORTERS["unoptimized"]), evaluate)
    assert [(fired.rule, fired.origin.module) for fired in report.fired] == [
        ("weight_norm", "1.parametrizations.weight.0")
    ]


def test_spectral_norm(evaluate):
    torch.manual_seed(0)
    shape = (1, 16, 8, 8)
    module = nn.utils.parametrizations.spectral_norm(nn.Conv2d(16, 16, 3)).eval()
    model, report = fold(export(module, shape, EXPORTERS["unoptimized"]), evaluate)
    assert report.changed
    assert_folded(model, double_precision_weight(module, shape), rtol=6e-8)


def test_weights_given_at_run_time_are_left(evaluate):
    module = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3))
    proto = export(module, (1, 3, 8), {"opset_version": 20}, export_params=False)
    model, report = fold(proto, evaluate)
    assert not report.changed
    assert "ReduceL2" in {node.op_type for node in model.graph}


def test_a_division_by_a_sum_is_no_norm(check_pass, parse, evaluate):
    model = parse(
        """
        agraph (float[2] x) => (float[2] y) <float[2] w = {1, 3}> {
            s = ReduceSum<keepdims=1>(w)
            n = Div(w, s)
            y = Mul(x, n)
        }
        """
    )
    infer_shapes.run(model)
    assert not check_pass(fold_weight_norm(evaluate), model).changed


@pytest.mark.parametrize(
    "graph",
    [
        "<int64[1] s = {2}> { a = ConstantOfShape<value = float[1] {4.0}>(s) q = Sqrt(a) w = Div(a, q) z = Mul(x, w) }",
        "<float[2, 2] v = {1, 2, 3, 4}> { a = EyeLike<dtype = 1>(v) q = Sqrt(a) w = Div(a, q) z = Mul(x, w) }",
        "<float[2] v = {1, 2}, int64[1] s = {2}> "
        "{ a = ConstantOfShape<value = float[1] {4.0}>(s) q = Sqrt(v) w = Div(a, q) z = Mul(x, w) }",
    ],
    ids=["ConstantOfShape", "EyeLike", "two precisions"],
)
def test_a_constant_that_stays_in_single_precision_is_a_miss(graph, parse, evaluate):
    model = parse(f"g (float[2] x) => (z) {graph}")
    infer_shapes.run(model)
    report = fold_weight_norm(evaluate).run(model)
    assert not report.fired
    assert [each.rule for each in report.missed] == ["weight_norm"]
