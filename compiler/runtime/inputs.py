"""Checks of the names of a run's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.errors import InputError
from compiler.plan import TensorInfo
from compiler.validate import validate_mapping

__all__ = ["checked_inputs"]


def checked_inputs(inputs: Mapping[str, Any], declared: Sequence[TensorInfo], names: frozenset[str]) -> dict[str, Any]:
    """The inputs by name, after checking that none is unknown or missing. An absent optional is `None`.

    `declared` are the inputs that the caller gives, and `names` those of all inputs of the plan. A state holds the
    others.
    """
    validate_mapping("inputs", inputs, "a dict of arrays by name")
    taken = {info.name for info in declared}
    for name in inputs:
        if name not in taken:
            raise _unknown_input(name, declared, name in names)
    for info in declared:
        if info.name not in inputs and info.kind != "optional":
            message = f"input {info.name!r} is missing: expected {info}"
            raise InputError(info.name, str(info), "nothing", message)
    return {info.name: inputs.get(info.name) for info in declared}


def _unknown_input(name: str, declared: Sequence[TensorInfo], is_held: bool) -> InputError:
    """The error for an input that the run does not take."""
    known = ", ".join(info.name for info in declared)
    if is_held:
        message = f"the state holds the input {name!r}: leave it out, or give it to new_state as an initial value"
        return InputError(name, "nothing", "a value", message)
    told = f"the inputs are {known}" if known else "the plan has no inputs"
    if len(declared) == 1:
        told = f"the only input is {known}"
    return InputError(name, f"one of {known}", "an unknown name", f"there is no input {name!r}; {told}")
