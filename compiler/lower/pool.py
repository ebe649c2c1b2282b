"""MaxPool, AveragePool, LpPool and their global forms; MaxUnpool."""

from __future__ import annotations

from compiler.ir.views.window import WindowView
from compiler.lower.node import Node, lowers, remark
from compiler.lower.padding import dilations, explicit_pads, padding, positive, strides
from compiler.plan import PlanBuilder, Value, ops


def _window(node: Node, view: WindowView[Value]) -> ops.PoolWindow:
    kernel = view.kernel or ()
    axes = len(kernel)
    return ops.PoolWindow(
        kernel=positive(node, "kernel_shape", kernel, axes),
        strides=strides(node, view, axes),
        dilations=dilations(node, view, axes),
        padding=padding(node, view, axes),
        ceil=view.rounds_up,
    )


@lowers("MaxPool", newest=22)
def max_pool(node: Node, build: PlanBuilder) -> Value | tuple[Value, ...]:
    """`MaxPool`, with or without indices."""
    view = WindowView.read(node)
    op = ops.MaxPool(window=_window(node, view), column_major=view.column_major)
    return build(op, node.input(0), outputs=2) if node.uses_output(1) else build(op, node.input(0))


remark(
    "MaxPool",
    "A window ignores NaN; in onnxruntime, the result depends on the position of NaN. A window that covers only "
    "padding gives −∞; in onnxruntime, it gives the lowest finite number.",
)


@lowers("AveragePool", newest=22)
def average_pool(node: Node, build: PlanBuilder) -> Value:
    """`AveragePool`."""
    view = WindowView.read(node)
    op = ops.AveragePool(window=_window(node, view), count_padding=view.counts_pads)
    return build(op, node.input(0))


remark(
    "QLinearAveragePool",
    "If `ceil_mode` and `count_include_pad` are 1, the average of a window does not count elements beyond the padding, "
    "as in AveragePool of the standard. onnxruntime counts them as zeros.",
)
remark(
    "AveragePool",
    "A window that covers only padding gives NaN if `count_include_pad` is 0; in onnxruntime, it gives 0.",
)


@lowers("LpPool", newest=22)
def lp_pool(node: Node, build: PlanBuilder) -> Value:
    """`LpPool`."""
    return build(ops.LpPool(window=_window(node, WindowView.read(node)), p=_exponent(node)), node.input(0))


@lowers("GlobalAveragePool", newest=22)
def global_average_pool(node: Node, build: PlanBuilder) -> Value:
    """The mean over all spatial axes."""
    return _reduce(node, build, "Mean")


@lowers("GlobalMaxPool", newest=22)
def global_max_pool(node: Node, build: PlanBuilder) -> Value:
    """The maximum over all spatial axes."""
    return _reduce(node, build, "Max")


remark("GlobalMaxPool", "NaN is the largest, as in NumPy; in onnxruntime, the result depends on the position of NaN.")


@lowers("GlobalLpPool", newest=22)
def global_lp_pool(node: Node, build: PlanBuilder) -> Value:
    """The norm over all spatial axes: a reduction for the exponents 1 and 2, else one window over known sizes."""
    p = _exponent(node)
    if p <= 2:
        return _reduce(node, build, "L1" if p == 1 else "L2")
    axes = _spatial_axes(node)
    sizes = [size for size in (node.input(0).shape or ())[2:] if isinstance(size, int) and size > 0]
    if len(sizes) != axes:
        node.refuse("CC0205", f"GlobalLpPool of exponent {p} needs spatial sizes that are known")
    ones, pads = [1] * axes, ops.Padding.Explicit([[0, 0]] * axes)
    window = ops.PoolWindow(kernel=sizes, strides=ones, dilations=ones, padding=pads, ceil=False)
    return build(ops.LpPool(window=window, p=p), node.input(0))


def _exponent(node: Node) -> int:
    p = node.int("p", 2)
    if p < 1:
        node.refuse("CC0202", f"{node.op_type}'s exponent is {p}, which is not positive")
    return p


def _spatial_axes(node: Node) -> int:
    rank = node.input(0).rank
    if rank is None or not 3 <= rank <= 4:
        node.refuse("CC0205", f"{node.op_type} pools tensors of rank 3 or 4, found {node.input(0)}")
    return rank - 2


def _reduce(node: Node, build: PlanBuilder, function: ops.Reduction) -> Value:
    axes = list(range(2, 2 + _spatial_axes(node)))
    op = ops.Reduce(function=function, axes=axes, keepdims=True, noop_with_empty_axes=False)
    return build(op, node.input(0))


@lowers("MaxUnpool", newest=22)
def max_unpool(node: Node, build: PlanBuilder) -> Value:
    """`MaxUnpool`, with or without the output's shape."""
    view = WindowView.read(node)
    kernel = view.kernel or ()
    axes = len(kernel)
    op = ops.MaxUnpool(
        kernel=positive(node, "kernel_shape", kernel, axes),
        strides=strides(node, view, axes),
        pads=explicit_pads(node, view, axes),
    )
    return build(op, node.input(0), node.input(1), node.optional(2))
