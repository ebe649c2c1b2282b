"""Conv and ConvTranspose over one and two spatial axes."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.window import WindowView
from compiler.lower.node import Node, lowers, remark
from compiler.lower.padding import dilations, padding, strides
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("Conv", newest=22)
@lowers("Conv", newest=1, domain=PLAN_DOMAIN)
def conv(node: Node, build: PlanBuilder) -> Value:
    """`Conv`."""
    window = WindowView.read(node)
    axes = spatial_axes(node, window)
    epilogue, inputs = with_epilogue(node, 3)
    op = ops.Conv(
        strides=strides(node, window, axes),
        dilations=dilations(node, window, axes),
        pads=padding(node, window, axes),
        groups=groups(node, window),
        epilogue=epilogue,
    )
    return build(op, *inputs)


remark(
    "Conv",
    "The runtime may compute tiles of outputs together (Winograd's algorithm): for 3 × 3 windows, and for windows of "
    "one row or column. Infinity or NaN in the input may then make all outputs of a tile NaN; in onnxruntime, it "
    "reaches only the outputs whose windows contain it.",
)


@lowers("ConvTranspose", newest=22)
@lowers("ConvTranspose", newest=1, domain=PLAN_DOMAIN)
def conv_transpose(node: Node, build: PlanBuilder) -> Value:
    """`ConvTranspose`; `output_shape` overrides `pads`, as in onnxruntime."""
    window = WindowView.read(node)
    axes = spatial_axes(node, window)
    epilogue, inputs = with_epilogue(node, 3)
    extra = list(window.output_padding_of(axes))
    if len(extra) != axes or min(extra, default=0) < 0:
        node.refuse("CC0202", f"output_padding {extra} is not a number for each of {axes} axes")
    op = ops.ConvTranspose(
        strides=strides(node, window, axes),
        dilations=dilations(node, window, axes),
        pads=padding(node, window, axes),
        output_padding=extra,
        output_shape=_output_shape(node, window, axes),
        groups=groups(node, window),
        epilogue=epilogue,
    )
    return build(op, *inputs)


def spatial_axes(node: Node, window: WindowView[Value]) -> int:
    """The number of spatial axes, from the ranks or the attributes; `kernel_shape` must agree with the weights."""
    if window.x is None or window.weights is None:
        node.refuse("CC0205", f"{node.op_type} needs an image and weights")
    check_kernel(node, window)
    ranks = [value.rank - 2 for value in (window.weights, window.x) if value.rank is not None]
    ranks += [len(each) for each in (window.strides, window.dilations, window.kernel) if each]
    if not ranks:
        node.refuse("CC0205", f"the number of {node.op_type}'s spatial axes is not known")
    if ranks[0] < 1:
        node.refuse("CC0205", f"{node.op_type} needs an image and weights with spatial axes, such as [N, C, H, W]")
    return ranks[0]


def check_kernel(node: Node, window: WindowView[Value]) -> None:
    """Refuses a `kernel_shape` that differs from the weights' spatial sizes."""
    kernel = list(window.kernel or ())
    if not kernel or window.weights is None or window.weights.shape is None:
        return
    sizes = list(window.weights.shape[2:])
    pairs = zip(sizes, kernel, strict=False)
    if len(kernel) != len(sizes) or any(isinstance(size, int) and size != asked for size, asked in pairs):
        node.refuse("CC0202", f"kernel_shape {kernel} differs from the weights' {sizes}")


def groups(node: Node, window: WindowView[Value]) -> int:
    """The number of groups; refuses a number that is not positive."""
    if window.groups < 1:
        node.refuse("CC0202", f"{node.op_type} cannot have {window.groups} groups")
    return window.groups


def _output_shape(node: Node, window: WindowView[Value], axes: int) -> list[int] | None:
    """The spatial sizes of `output_shape`, which may include the batch and channel sizes, as in onnxruntime."""
    sizes = window.output_sizes_of(axes)
    if sizes is None:
        return None
    if len(sizes) != axes or min(sizes) < 0:
        node.refuse("CC0202", f"output_shape {list(window.output_shape or ())} is not a size for each of {axes} axes")
    return list(sizes)
