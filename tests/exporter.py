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


@contextmanager
def shared_tables() -> Iterator[None]:
    """Makes exports share the translations of operators and the list of composite operators.

    An export parses the source of all translations, and asks for each operator whether it is composite; both take
    longer than the export of a small module. A PyTorch without these functions stays as it is.
    """
    with ExitStack() as patches:
        try:
            from torch.export import decomp_utils, exported_program
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            translations = _copies(functools.cache(ONNXRegistry.from_torchlib))
            composites = functools.cache(exported_program._collect_all_valid_cia_ops)
        except (ImportError, AttributeError):
            pass
        else:
            patches.enter_context(mock.patch.object(ONNXRegistry, "from_torchlib", staticmethod(translations)))
            for module in (exported_program, decomp_utils):
                patches.enter_context(mock.patch.object(module, "_collect_all_valid_cia_ops", composites))
        yield
