"""The model that a search compiles again and again, with more or fewer of the optional passes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from compiler.bisect.halving import optional_passes, options_of
from compiler.errors import CompileError
from compiler.options import Options
from compiler.pipeline import compile_stored, passes
from compiler.runtime.session import load
from compiler.zoo.facts import Facts, facts_of, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.frontend.load import Changed, Source
    from compiler.plan import Plan
    from compiler.rewrite.report import PassReport
    from compiler.runtime.prepared import Prepared
    from compiler.runtime.session import Session

__all__ = ["Compiled", "Subject"]


@dataclass(frozen=True)
class Compiled:
    """A plan, and the reports of the passes that made it."""

    plan: Plan
    reports: Sequence[PassReport]
    threads: int | None

    def loaded(self) -> Session:
        """A new session of the plan. No session stays, because it may be large."""
        return load(self.plan, threads=self.threads)

    @cached_property
    def prepared(self) -> Prepared:
        """The plan after prepare."""
        return self.loaded().prepared()

    @cached_property
    def facts(self) -> Facts:
        """The facts of the plan."""
        return facts_of(self.plan, self.loaded(), self.reports)


@dataclass(frozen=True)
class Subject:
    """The model of a search. A case of a zoo is the same model with other shapes, and has a plan of its own.

    `base` has the options of every compilation. `names` are the optional passes in order. The search calls `on_phase`
    with the name of each phase.
    """

    sources: Sequence[Source | Changed]
    base: Options = field(default_factory=Options)
    threads: int | None = None
    on_phase: Callable[[str], None] = lambda _: None
    names: tuple[str, ...] = field(default_factory=optional_passes)

    @property
    def order(self) -> list[str]:
        """The names of all passes, in the order of their first places."""
        return list(dict.fromkeys(step.name for step in passes(self.base)))

    def options(self, count: int) -> Options:
        """The options for the first `count` optional passes."""
        return options_of(self.names[:count], self.base)

    def compiled(self, count: int) -> list[Compiled]:
        """The plans with the first passes.

        Raises:
            CompileError: the model is refused, or these passes cannot run without another one.
        """
        last = self.names[count - 1] if count else ""
        self.on_phase(
            f"compiling with the optional passes up to {last}" if last else "compiling without optional passes"
        )
        return [self._compiled(source, self.options(count)) for source in self.sources]

    def whole(self) -> list[Compiled]:
        """The optimized plans.

        Raises:
            CompileError: the model is refused.
        """
        self.on_phase("compiling with all passes")
        return [self._compiled(source, self.base) for source in self.sources]

    def tried(self, count: int) -> list[Compiled] | None:
        """The plans with the first passes; `None` if these passes cannot run without another one."""
        try:
            return self.compiled(count)
        except CompileError:  # such as CC0505
            return None

    def _compiled(self, source: Source | Changed, options: Options) -> Compiled:
        reports: list[PassReport] = []
        plan = compile_stored(source, replace(options, on_pass=reports.append))
        return Compiled(plan, reports, self.threads)


def facts_together(compiled: Sequence[Compiled]) -> Facts:
    """The facts of the plans of all cases."""
    return joined([each.facts for each in compiled])
