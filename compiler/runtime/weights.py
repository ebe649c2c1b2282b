"""The constants of a session by name, and sessions with other weights."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.errors import PlanError
from compiler.plan import Plan, TensorInfo
from compiler.runtime.custom import functions
from compiler.runtime.libraries import readable
from compiler.validate import validate_instance

__all__ = ["Weights", "infos", "loaded_again", "source_of", "validate_weights"]

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
        return {name: readable(value) for name, value in weights.items()}
    validate_instance("weights", weights, (str, os.PathLike), "the path of a file, or a dict of arrays by name")
    path = os.fspath(weights)
    with Path(path).open("rb"):
        return path


def source_of(plan: Plan | str | os.PathLike[str]) -> Any:
    """Return a function that returns the plan of a session, or its path; `None` if the plan no longer exists."""
    if isinstance(plan, Plan):
        return weakref.ref(plan)
    path = os.fspath(plan)
    return lambda: path


def loaded_again(session: Any, plan: Plan | str | None, options: tuple[Any, ...], weights: Weights) -> Any:
    """A runtime session of the same plan as the runtime session `session`, with these options and weights.

    Raises:
        ValueError: the plan is gone, or the weights do not fit it.
        PlanError: the plan file changed.
        OSError, TypeError: as in `validate_weights`.
    """
    given = validate_weights(weights)
    if plan is None:
        raise ValueError("the plan of this session is no longer in memory: keep the Plan, or use load(plan, weights=…)")
    found = type(session)(plan.source if isinstance(plan, Plan) else plan, *options, given, functions())
    if found.sha256 != session.sha256:
        name = "the Plan" if isinstance(plan, Plan) else plan
        raise PlanError([f"{name} is no longer the plan of this session: load it again"], "file")
    return found


def infos(text: str) -> list[TensorInfo]:
    """The names and types in a JSON list of the runtime."""
    return [TensorInfo.from_json(item["name"], item["type"]) for item in json.loads(text)]
