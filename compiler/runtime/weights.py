"""The constants of a session by name, and sessions with other weights."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.errors import PlanError
from compiler.plan import Plan, TensorInfo
from compiler.runtime.failures import own_errors
from compiler.validate import validate_instance

if TYPE_CHECKING:
    from compiler.runtime.session import Session

__all__ = ["Weights", "infos", "source_of", "validate_weights", "with_weights"]

Weights = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a safetensors or GGUF file, or arrays by name."""


def validate_weights(weights: Weights | None) -> str | dict[str, Any] | None:
    """The weights as the runtime takes them.

    Raises:
        OSError: the file cannot be opened.
        TypeError: they are neither a path nor a mapping with names.
    """
    if weights is None:
        return None
    if isinstance(weights, Mapping):
        for name in weights:
            validate_instance("a name in weights", name, str, "a string")
        return dict(weights)
    validate_instance("weights", weights, (str, os.PathLike), "the path of a file, or a dict of arrays by name")
    path = os.fspath(weights)
    with Path(path).open("rb"):
        return path


def source_of(plan: Plan | str | os.PathLike[str]) -> Any:
    """A function that returns the plan that a session was made of, or its path; `None` if the plan is gone."""
    if isinstance(plan, Plan):
        return weakref.ref(plan)
    path = os.fspath(plan)
    return lambda: path


def with_weights(session: Session, weights: Weights) -> Session:
    """A session like this one, with other weights."""
    plan, given = session._source(), validate_weights(weights)
    if plan is None:
        raise ValueError("the plan of this session is no longer in memory: keep the Plan, or use load(plan, weights=…)")
    source = plan.source if isinstance(plan, Plan) else plan
    module, options = session._module, session._options
    with own_errors(module):
        runtime = module.Session(source, session.device, session.threads, *options[1:3], given)
    if runtime.sha256 != session._runtime.sha256:
        raise PlanError([f"{source} is no longer the plan of this session: load it again"], "file")
    made: Session = type(session).__new__(type(session))
    made._source, made._options = session._source, options
    return made._begin(module, runtime, session.fallback_reason)


def infos(text: str) -> list[TensorInfo]:
    """The names and types in a JSON list of the runtime."""
    return [TensorInfo.from_json(item["name"], item["type"]) for item in json.loads(text)]
