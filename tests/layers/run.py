"""From a line of the tables to outputs: export, compile, run, compare."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import compiler
from tests.layers.layer import Exporter, Function, Layer

Array = np.ndarray[Any, Any]


class OnnxRuntime:
    """A model as onnxruntime runs it, unoptimized."""

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: tuple[Any, ...]) -> list[Array]:
        return list(self.session.run(None, _feeds([info.name for info in self.session.get_inputs()], inputs, {})))


Reference = nn.Module | OnnxRuntime


class Unexportable(Exception):
    """The exporter cannot export the layer."""


def module_of(layer: Layer) -> nn.Module:
    """The layer's module with seeded weights, ready for inference; its normalizations have seen data."""
    torch.manual_seed(7)
    with quiet():
        module = layer.build()
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            nn.init.normal_(buffer)
        elif name.endswith("running_var"):
            nn.init.uniform_(buffer, 0.5, 2.0)
    return module.eval()


def exported(layer: Layer, module: nn.Module, exporter: Exporter) -> dict[str, bytes]:
    """The layer's ONNX models by label: as exported, and as the exporter's own optimizer leaves it.

    Raises:
        Unexportable: the exporter raises an exception.
    """
    try:
        with quiet():
            return _dynamo(layer, module) if exporter == "dynamo" else _torchscript(layer, module)
    except Exception as error:
        raise Unexportable(f"{type(error).__name__}: {error}") from error


def _dynamo(layer: Layer, module: nn.Module) -> dict[str, bytes]:
    shapes: Any = tuple(dict(dims) or None for dims in layer.dynamic) or None
    if shapes and isinstance(module, Function):
        shapes = (shapes,)
    program = torch.onnx.export(
        module, layer.inputs, dynamo=True, opset_version=layer.opset, dynamic_shapes=shapes, optimize=False,
        verbose=False, **layer.options,
    )  # fmt: skip
    plain = program.model_proto.SerializeToString()
    program.optimize()
    return {"as exported": plain, "optimized by the exporter": program.model_proto.SerializeToString()}


def _torchscript(layer: Layer, module: nn.Module) -> dict[str, bytes]:
    names = [f"x{index}" for index in range(len(tree_leaves(layer.inputs)))]
    axes = {name: dict(dims) for name, dims in zip(names, layer.dynamic, strict=False) if dims}
    file = io.BytesIO()
    torch.onnx.export(
        module, layer.inputs, file, dynamo=False, opset_version=layer.opset, input_names=names, dynamic_axes=axes,
        **layer.options,
    )  # fmt: skip
    return {"as exported": file.getvalue()}


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the exporters' warnings of deprecated functions and missing packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def check(layer: Layer, model: bytes, reference: Reference, label: str, devices: Sequence[str] = ("cpu",)) -> None:
    """Compiles the model, optimized and not, runs it on each device and compares it with the reference.

    Raises:
        AssertionError: the outputs differ, or the plan has other steps than expected.
        CompileError, InputError, RunError: as of the product.
    """
    given = [inputs for inputs in (layer.inputs, layer.again) if inputs]
    expected = [outputs(reference, inputs) for inputs in given]
    weights = reference.state_dict() if isinstance(reference, nn.Module) else {}
    for optimize in (True, False):
        plan = compiler.compile(model, compiler.Options(optimize=optimize))
        if optimize and layer.steps is not None:
            assert steps(plan) == list(layer.steps), label
        for device in devices:
            session = compiler.load(plan, device=device, threads=1)
            for inputs, wanted in zip(given, expected, strict=True):
                found = session.run(_feeds([info.name for info in session.inputs], inputs, weights))
                assert_all_close(list(found.values()), wanted, layer, f"{label}, optimize={optimize}, {device}")


def steps(plan: compiler.Plan) -> list[str]:
    """The names of the ops of the plan's steps."""
    return [next(iter(step["op"])) for step in plan.document["main"]["steps"]]


def outputs(reference: Reference, inputs: tuple[Any, ...]) -> list[Array]:
    """The tensors that the reference computes, in order."""
    if isinstance(reference, OnnxRuntime):
        return reference.run(inputs)
    with torch.no_grad(), quiet():
        return [leaf.numpy() for leaf in tree_leaves(reference(*inputs)) if leaf is not None]


def _feeds(names: Sequence[str], inputs: tuple[Any, ...], weights: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """The inputs in order, and the weights that the model takes as inputs by name."""
    feeds = {name: weights[name].numpy() for name in names if name in weights}
    rest = [name for name in names if name not in feeds]
    leaves = [leaf.numpy() for leaf in tree_leaves(inputs) if leaf is not None]
    return {**feeds, **dict(zip(rest, leaves, strict=True))}


def assert_all_close(found: list[Array], expected: list[Array], layer: Layer, label: str) -> None:
    """Checks that the number of outputs is right, and that each is close to the expected one."""
    assert len(found) == len(expected), label
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_close(one, other, layer.tolerance, f"output {index}, {label}")


def assert_close(found: Array, expected: Array, tolerance: float, label: str) -> None:
    """Checks dtype and shape. Floats may differ by `tolerance` × the largest finite element of `expected`."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), label
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=label)
        return
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    scale = float(finite.max()) if finite.size else 0.0
    wide = np.float64
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), 0.0, tolerance * scale, err_msg=label)
