"""The options of the verbs that compile models in order to run or to check them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from compiler.cli import arguments
from compiler.cli.grouped import grouped
from compiler.cli.volumes import lower_option, lower_when_compiling


@dataclass(frozen=True)
class Compiling:
    """Whether to lower operators of three spatial dimensions, and whether to refuse what ONNX does not allow."""

    lower_3d: bool
    strict: bool

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `compiler.Options`."""
        return asdict(self)


@dataclass(frozen=True)
class Checking(Compiling):
    """The same, and the sizes of dimensions."""

    dims: dict[str, int]


compiling_option = grouped("compiling", Compiling, lower_when_compiling, arguments.strict_option)
checking_option = grouped(
    "compiling",
    Checking,
    arguments.pin_option,
    lower_option("Check the 2-D operators that candlec compile --lower-3d makes of those of three spatial dimensions."),
    arguments.strict_option,
)
