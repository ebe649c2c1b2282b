"""Outputs that a file states for some inputs, as the reference for the outputs of a plan."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.accuracy.noise import with_noise
from compiler.accuracy.verify import Given

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from compiler.accuracy.compare import Report

__all__ = ["Stated"]


class Stated(Given):
    """The outputs of a file. `given` has the references for the same inputs.

    The rules are those for onnxruntime's outputs, with one difference: an output that is near to onnxruntime's result
    without its optimizations, but not to that of the file, is not equal.
    """

    def __init__(self, given: Given, outputs: Mapping[str, Any]) -> None:
        self._given, self._outputs = given, outputs

    @property
    def note(self) -> str:
        """Empty: the file has the outputs."""
        return ""

    @property
    def expected(self) -> Mapping[str, Any]:
        """The outputs of the file."""
        return self._outputs

    @functools.cached_property
    def exact(self) -> Mapping[str, Any] | None:
        """The outputs in double precision."""
        return self._given.exact

    def compare(self, found: Mapping[str, Any], tolerance: float | None = None, random: Collection[str] = ()) -> Report:
        """Compare outputs with the file's, see `Given.compare`. Each output has the name `NAME of the files`."""
        report = super().compare(found, tolerance, random)
        named = (replace(each, name=f"{each.name} of the files", reference="the file's") for each in report.outputs)
        return replace(report, outputs=tuple(named))

    def _with_reference_noise(self, report: Report, found: Mapping[str, Any]) -> Report:
        """The report with the difference between onnxruntime's two results."""
        return with_noise(report, found, (self._outputs,), (self._given.expected, self._given.plain))
