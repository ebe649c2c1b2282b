"""Conv and ConvTranspose over one and two spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers, remark
from compiler.lower.padding import padding, window_ints
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("Conv", newest=22)
@lowers("Conv", newest=1, domain=PLAN_DOMAIN)
def conv(node: Node, build: PlanBuilder) -> Value:
    """`Conv`."""
    axes = spatial_axes(node)
    epilogue, inputs = with_epilogue(node, 3)
    op = ops.Conv(
        strides=window_ints(node, "strides", axes),
        dilations=window_ints(node, "dilations", axes),
        pads=padding(node, axes),
        groups=groups(node),
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
    axes = spatial_axes(node)
    epilogue, inputs = with_epilogue(node, 3)
    extra = node.ints("output_padding", [0] * axes)
    if len(extra) != axes or min(extra, default=0) < 0:
        node.refuse("CC0202", f"output_padding {extra} is not a number for each of {axes} axes")
    op = ops.ConvTranspose(
        strides=window_ints(node, "strides", axes),
        dilations=window_ints(node, "dilations", axes),
        pads=padding(node, axes),
        output_padding=extra,
        output_shape=_output_shape(node, axes),
        groups=groups(node),
        epilogue=epilogue,
    )
    return build(op, *inputs)


def spatial_axes(node: Node, weights: int = 1) -> int:
    """The number of spatial axes, from the ranks or the attributes; `kernel_shape` must agree with the weights."""
    x, w, kernel = node.input(0), node.input(weights), node.ints("kernel_shape", None)
    ranks = [value.rank - 2 for value in (w, x) if value.rank is not None]
    ranks += [len(node.ints(name)) for name in ("strides", "dilations") if node.ints(name, None)]
    ranks += [len(kernel)] if kernel else []
    if not ranks:
        node.refuse("CC0205", f"the number of {node.op_type}'s spatial axes is not known")
    if kernel and w.shape is not None:
        check_kernel(node, kernel, w.shape[2:])
    return ranks[0]


def check_kernel(node: Node, kernel: list[int], sizes: Sequence[int | str | None]) -> None:
    """Refuses a `kernel_shape` that differs from the weights' spatial `sizes`."""
    pairs = zip(sizes, kernel, strict=False)
    if len(kernel) != len(sizes) or any(isinstance(size, int) and size != asked for size, asked in pairs):
        node.refuse("CC0202", f"kernel_shape {kernel} differs from the weights' {list(sizes)}")


def groups(node: Node) -> int:
    """The number of groups; refuses a number that is not positive."""
    count = node.int("group", 1)
    if count < 1:
        node.refuse("CC0202", f"{node.op_type} cannot have {count} groups")
    return count


def _output_shape(node: Node, axes: int) -> list[int] | None:
    """The spatial sizes of `output_shape`, which may include the batch and channel sizes, as in onnxruntime."""
    shape = node.ints("output_shape", None)
    if not shape:
        return None
    sizes = shape[2:] if len(shape) == axes + 2 else shape
    if len(sizes) != axes or min(sizes) < 0:
        node.refuse("CC0202", f"output_shape {shape} is not a size for each of {axes} axes")
    return sizes
