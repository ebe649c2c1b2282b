"""The options of `torch.compile(module, backend="candle", options={…})`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from compiler import _runtime
from compiler.validate import validate_instance, validate_mapping, validate_whole_number

__all__ = ["Choices"]


@dataclass(frozen=True)
class Choices:
    """The options of the backend."""

    fallback: bool = True
    """Whether PyTorch runs a graph that the backend refuses, after a `FallbackWarning`. Otherwise, running the graph
    raises the reason: `RefusedGraph`, `ExportError` or `CompileError`. By default, true unless `fullgraph=True`."""
    freeze: bool = True
    """Whether the parameters and buffers of modules become constants of the plans. If one changes, the backend compiles
    the graph again. Otherwise, they are inputs of each run."""
    threads: int | None = None
    """The number of threads of a run; by default, `torch.get_num_threads()` when the graph is compiled."""

    @classmethod
    def read(cls, options: Mapping[str, Any] | None, fullgraph: bool = False) -> Choices:
        """Check the options. `fullgraph` is the argument of `torch.compile`.

        Raises:
            TypeError, ValueError: an option is unknown, or its value is wrong.
        """
        given = {} if options is None else options
        validate_mapping("options", given, "a dict of options by name")
        names = [each.name for each in fields(cls)]
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f": did you mean {near[0]!r}?" if near else f", but only {', '.join(map(repr, names))}"
                raise ValueError(f'options: the backend "candle" has no option {name!r}{hint}')
        for name in ("fallback", "freeze"):
            validate_instance(f"options[{name!r}]", given.get(name, True), bool, "True or False")
        threads = given.get("threads")
        if threads is not None:
            threads = validate_whole_number("options['threads']", threads, 1, _runtime.MAX_THREADS)
        return cls(**{"fallback": not fullgraph, **given, "threads": threads})
