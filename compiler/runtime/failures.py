"""The exceptions of the extensions, as exceptions of this package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from compiler.errors import DeviceError, Error, InputError, PlanError, RunError
from compiler.ir.symbols import shown

__all__ = ["failures", "own_error", "own_errors"]


def failures(module: Any) -> tuple[type[Exception], ...]:
    """The exceptions that an extension raises."""
    return module.PlanError, module.DeviceError, module.InputError, module.RunError, module.OpError


def own_error(module: Any, error: Any) -> Error:
    """The exception of this package for an exception of an extension."""
    match error:
        case module.PlanError():
            return PlanError(error.args[0], error.kind)
        case module.InputError():
            return InputError(*map(shown, error.args))
        case module.RunError():
            step, op, inputs, origin, message, within = error.args
            return RunError(step, op, inputs, origin, message, within, error.kind)
        case _:  # of the device, or of no step
            return DeviceError(": ".join(error.args), error.kind)


@contextlib.contextmanager
def own_errors(module: Any) -> Iterator[None]:
    """Raise the exceptions of an extension as exceptions of this package."""
    try:
        yield
    except failures(module) as error:
        raise own_error(module, error) from error.__cause__
