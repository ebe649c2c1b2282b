"""Checks of models by a compiler or runtime that is broken on purpose, each a task of a process of its own."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import pytest

from compiler import pipeline
from compiler.processes.child import Channel
from compiler.rewrite.report import PassReport
from compiler.runtime.session import Session
from compiler.zoo import facts
from compiler.zoo.check_model import check
from compiler.zoo.task_arguments import Check
from tests import broken_passes

_PATCH = pytest.MonkeyPatch()
"""The changes last as long as the process."""


def _nothing(_model: ir.Model, _report: PassReport) -> None:
    """A pass without rewrites."""


def wrong_kernel(asked: Check, channel: Channel) -> Any:
    """Sums are differences: the steps are the same, and a result is wrong."""
    broken_passes.let_add_subtract(_PATCH)
    return check(asked, channel)


def wrong_pass(asked: Check, channel: Channel) -> Any:
    """A pass changes constants."""
    broken_passes.let_pass_change_constants(_PATCH, "merge_reshapes")
    return check(asked, channel)


def silent_rule(asked: Check, channel: Channel) -> Any:
    """No rule of a pass fires any more. The results stay right."""
    _PATCH.setattr(pipeline, "recognize_softmax", replace(pipeline.recognize_softmax, apply=_nothing))
    return check(asked, channel)


def slow_pass(asked: Check, channel: Channel) -> Any:
    """The pass that fuses elementwise operators fuses none: the plan has more steps."""
    _PATCH.setattr(pipeline, "fuse_elementwise", lambda _: replace(pipeline.drop_noops, apply=_nothing))
    return check(asked, channel)


def large_allocation(asked: Check, channel: Channel) -> Any:
    """The runtime plans twice the memory for a run."""
    planned = facts._prepared
    _PATCH.setattr(facts, "_prepared", lambda each: {**planned(each), "peak_bytes": 2 * each.peak_bytes})
    return check(asked, channel)


def abort(asked: Check, channel: Channel) -> Any:
    """A run ends the process, as an operator does that calls `abort`."""
    _PATCH.setattr(Session, "run", lambda *_, **__: os.abort())
    return check(asked, channel)
