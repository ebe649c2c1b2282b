"""What differs between two models or plans. Other programs may use this package.

::

    from compiler.diff import difference

    found = difference("before.onnx", "after.onnx")
    print(found.is_equal, found.data)

A `compiler.Plan` is compared by its steps, and a model by its nodes. `candlec diff` prints a `Difference` as tables.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.diff.between import Difference as Difference
    from compiler.diff.between import difference as difference

else:  # otherwise any misspelled name would have a type
    from compiler.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "between": ("Difference", "difference"),
        },
    )
