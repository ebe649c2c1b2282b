"""The options with which all models of a folder are compiled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.options import Precision

__all__ = ["Compiling"]


@dataclass(frozen=True)
class Compiling:
    """Whether to lower operators of three spatial dimensions, and whether to refuse what ONNX does not allow.

    `precision` is that of products with constant weights.
    """

    lower_3d: bool = False
    strict: bool = False
    precision: Precision = "f32"

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `compiler.Options`."""
        return asdict(self)
