"""The search for the first of the optional passes after which a plan is wrong.

The optional passes run in a fixed order. The search compiles with the first *n* of them. Each result halves the number
of suspected passes. A pass that runs several times counts once, at its first place, because `Options.passes` names it
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compiler.options import Options
from compiler.pipeline import passes

if TYPE_CHECKING:
    from compiler.ir.origin import Origin
    from compiler.rewrite.report import PassReport

__all__ = ["Culprit", "culprit_of", "first_wrong", "optional_passes", "options_of"]


@dataclass(frozen=True)
class Culprit:
    """The first optional pass after which a plan is wrong.

    `result` names its rewrites, and `places` are their origins. `others` are the passes just before it. Any of them
    may be the cause instead: the model does not compile with one of them as the last pass, so none of these plans was
    compared.
    """

    name: str
    result: str = "rewrites"
    places: tuple[Origin, ...] = ()
    others: tuple[str, ...] = ()


def first_wrong(
    count: int,
    is_wrong: Callable[[int], bool | None],
    on_phase: Callable[[int], None] = lambda _: None,
) -> tuple[int, int]:
    """Two numbers of passes: with the first, the plan is right, and with the second, it is wrong.

    Without passes, the plan is right; with all `count` passes, it is wrong. `is_wrong` returns `None` if it cannot
    decide. All numbers between the two results are such numbers.
    """
    right, wrong, unknown = 0, count, set[int]()
    while trials := [each for each in range(right + 1, wrong) if each not in unknown]:
        middle = min(trials, key=lambda each: abs(2 * each - right - wrong))
        on_phase(middle)
        match is_wrong(middle):
            case None:
                unknown.add(middle)
            case True:
                wrong = middle
            case False:
                right = middle
    return right, wrong


def optional_passes() -> tuple[str, ...]:
    """The names of the optional passes, in the order of their first places."""
    return tuple(dict.fromkeys(step.name for step in passes(Options()) if not step.needed))


def options_of(names: Sequence[str], base: Options) -> Options:
    """The options for these optional passes; without names, no optional pass runs."""
    return replace(base, passes=names) if names else replace(base, optimize=False)


def culprit_of(suspects: Sequence[str], reports: Sequence[PassReport]) -> Culprit:
    """The last of the suspects, with the rewrites of all of its runs."""
    *others, name = suspects
    own = [each for each in reports if each.name == name]
    places = tuple(fired.origin for each in own for fired in each.fired)
    return Culprit(name, own[0].result if own else "rewrites", places, tuple(others))
