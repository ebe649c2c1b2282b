"""The measures that INDEX.json names for a model: the key `task`, an object or a list of objects.

Each object has the `measure`, the `output`, and `at_least`, the smallest acceptable value. `top1`, `top5` and `cosine`
may have an `axis`, by default the last one. `boxes` has the boxes of `output` in the first four numbers of its last
axis. The scores of the classes are the other numbers, or the output `scores` without its first `skip` classes, such as
the background. A box counts if its largest score is at least `score`, by default 0.5. Two boxes match if they overlap
by at least `overlap`, by default 0.5. `form` is `corners` or `centers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from compiler.accuracy.compare import Comparison
from compiler.errors import did_you_mean
from compiler.zoo.agreement.boxes import Form, boxes
from compiler.zoo.agreement.cosine import cosine
from compiler.zoo.agreement.psnr import psnr
from compiler.zoo.agreement.tokens import tokens
from compiler.zoo.agreement.top import top

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["MEASURES", "Task", "tasks_of"]

_Array = np.ndarray[Any, Any]

_COMMON = ("measure", "output", "at_least")
MEASURES: Mapping[str, tuple[str, ...]] = {
    "top1": ("axis",),
    "top5": ("axis",),
    "cosine": ("axis",),
    "psnr": (),
    "boxes": ("scores", "skip", "score", "overlap", "form"),
    "tokens": (),
}
"""Each measure with the options that only some measures have."""


@dataclass(frozen=True)
class Task:
    """A measure of an output, and the smallest acceptable value. Each measure uses its own options."""

    measure: str
    output: str
    at_least: float
    axis: int = -1
    scores: str = ""
    skip: int = 0
    score: float = 0.5
    overlap: float = 0.5
    form: Form = "corners"

    @property
    def name(self) -> str:
        """The measure and the output, as in `top1 of scores`."""
        return f"{self.measure} of {self.output}"

    def compare(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> Comparison:
        """The measure as a comparison, which is different if the value is too small.

        Raises:
            ValueError: an output that the measure needs is missing, or does not fit the measure.
        """
        try:
            value = self.value(expected, found)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        problem = "" if value >= self.at_least else f"{value:.6g}, and at least {self.at_least:g} is required"
        return Comparison(self.name, "", (), note=f"{value:.6g}", problem=problem)

    def value(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> float:
        """The value of the measure for the expected outputs and those of a plan.

        Raises:
            ValueError: an output that the measure needs is missing, or does not fit the measure.
        """
        one, other = (_numbers(outputs, self.output) for outputs in (expected, found))
        if one.shape != other.shape:
            raise ValueError(f"shape {list(other.shape)} instead of {list(one.shape)}")
        if self.measure == "psnr":
            return psnr(one, other)
        if self.measure == "tokens":
            return tokens(one, other)
        if self.measure == "cosine":
            return cosine(one, other, self.axis)
        if self.measure == "boxes":
            return boxes(self._detections(expected), self._detections(found), self.overlap, self.form)
        return top(one, other, int(self.measure.removeprefix("top")), self.axis)

    def _detections(self, outputs: Mapping[str, Any]) -> tuple[_Array, _Array]:
        """The boxes `[n, 4]` whose scores are large enough; their labels `[n]` number the image and the class."""
        given = _numbers(outputs, self.output)
        scores = _numbers(outputs, self.scores) if self.scores else given[..., 4:]
        if given.ndim < 2 or given.shape[-1] < 4 or scores.shape[:-1] != given.shape[:-1]:
            raise ValueError(f"boxes of shape {list(given.shape)} with scores of shape {list(scores.shape)}")
        scores = scores[..., self.skip :]
        if not scores.shape[-1]:
            raise ValueError("there are no classes")
        images = np.arange(math.prod(given.shape[:-2])).repeat(given.shape[-2])
        labels = images * scores.shape[-1] + scores.argmax(axis=-1).ravel()
        is_counted = (scores.max(axis=-1) >= self.score).ravel()
        return given[..., :4].reshape(-1, 4)[is_counted], labels[is_counted]


def _numbers(outputs: Mapping[str, Any], name: str) -> _Array:
    if name not in outputs:
        raise ValueError(f"the model has no output {name!r}; its outputs are {', '.join(outputs)}")
    array = outputs[name]
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OUSb":
        raise ValueError(f"the output {name} has no numbers")
    return array


def tasks_of(data: Any) -> tuple[Task, ...]:
    """The measures of the key `task`.

    Raises:
        ValueError: the value is no object with a known measure, or a list of such objects.
    """
    listed: Sequence[Any] = data if isinstance(data, list) else [data]
    if not listed:
        raise ValueError("has a task without measures")
    return tuple(map(_task, listed))


def _task(data: Any) -> Task:
    if not isinstance(data, dict):
        raise ValueError(f"has the task {data!r}, not an object")
    measure = data.get("measure")
    if not isinstance(measure, str) or measure not in MEASURES:
        raise ValueError(f"has the measure {measure!r}: use one of {', '.join(MEASURES)}")
    known = (*_COMMON, *MEASURES[measure])
    for key in data.keys() - known:
        question = did_you_mean(key, known)
        raise ValueError(f"has {key!r} in the measure {measure}: {question or 'use ' + ', '.join(known)}")
    for key in ("output", "at_least"):
        if key not in data:
            raise ValueError(f"has the measure {measure} without {key}")
    for field in fields(Task):
        if field.name in data and not _fits(data[field.name], str(field.type)):
            raise ValueError(f"has the {field.name} {data[field.name]!r} in the measure {measure}")
    return Task(**data)


def _fits(value: Any, kind: str) -> bool:
    """Whether a value has the type of a field."""
    if kind == "Form":
        return value in get_args(Form)
    if kind == "str":
        return isinstance(value, str) and bool(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (isinstance(value, int) if kind == "int" else math.isfinite(value))
