"""ONNX operators → plan steps: one file an operator family, namesake of `runtime/plan/src/ops/<family>.rs`."""

from compiler.lower import (
    identity,
)
from compiler.lower.lower import can_lower, lower

__all__ = ["can_lower", "identity", "lower"]
