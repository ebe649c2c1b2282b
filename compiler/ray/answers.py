"""The answers to several requests, whose rows run together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.batch.batches import Batch, Runner, Work
from compiler.batch.declared import Value, batch_size, inputs_of_rows, outputs_of_rows
from compiler.errors import Error, InputError, did_you_mean
from compiler.ir import dtypes

if TYPE_CHECKING:
    from compiler.batch.rows import Array
    from compiler.runtime.session import Session

__all__ = ["Answers"]

Request = dict[str, np.ndarray[Any, Any]]


class Answers:
    """Runs requests. A request holds some rows: an array `[rows, …]` for each input.

    A run has at most `most` rows, or as many as the plan fixes.
    """

    def __init__(self, session: Session, outputs: Sequence[str] | None, most: int) -> None:
        self.inputs: dict[str, Value] = {value.name: value for value in inputs_of_rows(session.inputs, {})}
        chosen = outputs_of_rows(session.outputs, outputs, session.inputs)
        size, is_fixed = batch_size(session.inputs, None)
        self.most = size if is_fixed else most
        self._runner = Runner(session, Work(self.most, is_fixed, [value.name for value in chosen]))

    def checked(self, arrays: Mapping[str, Any]) -> Request:
        """The arrays of a request.

        Raises:
            Error: an input is missing or unknown, or does not fit its declaration, or there are too many rows.
        """
        for name in arrays:
            if name not in self.inputs:
                known = did_you_mean(name, self.inputs) or f"the inputs are {', '.join(self.inputs)}"
                raise Error(f"there is no input {name!r}: {known}")
        request = {name: _fitting(value, arrays.get(name)) for name, value in self.inputs.items()}
        counts = {name: len(each) for name, each in request.items()}
        if len({*counts.values()}) > 1:
            raise Error(f"the inputs have different numbers of rows: {counts}")
        count = next(iter(counts.values()))
        if not 0 < count <= self.most:
            raise Error(f"the request has {count} rows, and may have 1 to {self.most}")
        return request

    def of(self, requests: Sequence[Request]) -> list[Request | Error]:
        """For each request its outputs, or the error of its first bad row. Requests do not disturb each other."""
        found: dict[int, Request | Error] = {}
        for group in self._groups(requests):
            together = [requests[at] for at in group]
            arrays = {name: np.concatenate([each[name] for each in together]) for name in self.inputs}
            counts = [_rows(each) for each in together]
            found |= dict(zip(group, self._answers(arrays, counts), strict=True))
        return [found[at] for at in range(len(requests))]

    def _groups(self, requests: Sequence[Request]) -> Iterator[list[int]]:
        """The positions of requests that run together: their rows have one shape, and are at most `most`."""
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for at, request in enumerate(requests):
            shapes = tuple(each.shape[1:] for each in request.values())
            group = groups.get(shapes, [])
            if sum(_rows(requests[each]) for each in group) + _rows(request) > self.most:
                yield groups.pop(shapes)
                group = []
            groups[shapes] = [*group, at]
        yield from groups.values()

    def _answers(self, arrays: Request, counts: Sequence[int]) -> Iterator[Request | Error]:
        total = sum(counts)
        try:
            done = self._runner.run(Batch(np.arange(total), arrays, {}, total))
        except Error as error:
            yield from [error] * len(counts)
            return
        ends = np.cumsum(counts)
        for first, end in zip(ends - counts, ends, strict=True):
            bad = [row for row in done.bad if first <= row < end]
            if bad:
                yield Error(f"row {min(bad) - first}: {done.bad[min(bad)]}")
            else:
                at = int(np.searchsorted(done.rows, first))
                yield {name: each[at : at + end - first] for name, each in done.arrays.items()}


def _rows(request: Request) -> int:
    return len(next(iter(request.values())))


def _fitting(value: Value, given: Any) -> Array:
    """The array of an input."""
    array = np.asarray(given)
    found = "nothing" if given is None else f"{array.dtype.name} {list(array.shape)}"
    if given is None or array.ndim == 0 or array.dtype != dtypes.numpy_dtype(value.dtype):
        is_right = False
    else:
        is_right = value.takes(array.shape[1:])
    if not is_right:
        expected = f"rows of {value}"
        raise InputError(value.name, expected, found)
    return array
