"""Plans: the bytes of a plan file, and methods that read them."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler import _runtime
from compiler.atomic_files import write_whole
from compiler.errors import PlanError
from compiler.ir.symbols import shown
from compiler.plan import decode
from compiler.plan.constants import named_constants
from compiler.plan.header import begins_as_plan
from compiler.plan.operators import counted
from compiler.plan.types import tensor_type
from compiler.validate import validate_instance

__all__ = ["FIRST", "MODEL", "Plan", "StateInfo", "TensorInfo", "unsound"]

FIRST = 9
"""The number of bytes that `unsound` reads."""
MODEL = b"\x08"
"""The first byte of ONNX files, the tag of their first field. A plan starts with the length of its header."""


@dataclass(frozen=True)
class TensorInfo:
    """An input or output: its name, logical dtype and dimensions (numbers, symbols, or `None` for unknown ones)."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"
    """`tensor`, `sequence` or `optional`. The dtype and shape of a sequence or an optional are those of its items."""
    holds: str = "tensor"
    """The kind of the value in an optional: `tensor` or `sequence`."""

    def __str__(self) -> str:
        kind = "optional " * (self.kind == "optional") + "sequence of " * ("sequence" in (self.kind, self.holds))
        if self.shape is None:
            return f"{kind}{self.dtype}"
        return f"{kind}{self.dtype} [{', '.join('?' if dim is None else str(dim) for dim in self.shape)}]"

    @classmethod
    def from_json(cls, name: str, data: dict[str, Any]) -> TensorInfo:
        """The description of a value of the type with this JSON form."""
        kind = next(iter(data)).lower()
        holds = next(iter(data["Optional"])).lower() if kind == "optional" else "tensor"
        inner = data
        while "Tensor" not in inner:
            inner = next(iter(inner.values()))
        tensor = tensor_type(decode.type_from(inner))
        shape = None if tensor is None or tensor.shape is None else tuple(map(_dim, tensor.shape))
        return cls(name, "" if tensor is None else tensor.dtype, shape, kind, holds)


@dataclass(frozen=True)
class StateInfo:
    """A pair of the state: an output, and the input that takes its value in the next run of a state."""

    output: str
    input: str
    axis: int | None
    """The axis along which the value grows from run to run; `None` if none is known to grow."""


@dataclass(frozen=True)
class Plan:
    """A compiled model, in the form of a plan file."""

    data: bytes

    def __post_init__(self) -> None:
        validate_instance("data", self.data, bytes, "the bytes of a plan file")

    def __repr__(self) -> str:
        try:
            steps = f"{len(self.document['main']['steps'])} steps"
        except PlanError:
            steps = "invalid"
        return f"Plan({steps}, {len(self.data)} bytes)"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan file.

        Raises:
            PlanError: the file is not a valid plan.
            OSError: the file cannot be read.
        """
        validate_instance("path", path, (str, os.PathLike), "the path of a plan file")
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib takes the empty path for the working folder)
            plan = cls(file.read())
        try:
            violations = _runtime.verify(plan.data)
        except _runtime.PlanError as error:
            raise unsound(path, plan.data, PlanError(error.args[0], error.kind)) from None
        if violations:
            raise unsound(path, plan.data, PlanError(violations))
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan file completely or, after an error, not at all."""
        validate_instance("path", path, (str, os.PathLike), "the path of a file")
        write_whole(path, self.data)

    @property
    def source(self) -> bytes | str:
        """The bytes of the file, or its path."""
        return self.data

    @property
    def size(self) -> int:
        """The number of bytes of the file."""
        return len(self.data)

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        """The plan without the elements of constants, as JSON of the schema `plan.schema.json`.

        Raises:
            PlanError: the bytes are not a valid plan.
        """
        try:
            document: dict[str, Any] = json.loads(_runtime.plan_json(self.data))
        except _runtime.PlanError as error:
            raise PlanError(error.args[0], error.kind) from None
        return document

    @property
    def inputs(self) -> list[TensorInfo]:
        """The inputs, in order."""
        return self._values("inputs")

    @property
    def outputs(self) -> list[TensorInfo]:
        """The outputs, in order."""
        return self._values("outputs")

    @property
    def state(self) -> list[StateInfo]:
        """The pairs of the state, in the order of the inputs; empty if the plan has no state."""
        main = self.document["main"]
        return [
            StateInfo(main["values"][pair["output"]]["name"], main["values"][pair["input"]]["name"], pair["axis"])
            for pair in self.document.get("state", ())
        ]

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The elements of the numeric constants that have a name, as read-only arrays in the memory of the plan.

        The constants of nested blocks are not among them.

        Raises:
            PlanError: the bytes are not a valid plan.
        """
        self.document  # noqa: B018 (checks the bytes)
        return named_constants(self.data)

    @property
    def weights(self) -> list[TensorInfo]:
        """The weights of the model that the plan keeps under their names (`Options.keep_weights`)."""
        document = self.document
        return [
            TensorInfo.from_json(weight["name"], document["constants"][weight["constant"]])
            for weight in document.get("weights", ())
        ]

    @property
    def custom_ops(self) -> list[str]:
        """The full names of the custom operators, such as `my.domain::Name`, which a session needs (`custom_op`)."""
        return sorted(name for name in counted(self.document["main"]) if "::" in name)

    def _values(self, which: str) -> list[TensorInfo]:
        main = self.document["main"]
        values = [main["values"][index] for index in main[which]]
        return [TensorInfo.from_json(value["name"], value["type"]) for value in values]


def unsound(path: str | os.PathLike[str], data: bytes, error: PlanError) -> PlanError:
    """The error of a file that starts with `data`, with the name of the file."""
    name = os.fspath(path)
    if not begins_as_plan(data) and data.startswith(MODEL):
        return PlanError([f"{name} is not a plan but looks like an ONNX model: compile it first"], "not_a_plan")
    return PlanError([f"{name}: {violation}" for violation in error.violations], error.kind)


def _dim(dim: int | str | None) -> int | str | None:
    return shown(dim) if isinstance(dim, str) else dim
