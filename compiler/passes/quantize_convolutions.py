"""Quantizes convolutions with constant weights to 8 bits, with the ranges that a calibration set gives.

The pass writes QuantizeLinear and DequantizeLinear around convolutions, and around the operators between them that can
compute on codes. The pass `fuse_quantization` then makes integer operators of them. Activations become codes from 0 to
255, with one scale and zero point. Weights become codes from −127 to 127, with a scale for each output channel. The
bias becomes 32-bit integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.calibration import Observe
from compiler.ir import origin
from compiler.ir.graph import constant_of, graph_of, nodes_of, rank
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.permutation import typed
from compiler.rewrite.quantized.convolution_weights import ConvolutionWeights
from compiler.rewrite.quantized.ranges import ActivationCodes, Observed
from compiler.rewrite.quantized.regions import Region, moves
from compiler.rewrite.quantized_rows import WORST
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert

__all__ = ["quantize_convolutions"]

Array = np.ndarray[Any, Any]
_NAME = "QuantizeConvolution"
_VERSION = 13
"""The first version of QuantizeLinear and DequantizeLinear with scales for each index of an axis."""
_DEEPEST = 1 << 15
"""The most terms of a sum that fits 32 bits together with its bias."""


def quantize_convolutions(observe: Observe, keep: KeptWeights) -> Pass:
    """The pass, which runs the model with `observe`. Convolutions whose weights have a name in `keep` stay."""

    def apply(model: ir.Model, report: PassReport) -> None:
        convolutions = [*_candidates(model, keep, report)]
        if not convolutions:
            return
        region, codes = _region(model, convolutions, observe)
        refusals = ((node, _refusal(node, float(codes[_source(node)].scale))) for node in convolutions)
        refused = {node: reason for node, reason in refusals if reason is not None}
        if refused:
            report.missed.extend(Missed(_NAME, origin.of(node), reason) for node, reason in refused.items())
            convolutions = [node for node in convolutions if node not in refused]
            region, codes = _region(model, convolutions, observe)
        nodes = [*model.graph]
        following = {None: nodes[0], **dict(itertools.pairwise(nodes))}
        for node in convolutions:
            _quantize_weights(node, codes[_source(node)], report)
        for value in region.values:
            _quantize(value, codes[value], region, following[value.producer()])

    return Pass(
        "quantize_convolutions",
        apply,
        result="convolutions quantized",
        requires=frozenset({"sorted", "shapes"}),
        ensures=frozenset({"stored weights"}),
        needed=True,
    )


def _candidates(model: ir.Model, keep: KeptWeights, report: PassReport) -> Iterator[ir.Node]:
    """The convolutions that can change. The report gets the reasons of the others."""
    for node in nodes_of(model):
        if node.op_identifier() != ("", "Conv", ""):
            continue
        reason = _reason(node, model.graph, keep)
        if reason is None:
            yield node
        else:
            report.missed.append(Missed(_NAME, origin.of(node), reason))


def _reason(node: ir.Node, graph: ir.Graph, keep: KeptWeights) -> str | None:
    """Why a convolution stays as it is."""
    x, weights = node.inputs[:2]
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    array, added = constant_of(weights), constant_of(bias)
    if weights is None or keep.names(node, weights):
        return "the option `keep` names them"
    if array is None or (bias is not None and added is None):
        return "the weights or the bias are not constant"
    if weights.dtype != ir.DataType.FLOAT:
        return f"the weights are {weights.dtype}"
    if node.graph is not graph:
        return "the convolution is in a branch or loop, which calibration does not observe"
    if rank(x) is None or constant_of(x) is not None:
        return "the input is constant, or its rank is not known"
    if not array.size:
        return "there are no weights"
    if array.size > _DEEPEST * len(array):
        return f"the sums of more than {_DEEPEST} products may not fit 32 bits"
    if not np.isfinite(array).all() or (added is not None and not np.isfinite(added).all()):
        return "a weight or a bias is not finite"
    return _refusal(node, 1)


def _refusal(node: ir.Node, unit: float) -> str | None:
    """Why the codes of the weights are no good for an input whose scale is `unit`."""
    error = ConvolutionWeights.of(node, unit).error
    return None if error <= WORST else f"the error would be {error:.0%} of the weights"


def _region(
    model: ir.Model, convolutions: Sequence[ir.Node], observe: Observe
) -> tuple[Region, dict[ir.Value, ActivationCodes]]:
    """The values that become codes with these convolutions, and their codes."""
    region = Region.around(model.graph, convolutions)
    return region, _codes(region, observe(model, region.values))


def _codes(region: Region, observed: Sequence[Observed]) -> dict[ir.Value, ActivationCodes]:
    """The codes of the values of a region. An operator that only moves elements keeps their codes."""
    codes = {value: each.codes() for value, each in zip(region.values, observed, strict=True)}
    for value in region.values:
        node = value.producer()
        if node is not None and node in region.others and moves(node):
            codes[value] = codes[_source(node)]
    return codes


def _source(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None  # as always for the operators of a region
    return value


def _quantize_weights(node: ir.Node, x: ActivationCodes, report: PassReport) -> None:
    """Replaces the weights and the bias of a convolution with dequantized codes."""
    weights, new = ConvolutionWeights.of(node, float(x.scale)), Rewriter(graph_of(node))
    name = str(node.inputs[1] and node.inputs[1].name)
    results = [_dequantized(new, weights.codes, weights.scales, f"{name}.codes")]
    if weights.bias is not None:
        unit = np.asarray(x.scale * weights.scales)
        units = np.rint(weights.bias / unit.astype(np.float64)).astype(np.int32)
        results.append(_dequantized(new, units, unit, f"{name}.bias"))
    origin.inherit(new.nodes, [node])
    insert(graph_of(node), node, new)
    for index, result in enumerate(results, 1):
        node.replace_input_with(index, result)
    said = f"int8, {weights.codes.size} weights, relative error {weights.error:.2%}"
    report.fired.append(Fired(_NAME, origin.of(node), said, weights.error, name))


def _dequantized(new: Rewriter, codes: Array, scales: Array, name: str) -> ir.Value:
    """Constant codes with a scale for each index of the first axis, dequantized."""
    zeros = new.constant(np.zeros(scales.shape, codes.dtype), f"{name}.zeros")
    constants = [new.constant(codes, name), new.constant(scales, f"{name}.scales"), zeros]
    result = new.op("DequantizeLinear", *constants, version=_VERSION, axis=0)
    return typed(result, ir.TensorType(ir.DataType.FLOAT), ir.Shape(codes.shape))


def _quantize(value: ir.Value, codes: ActivationCodes, region: Region, before: ir.Node) -> None:
    """Quantizes a value, and dequantizes it for its readers: all of them, if an operator of the region computes it.

    Otherwise, only readers in the region get the dequantized numbers.
    """
    is_inner, graph, name = value.producer() in region, graph_of(before), value.name or "value"
    uses = [use for use in value.uses() if is_inner or use.node in region]
    new = Rewriter(graph)
    parameters = [new.constant(codes.scale, f"{name}.scale"), new.constant(codes.zero, f"{name}.zero")]
    quantized = new.op("QuantizeLinear", value, *parameters, version=_VERSION)
    typed(quantized, ir.TensorType(ir.DataType.UINT8), value.shape)
    result = typed(new.op("DequantizeLinear", quantized, *parameters, version=_VERSION), value.type, value.shape)
    origin.inherit(new.nodes, [value.producer() or uses[0].node])
    insert(graph, before, new)
    for use in uses:
        use.node.replace_input_with(use.idx, result)
    if is_inner and value.is_graph_output():
        _replace_output(value, result, graph)


def _replace_output(old: ir.Value, new: ir.Value, graph: ir.Graph) -> None:
    """Makes `new` the output of the graph that `old` was, with its name."""
    places = [at for at, each in enumerate(graph.outputs) if each is old]
    name, old.name = old.name, f"{old.name}.numbers"
    new.name = name
    for at in places:
        graph.outputs[at] = new
