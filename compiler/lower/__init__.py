"""ONNX operators → plan steps. Each operator family has one file, as in `runtime/plan/src/ops/<family>.rs`."""

from importlib import import_module
from pkgutil import iter_modules

from compiler.lower.evaluate import evaluate
from compiler.lower.lower import can_lower, lower, node_refusals, refusals, unknown_operators
from compiler.lower.program import is_elementwise, takes_epilogue

__all__ = [
    "can_lower",
    "evaluate",
    "is_elementwise",
    "lower",
    "node_refusals",
    "refusals",
    "takes_epilogue",
    "unknown_operators",
]

for _family in iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")  # a family registers its lowerings when it is imported
