"""The inputs and outputs of a plan for one row: their shapes lack the first axis, which holds the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.batch.settings import SettingError
from compiler.errors import Error, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.plan import TensorInfo

__all__ = ["Value", "batch_size", "inputs_of_rows", "outputs_of_rows"]

USUAL_BATCH = 32


@dataclass(frozen=True)
class Value:
    """An input or output of one row. In `shape`, `None` stands for an unknown size.

    `column` is the name of the column or array of the data that holds an input.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    column: str = ""

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"

    @property
    def known(self) -> int:
        """The product of the known sizes."""
        return math.prod(size for size in self.shape if size is not None)

    @property
    def free(self) -> int:
        """The number of unknown sizes."""
        return self.shape.count(None)

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether a row may have this shape."""
        same = len(shape) == len(self.shape)
        return same and all(size in (None, has) for size, has in zip(self.shape, shape, strict=True))


def inputs_of_rows(declared: Sequence[TensorInfo], columns: Mapping[str, str]) -> list[Value]:
    """The inputs of a row. An optional input without a column stays absent.

    Raises:
        Error: an input is no tensor with a first axis for the rows, or `columns` names no input.
    """
    names = [info.name for info in declared]
    for name in columns:
        if name not in names:
            raise Error(f"there is no input {name!r}: {did_you_mean(name, names) or f'the inputs are {_list(names)}'}")
    taken = [info for info in declared if info.kind != "optional" or info.name in columns]
    if not taken:
        raise Error("the plan has no inputs, so there are no rows to run it on")
    return [_value("input", info, columns.get(info.name, info.name)) for info in taken]


def outputs_of_rows(
    declared: Sequence[TensorInfo], names: Sequence[str] | None, inputs: Sequence[TensorInfo]
) -> list[Value]:
    """The outputs of a row, in the order of `names`.

    Raises:
        Error: there is no output of such a name, or an output has no first axis for the rows.
    """
    known = {info.name: info for info in declared}
    for name in names or ():
        if name not in known:
            raise Error(
                f"there is no output {name!r}: {did_you_mean(name, known) or f'the outputs are {_list(known)}'}"
            )
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    firsts = {info.shape[0] for info in inputs if info.shape}
    for info in chosen:
        first = info.shape[0] if info.shape else None
        if isinstance(first, int) and first not in firsts:
            why = "its first axis has a fixed size, which is not the number of rows"
            problem = f"the output {info.name!r}, {info}, has no axis for the rows: {why}"
            raise SettingError(problem, "; choose other outputs", "outputs")
    return [_value("output", info, "") for info in chosen]


def batch_size(declared: Sequence[TensorInfo], wanted: int | None) -> tuple[int, bool]:
    """The number of rows of a run, and whether the plan fixes it.

    Raises:
        Error: the inputs have different first sizes, or `wanted` is another number than the plan's.
    """
    sizes = {info.shape[0]: info for info in declared if info.shape and isinstance(info.shape[0], int)}
    if len(sizes) > 1:
        listing = ", ".join(f"{info.name} {info}" for info in sizes.values())
        raise Error(f"the first axes of the inputs have different sizes, so they are not the rows: {listing}")
    if not sizes:
        return wanted or USUAL_BATCH, False
    [size] = sizes
    assert isinstance(size, int)
    if size == 0:
        raise Error("the first axis of the inputs has the size 0: the plan takes no rows")
    if wanted is not None and wanted != size:
        advice = f": leave out the batch size, or compile for {wanted} rows"
        raise SettingError(f"the plan has the fixed batch size {size}", advice, "batch")
    return size, True


def _value(what: str, info: TensorInfo, column: str) -> Value:
    if info.kind == "sequence" or info.holds != "tensor":
        raise Error(f"the {what} {info.name!r} is a {info.kind}: only tensors have rows")
    if not info.shape:
        raise Error(f"the {what} {info.name!r} has no first axis for the rows: it is {info}")
    return Value(
        info.name, info.dtype, tuple(size if isinstance(size, int) else None for size in info.shape[1:]), column
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
