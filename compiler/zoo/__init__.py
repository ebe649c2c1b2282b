"""Folders of models, which are compiled, run and compared with onnxruntime. Other programs may use this package.

With pytest::

    import pytest
    import compiler.zoo

    @pytest.mark.parametrize("case", compiler.zoo.cases("models"), ids=lambda case: case.id)
    def test_equals_onnxruntime(case):
        outcome = case.check(timeout=60)
        assert outcome.ok, outcome.message

Each check runs in a process of its own. `compiler.zoo.run` checks a whole folder, several models at a time.
`compiler.zoo.fetch` downloads the models that an INDEX.json names by their addresses.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from compiler.zoo.fetching import Fetched, fetch
    from compiler.zoo.outcome import Outcome
    from compiler.zoo.suite import Case, CaseOutcome, cases, run

__all__ = ["Case", "CaseOutcome", "Fetched", "Outcome", "cases", "fetch", "run"]

if not TYPE_CHECKING:  # otherwise any misspelled name would have a type
    _MODULES = {**dict.fromkeys(__all__, "suite"), "Outcome": "outcome", "Fetched": "fetching", "fetch": "fetching"}

    def __getattr__(name: str) -> Any:
        """The object of a public name, whose module is imported at its first use."""
        if name in _MODULES:
            return getattr(importlib.import_module(f"compiler.zoo.{_MODULES[name]}"), name)
        raise AttributeError(f"module 'compiler.zoo' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
