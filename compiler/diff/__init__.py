"""What differs between two models or plans. Other programs may use this package.

::

    from compiler.diff import difference

    found = difference("before.onnx", "after.onnx")
    print(found.is_equal, found.data)

A `compiler.Plan` is compared by its steps, and a model by its nodes. `candlec diff` prints a `Difference` as tables.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from compiler.diff.between import Difference, difference

__all__ = ["Difference", "difference"]

if not TYPE_CHECKING:  # otherwise any misspelled name would have a type

    def __getattr__(name: str) -> Any:
        """The object of a public name, whose module is imported at its first use."""
        if name in __all__:
            return getattr(importlib.import_module("compiler.diff.between"), name)
        raise AttributeError(f"module 'compiler.diff' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
