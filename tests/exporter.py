"""PyTorch's dynamo exporter, with tables that it makes once a process instead of in each export."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

__all__ = ["shared_tables"]


def _copies(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a copy of a shared table, to which an export adds translations of its own."""

    def copied(*args: Any, **options: Any) -> Any:
        table = copy.copy(make(*args, **options))
        table.functions = {operator: list(each) for operator, each in table.functions.items()}
        return table

    return copied


def _registers(register: Callable[..., Any], key_type: Any) -> Callable[..., Any]:
    """`OperatorBase.py_impl` for keys of `key_type`, without the annotations that Python makes in each call."""

    def registers(self: Any, key: Any) -> Any:
        if not isinstance(key, key_type) or key == key_type.Python or key in self.py_kernels:
            return register(self, key)

        def inner(function: Any) -> Any:
            self.py_kernels[key] = function
            self._dispatch_cache.clear()
            return function

        return inner

    return registers


@contextmanager
def shared_tables() -> Iterator[None]:
    """Makes exports share the translations of operators and the list of composite operators.

    An export parses the source of all translations, and asks for each operator whether it is composite; both take
    longer than the export of a small module. It also registers thousands of functions, most of the time for their
    annotations. A PyTorch without these functions stays as it is.
    """
    with ExitStack() as patches:
        try:
            from torch._ops import DispatchKey, OperatorBase
            from torch.export import decomp_utils, exported_program
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            translations = _copies(functools.cache(ONNXRegistry.from_torchlib))
            composites = functools.cache(exported_program._collect_all_valid_cia_ops)
            registers = _registers(OperatorBase.py_impl, DispatchKey)
        except (ImportError, AttributeError):
            pass
        else:
            patches.enter_context(mock.patch.object(ONNXRegistry, "from_torchlib", staticmethod(translations)))
            patches.enter_context(mock.patch.object(OperatorBase, "py_impl", registers))
            for module in (exported_program, decomp_utils):
                patches.enter_context(mock.patch.object(module, "_collect_all_valid_cia_ops", composites))
        yield
