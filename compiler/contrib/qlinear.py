"""Functions of 8-bit codes, which onnxruntime's static quantizer writes: QLinearAdd, QLinearSigmoid and others.

A code stands for `(code - zero point) · scale`. The functions whose results are only rounded differently are written
with DequantizeLinear and QuantizeLinear, so that later passes compute them on the codes. The others state
onnxruntime's own order of operations, since equal scales often give ties.
"""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.quantized_tensor import QuantizedTensor, rounded

__all__: list[str] = []


@expands("QLinearAdd")
def qlinear_add(node: Node, new: Body) -> ir.Value:
    """`round(a · A_scale/C_scale + (b · B_scale/C_scale + fixed))`, where `fixed` holds the three zero points.

    Each product and the sum after it are rounded once, to float32, as by the processor's fused operation.
    """
    a, b = QuantizedTensor.read(node, new, 0, "A"), QuantizedTensor.read(node, new, 3, "B")
    c = QuantizedTensor.of_result(node, new, 6, 0, "A")
    ratios = [new.op("Div", each.scale, c.scale) for each in (a, b)]
    zeros = _fused(new, a.zero_as_float(new), ratios[0], new.op("Mul", ratios[1], b.zero_as_float(new)))
    total = new.op("Sub", c.zero_as_float(new), zeros)
    for each, ratio in ((b, ratios[1]), (a, ratios[0])):
        total = _fused(new, each.as_float(new), ratio, total)
    return rounded(new, total, c.dtype)


def _fused(new: Body, code: ir.Value, ratio: ir.Value, other: ir.Value) -> ir.Value:
    """`code · ratio + other`, rounded once, in operations of float32.

    The parts of the ratio, of 16 and 8 bits, have exact products with a code. The error of the first sum is exact too.
    Sources: T. J. Dekker, "A floating-point technique for extending the available precision", 1971 (the split);
    D. Knuth, "The Art of Computer Programming", volume 2, section 4.2.2, theorem B (the error of a sum).
    """
    scaled = new.op("Mul", ratio, new.scalar(257, FLOAT))
    high = new.op("Sub", scaled, new.op("Sub", scaled, ratio))
    product, rest = new.op("Mul", code, high), new.op("Mul", code, new.op("Sub", ratio, high))
    total = new.op("Add", product, other)
    added = new.op("Sub", total, product)
    errors = new.op("Sub", product, new.op("Sub", total, added)), new.op("Sub", other, added)
    return new.op("Add", total, new.op("Add", new.op("Add", *errors), rest))


@expands("QLinearMul")
def qlinear_mul(node: Node, new: Body) -> ir.Value:
    """`round((a - zero of A) · (b - zero of B) · A_scale · B_scale / C_scale + zero of C)`."""
    a, b = QuantizedTensor.read(node, new, 0, "A"), QuantizedTensor.read(node, new, 3, "B")
    c = QuantizedTensor.of_result(node, new, 6, 0, "A")
    product = new.op("Mul", *(new.op("Sub", each.as_float(new), each.zero_as_float(new)) for each in (a, b)))
    ratio = new.op("Div", new.op("Mul", a.scale, b.scale), c.scale)
    return rounded(new, new.op("Add", new.op("Mul", product, ratio), c.zero_as_float(new)), c.dtype)


@expands("QLinearLeakyRelu")
def qlinear_leaky_relu(node: Node, new: Body) -> ir.Value:
    """`LeakyRelu` of codes."""
    x, y = QuantizedTensor.read(node, new, 0, "X"), QuantizedTensor.of_result(node, new, 3, 0, "X")
    return y.quantize(new, new.op("LeakyRelu", x.dequantize(new), alpha=node.float("alpha", 0.01)))


@expands("QLinearSigmoid")
def qlinear_sigmoid(node: Node, new: Body) -> ir.Value:
    """`Sigmoid` of codes."""
    x, y = QuantizedTensor.read(node, new, 0, "X"), QuantizedTensor.of_result(node, new, 3, 0, "X")
    return y.quantize(new, new.op("Sigmoid", x.dequantize(new)))


@expands("QLinearSoftmax")
def qlinear_softmax(node: Node, new: Body) -> ir.Value:
    """`Softmax` of codes along an axis or, before opset 13, along all axes from `axis` on.

    The result is `round(softmax · floor(1 / y_scale)) + zero point`.
    """
    x, y = QuantizedTensor.read(node, new, 0, "X"), QuantizedTensor.of_result(node, new, 3, 0, "X")
    is_old = node.int("opset") < 13
    axis = node.int("axis", -1)
    floats = x.dequantize(new)
    if is_old:
        flat = new.op("Softmax", new.op("Flatten", floats, axis=axis), axis=-1)
        parts = new.op("Reshape", flat, new.op("Shape", floats))
    else:
        parts = new.op("Softmax", floats, axis=axis)
    steps = new.op("Floor", new.op("Div", new.scalar(1, FLOAT), y.scale))
    whole = new.op("Round", new.op("Mul", parts, steps))
    return rounded(new, new.op("Add", whole, y.zero_as_float(new)), y.dtype)


@expands("QLinearWhere")
def qlinear_where(node: Node, new: Body) -> ir.Value:
    """`Where` of codes."""
    x, y = QuantizedTensor.read(node, new, 1, "X"), QuantizedTensor.read(node, new, 4, "Y")
    z = QuantizedTensor.of_result(node, new, 7, 1, "X")
    chosen = [z.quantize(new, each.dequantize(new)) for each in (x, y)]
    return new.op("Where", node.input(0), *chosen)


@expands("QLinearConcat")
def qlinear_concat(node: Node, new: Body) -> ir.Value:
    """`Concat` of codes. The inputs are the scale and zero point of Y, then each operand with its own two."""
    count, left = divmod(len(node.inputs) - 2, 3)
    if left or count < 1:
        node.refuse("CC0205", "QLinearConcat needs a scale and a zero point after each operand")
    y = QuantizedTensor.of_result(node, new, 0, 1, "Y_zero_point")
    operands = [QuantizedTensor.read(node, new, 2 + 3 * at, f"inputs[{3 * at}]") for at in range(count)]
    return new.op("Concat", *(y.quantize(new, each.dequantize(new)) for each in operands), axis=node.int("axis"))
