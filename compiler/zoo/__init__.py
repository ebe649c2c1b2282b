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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.zoo.fetching import Fetched as Fetched
    from compiler.zoo.fetching import fetch as fetch
    from compiler.zoo.outcome import Outcome as Outcome
    from compiler.zoo.suite import Case as Case
    from compiler.zoo.suite import CaseOutcome as CaseOutcome
    from compiler.zoo.suite import cases as cases
    from compiler.zoo.suite import run as run

else:  # otherwise any misspelled name would have a type
    from compiler.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "fetching": ("Fetched", "fetch"),
            "outcome": ("Outcome",),
            "suite": ("Case", "CaseOutcome", "cases", "run"),
        },
    )
