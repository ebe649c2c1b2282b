"""DepthToSpace and SpaceToDepth: the size of the blocks, and the order of the channels."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["BlocksView"]


@dataclass(frozen=True)
class BlocksView(View[V]):
    """`DepthToSpace` and `SpaceToDepth`, between `[N, C · size², H, W]` and `[N, C, H · size, W · size]`.

    Sources: https://onnx.ai/onnx/operators/onnx__DepthToSpace.html,
    https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html
    """

    operators = (("", "DepthToSpace"), ("", "SpaceToDepth"))

    size: int
    mode: str
    """`CRD` if the channel comes before the place in the block, `DCR` if it comes after it."""

    @classmethod
    def read(cls, node: Source[V]) -> BlocksView[V]:
        """The view of a node."""
        return cls(node.int("blocksize"), node.string("mode", "DCR"))
