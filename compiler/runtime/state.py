"""States: values that one run passes to the next, such as the caches of a language model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from compiler.atomic_files import write_whole
from compiler.ir.symbols import symbol_of
from compiler.runtime.failures import own_errors
from compiler.validate import LARGEST, validate_instance, validate_mapping, validate_sizes, validate_whole_number

if TYPE_CHECKING:
    from compiler.plan import TensorInfo

__all__ = ["State", "checked_state", "made"]


class State:
    """The values that a run of a plan passes to the next run: `session.run(inputs, state=state)`.

    The values stay in the runtime, on the session's device. A run reads them, and replaces them if it succeeds. If it
    fails or is canceled, the values do not change. One thread at a time can use a state. One session can run with many
    states at the same time.
    """

    _module: Any
    _runtime: Any

    def __init__(self) -> None:
        """`Session.new_state` makes states."""
        raise TypeError("a program makes no State(): call new_state() of the session that runs with it")

    @classmethod
    def _of(cls, module: Any, runtime: Any) -> State:
        """The state for an extension's object."""
        state = cls.__new__(cls)
        state._module, state._runtime = module, runtime
        return state

    def __copy__(self) -> State:
        return self.copy()

    def __deepcopy__(self, _: Any) -> State:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a state cannot be pickled: save it to a file, and load it into a state of the other process")

    def __repr__(self) -> str:
        length = "" if self.length is None else f"length {self.length}, "
        return f"State({length}{self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """The bytes of the values."""
        return int(self._runtime.nbytes)

    @property
    def length(self) -> int | None:
        """The size along the axis that grows, such as the number of tokens in a cache; `None` if no value grows."""
        length: int | None = self._runtime.length
        return length

    def reset(self) -> None:
        """Set the values back to the first values of the state.

        Raises:
            RuntimeError: another thread uses the state.
        """
        self._runtime.reset()

    def copy(self) -> State:
        """Return a copy of the state, for example to fork a conversation. The copy changes separately from this state.

        Both states share the values until a run changes one of them.

        Raises: as `reset`.
        """
        return State._of(self._module, self._runtime.copy())

    def truncate(self, length: int) -> None:
        """Keep the first `length` elements of every value along the axis that grows.

        Raises:
            RuntimeError: another thread uses the state.
            TypeError, ValueError: `length` is no whole number from 0 to the present length, or a value does not grow,
                so that no earlier value of it is known.
        """
        length = validate_whole_number("length", length, 0, LARGEST - 1)
        with own_errors(self._module):
            self._runtime.truncate(length)

    def numpy(self) -> dict[str, Any]:
        """Return the values as NumPy arrays, by the names of the inputs that take them.

        Before the first run, values are missing if the inputs of this run decide their sizes.

        Raises: as `reset`.
        """
        with own_errors(self._module):
            values: dict[str, Any] = self._runtime.numpy()
        return values

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the values to a safetensors file, which a state of any plan of the same model can load.

        Raises:
            RuntimeError: another thread uses the state.
            OSError: the file cannot be written.
        """
        validate_instance("path", path, (str, os.PathLike), "the path of a file")
        with own_errors(self._module):
            data = self._runtime.save()
        write_whole(path, data)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take the values of a file that `save` wrote.

        Raises:
            RuntimeError: another thread uses the state.
            InputError: a value does not fit its input.
            ValueError: the file is damaged, or a state of another model.
            OSError: the file cannot be read.
        """
        validate_instance("path", path, (str, os.PathLike), "the path of a file")
        data = Path(path).read_bytes()
        with own_errors(self._module):
            try:
                self._runtime.load(data)
            except ValueError as error:
                if getattr(error, "kind", None) == "state_file":
                    raise ValueError(f"{os.fspath(path)} is cut short or is no saved state") from None
                raise


def made(
    module: Any,
    session: Any,
    inputs: Sequence[TensorInfo],
    initial: Mapping[str, Any] | None,
    sizes: Mapping[str, int] | None,
) -> State:
    """The state of an extension's session; see `Session.new_state`."""
    first = {} if initial is None else initial
    validate_mapping("initial", first, "a dict of arrays by name")
    chosen = validate_sizes("sizes", {} if sizes is None else sizes)
    pairs = module.State.pairs(session)
    _check_lengths(inputs, {given: axis for _, given, axis in pairs if axis is not None}, first, chosen)
    held = [given for _, given, _ in pairs]
    named = [(name if _is_place(name, held) else symbol_of(name) or name, size) for name, size in chosen.items()]
    with own_errors(module):
        return State._of(module, module.State(session, dict(first), named))


def _check_lengths(
    inputs: Sequence[TensorInfo], growing: Mapping[str, int], first: Mapping[str, Any], sizes: Mapping[str, int]
) -> None:
    """Refuse some of the first values of a size, such as the keys of a cache without its values.

    Raises:
        ValueError: the size of a value is not 0, and another value of this size is missing.
    """
    dims = {info.name: info.shape[growing[info.name]] for info in inputs if info.name in growing and info.shape}
    for name, dim in dims.items():
        shape = getattr(first.get(name), "shape", ())
        length = shape[growing[name]] if len(shape) > growing[name] else 0
        others = [other for other in dims if dims[other] == dim and other not in first]
        if length and others and isinstance(dim, str) and dim not in sizes:
            also = f" and {len(others) - 1} more" if len(others) > 1 else ""
            raise ValueError(
                f"initial: {name!r} has size {length} ({dim}), but {others[0]!r}{also} of the same size is missing"
            )


def _is_place(name: str, inputs: list[str]) -> bool:
    """Whether a name consists of the name of an input, a point and a number."""
    given, _, axis = name.rpartition(".")
    return given in inputs and axis.isdecimal()


def checked_state(state: State, module: Any) -> Any:
    """The extension's object of a state.

    Raises:
        TypeError: it is no state.
        ValueError: it belongs to another extension.
    """
    validate_instance("state", state, State, "a state that new_state made")
    if state._module is not module:
        raise ValueError("the state belongs to another device: save it, and load it into a state of this session")
    return state._runtime
