"""Transpose: the permutation of the axes."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["TransposeView"]


@dataclass(frozen=True)
class TransposeView(View[V]):
    """`Transpose`: axis `i` of the result is axis `perm[i]` of the input; without `perm`, the axes are reversed.

    Source: https://onnx.ai/onnx/operators/onnx__Transpose.html
    """

    operators = (("", "Transpose"),)

    x: V | None
    perm: tuple[int, ...] | None

    @classmethod
    def read(cls, node: Source[V]) -> TransposeView[V]:
        """The view of a Transpose."""
        perm = node.ints("perm", None)
        return cls(node.optional(0), None if perm is None else tuple(perm))

    def order(self, rank: int | None) -> tuple[int, ...] | None:
        """The permutation; `None` if it depends on an unknown rank, or is no permutation of the axes."""
        if self.perm is None:
            return None if rank is None else tuple(reversed(range(rank)))
        count = len(self.perm) if rank is None else rank
        return self.perm if sorted(self.perm) == list(range(count)) else None
