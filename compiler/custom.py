"""Custom operators: functions of a program that compute operators which the compiler does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from compiler.validate import validate_function, validate_instance

if TYPE_CHECKING:
    from compiler.plan import TensorInfo

__all__ = ["CustomOp", "custom_op", "registered", "registered_ops"]

Function = TypeVar("Function", bound=Callable[..., Any])

OutputType: TypeAlias = "tuple[str, Sequence[int | str | None] | None] | TensorInfo"
"""The dtype and shape of an output."""
Types: TypeAlias = "Callable[..., OutputType | Sequence[OutputType]]"
"""The function that returns the types of an operator's outputs."""
Tensors = Literal["numpy", "torch"]
"""The library whose tensors a function takes."""

_TAKEN = ("ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training", "candle.plan")
"""The domains of the standard, and of nodes that passes make."""


@dataclass(frozen=True)
class CustomOp:
    """A registered operator: its full name, the rule for its types, its function, and the library of its tensors."""

    name: str
    types: Types
    function: Callable[..., Any]
    tensors: str


_REGISTERED: dict[str, CustomOp] = {}


def custom_op(name: str, types: Types, *, as_: Tensors = "numpy") -> Callable[[Function], Function]:
    """Registers the decorated function for an operator that the compiler does not know: `my.domain::Name`.

    The function takes the inputs in order, and the attributes of the node as keyword arguments. An absent input is
    `None`; the call omits absent inputs at the end. The inputs are copies: NumPy arrays, or with `as_="torch"` PyTorch
    tensors on the CPU. The function returns an array or a tensor, or a list of several outputs. Several threads may
    call it at the same time.

    `types` returns the types of the outputs from those of the inputs. It takes a `TensorInfo` for each input, and the
    attributes as keyword arguments. It returns a pair of a dtype and a shape, such as `("float32", (2, None))`, or a
    list of pairs. A size is a number, a symbol from the shape of an input, or `None` if it is unknown before a run. A
    run fails if an output has another type. The compiler calls `types` several times for each node.

    Every session that is loaded later calls the function. Another registration of the same name replaces it.

    Raises:
        TypeError: `name` is no string, or `types` or the decorated object is no function.
        ValueError: `name` has no domain, or that of the ONNX standard; or `as_` is no known library.
    """
    validate_instance("name", name, str, "a string")
    validate_function("types", types)
    if as_ not in get_args(Tensors):
        raise ValueError(f"as_: expected {' or '.join(map(repr, get_args(Tensors)))}, found {as_!r}")
    domain, _, op_type = name.rpartition("::")
    if not domain or not op_type:
        raise ValueError(f'name: expected a domain and an operator, as "my.domain::Name", found {name!r}')
    if domain in _TAKEN:
        raise ValueError(f"name: a custom operator has a domain of its own, but {domain} is taken")

    def register(function: Function) -> Function:
        validate_function(f"the decorated object of {name}", function)
        _REGISTERED[name] = CustomOp(name, types, function, as_)
        return function

    return register


def registered(domain: str, op_type: str) -> CustomOp | None:
    """The registration of an operator; `None` without one."""
    return _REGISTERED.get(f"{domain}::{op_type}") if _REGISTERED else None


def registered_ops() -> list[CustomOp]:
    """All registrations."""
    return list(_REGISTERED.values())
