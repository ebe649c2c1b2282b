"""The outcome of one variant of a model: the verdict of its comparison with onnxruntime."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from compiler.accuracy.compare import Verdict, worst_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ENDED_EARLY", "SHAPES", "Outcome", "Result", "Shapes", "Variant", "together", "variants"]

Shapes = Literal["pinned", "unpinned"]
SHAPES: tuple[Shapes, ...] = ("pinned", "unpinned")
"""The shapes that a model is compiled for: pinned to the shapes of a case, or with symbolic dims."""

ENDED_EARLY: tuple[Verdict, ...] = ("timed out", "out of memory", "crashed")
"""The verdicts on a model whose process reached a limit or crashed."""

_FORMER_KEYS = {"way": "variant"}
"""Deprecated key of an outcome → its present key."""


@dataclass(frozen=True)
class Variant:
    """A way to compile and run a model."""

    optimize: bool
    threads: int
    device: str = "cpu"

    def __str__(self) -> str:
        where = f"{self.threads} thread{'s' if self.threads > 1 else ''}" if self.device == "cpu" else self.device
        return f"{'optimized' if self.optimize else 'plain'}, {where}"


def variants(device: str) -> list[Variant]:
    """The variants of each model. On the CPU, these include runs with one thread and with two."""
    counts = (1, 2) if device == "cpu" else (1,)
    return [Variant(optimize, threads, device) for optimize in (True, False) for threads in counts]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one variant of a model: the verdict on the worst output (see `candlec verify`).

    `variant` is the text of a `Variant`. `remarks` describe the outputs beyond the tolerance, worst first. `share` is
    the worst difference divided by the tolerance. `codes` are the error codes of a refusal, and `advice` maps its
    remarks to the compiler's advice. `note` says how onnxruntime's run differs from the file. `outputs` holds the
    difference of each output in its worst case (`compiler.zoo.remarks`). `problem` says why the outcome is not
    acceptable, and is empty for an acceptable one.
    """

    model: str
    variant: str
    verdict: Verdict
    remarks: tuple[str, ...] = ()
    share: float = float("inf")
    seconds: float = 0.0
    problem: str = ""
    codes: tuple[str, ...] = ()
    note: str = ""
    advice: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[Mapping[str, Any], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The outcome as JSON. An infinite share, which JSON lacks, becomes null."""
        return {**self.unjudged, "problem": self.problem, "ok": not self.problem}

    @property
    def unjudged(self) -> dict[str, Any]:
        """The outcome as JSON without the judgment."""
        share = self.share if math.isfinite(self.share) else None
        fields = {key: list(each) if isinstance(each, tuple) else each for key, each in asdict(self).items()}
        del fields["problem"]
        return {**fields, "share": share}

    @classmethod
    def from_unjudged(cls, data: Mapping[str, Any]) -> Outcome:
        """The outcome of `unjudged`. Files of earlier versions have the variant under the key `way`."""
        named = {_FORMER_KEYS.get(key, key): each for key, each in data.items()}
        fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in named.items()}
        return cls(**{**fields, "share": math.inf if data["share"] is None else data["share"]})


@dataclass(frozen=True)
class Result:
    """A result: the verdict, the worst difference as a multiple of the tolerance, and the codes of a refusal."""

    verdict: Verdict
    share: float
    codes: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Whether a line of the baseline can bound the difference, which is false for a model that was not compared."""
        return self.verdict == "refused" or (self.verdict != "failed" and math.isfinite(self.share))

    def __str__(self) -> str:
        return f"refused ({', '.join(self.codes)})" if self.codes else self.verdict

    @classmethod
    def of_text(cls, text: str) -> Result:
        """The result that its text describes, with an unknown difference.

        Raises:
            ValueError: the text describes no result.
        """
        verdict, _, codes = text.removesuffix(")").partition(" (")
        found = next((each for each in get_args(Verdict) if each == verdict), None)
        result = None if found is None else cls(found, math.inf, tuple(codes.split(", ")) if codes else ())
        if result is None or str(result) != text:
            raise ValueError(f"{text!r} is not a result")
        return result


def together(outcomes: Sequence[Outcome]) -> Result:
    """The worst verdict of all variants, the largest share, and all codes of refusals."""
    worst, share = worst_of([each.verdict for each in outcomes]), max(each.share for each in outcomes)
    codes = {code for each in outcomes for code in each.codes} if worst == "refused" else set()
    return Result(worst, share, tuple(sorted(codes)))
