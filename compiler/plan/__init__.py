"""The plan: its types, and the code that builds, writes, reads and prints it."""

from compiler.plan.builder import LimitError, Nested, PlanBuilder, Pool, RefusedError, Value
from compiler.plan.plan import Plan, StateInfo, TensorInfo
from compiler.plan.show import show
from compiler.plan.types import tensor

__all__ = [
    "LimitError",
    "Nested",
    "Plan",
    "PlanBuilder",
    "Pool",
    "RefusedError",
    "StateInfo",
    "TensorInfo",
    "Value",
    "show",
    "tensor",
]
