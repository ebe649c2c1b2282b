"""Files of weights: safetensors, and GGUF in every type that Candle reads."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compiler import _runtime
from compiler.errors import CompileError, Diagnostic
from compiler.rewrite.low_bit import PackedWeights

__all__ = ["StoredTensor", "WeightFile"]

Array = np.ndarray[Any, Any]

_FLOATS = frozenset(["float16", "bfloat16", "float32", "float64"])


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of a file."""

    kind: str
    """The type of the elements: `float32` in a safetensors file, and Candle's name in a GGUF file, such as `Q4K`."""
    shape: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats, or codes that stand for floats."""
        return self.kind in _FLOATS or self.kind[0].isupper()

    @property
    def is_quantized(self) -> bool:
        """Whether the elements are codes in blocks."""
        return self.kind[0] == "Q"


class WeightFile:
    """A file of weights. The first use reads it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return Path(self.path).name

    @functools.cached_property
    def _read(self) -> _runtime.WeightFile:
        try:
            with Path(self.path).open("rb"):
                return _runtime.WeightFile(self.path)
        except (OSError, ValueError, _runtime.PlanError) as error:
            raise CompileError([Diagnostic("CC0409", f"the weights cannot be read: {_reason(error)}")]) from None

    @functools.cached_property
    def tensors(self) -> dict[str, StoredTensor]:
        """The tensors by name.

        Raises:
            CompileError: the file cannot be read, is damaged, or has another format.
        """
        return {name: StoredTensor(kind, tuple(shape)) for name, kind, shape in self._read.tensors}

    @functools.cached_property
    def metadata(self) -> dict[str, Any]:
        """The numbers and texts that describe a GGUF file, such as `general.architecture`; empty for safetensors."""
        found: dict[str, Any] = json.loads(self._read.metadata)
        return found

    def array(self, name: str) -> Array:
        """The elements of a tensor. Those of a GGUF file are float32."""
        return np.asarray(self._read.elements(name))

    def packed(self, name: str) -> PackedWeights | None:
        """A matrix `[N, K]` of a GGUF file, as the codes of a product; `None` for a tensor without codes."""
        found = self._read.codes(name)
        if found is None:
            return None
        bits, (codes, scales, *zeros) = found
        return PackedWeights(codes, scales, zeros[0] if zeros else None, bits, self.tensors[name].shape[1])


def _reason(error: BaseException) -> str:
    """The message of an error of the runtime or of the operating system."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror or error}"
    text = "; ".join(error.args[0]) if isinstance(error, _runtime.PlanError) else str(error)
    return text.removeprefix("the weights cannot be used:").strip()
