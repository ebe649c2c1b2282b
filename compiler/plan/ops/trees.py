"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


Aggregate: TypeAlias = Literal["sum", "average", "min", "max"]
"""How the weights of a target are joined."""


Classes: TypeAlias = Literal["largest", "probability", "margin", "positive"]
"""How the class of a row follows from its scores."""


ScoreTransform: TypeAlias = Literal["none", "logistic", "softmax", "softmax_zero", "probit"]
"""A function of the scores of a row."""


class TreeEnsemble(Op):
    """`scores [N, targets]`: for each row of `X [N, F]`, the weights of the leaves that the row reaches, added up
    by target, plus the base; with `classes`, also `class: int64 [N]`, the index of the row's class.
    """

    aggregate: Aggregate
    """How the weights of a target are joined."""

    targets: int
    """The number of targets or classes."""

    transform: ScoreTransform
    """The function of the scores of a row."""

    classes: Classes | None = None
    """How the class of a row follows from its scores; absent: there are no classes."""
