"""MatMul and Gemm: the operands, which of them are transposed, and the factors."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.source import Source, V, View

__all__ = ["ProductView"]


@dataclass(frozen=True)
class ProductView(View[V]):
    """`Gemm`, `alpha · A · B + beta · C`, and `MatMul`, in the standard's domain and in that of plans.

    The flags of a MatMul, `trans_a` and `trans_b`, exist only in the domain of plans.

    Sources: https://onnx.ai/onnx/operators/onnx__Gemm.html, https://onnx.ai/onnx/operators/onnx__MatMul.html
    """

    operators = tuple((domain, name) for domain in ("", PLAN_DOMAIN) for name in ("Gemm", "MatMul"))

    trans_a: bool
    trans_b: bool
    alpha: float = 1.0
    beta: float = 1.0

    @classmethod
    def read(cls, node: Source[V]) -> ProductView[V]:
        """The view of a product."""
        if node.op_type == "Gemm":
            flags = node.flag("transA", False), node.flag("transB", False)
            return cls(*flags, node.float("alpha", 1.0), node.float("beta", 1.0))
        is_own = node.domain == PLAN_DOMAIN
        return cls(is_own and node.flag("trans_a", False), is_own and node.flag("trans_b", False))

    @property
    def is_scaled(self) -> bool:
        """Whether a factor is not 1."""
        return self.alpha != 1 or self.beta != 1
