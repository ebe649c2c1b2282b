"""Diagnostics: what is wrong, where it came from and what to do, as data.

A diagnostic is printed in the form of rustc's::

    error[CC0301]: 3-D convolution is not supported (kernel 3×3×3)
      --> model.py:118 in UNet3D.forward   encoder.0.conv : Conv3d   Conv(node_conv3d)
      help: candle-plan executes 1-D and 2-D operators only; see `candlec explain CC0301`
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compiler.origin import Origin
from compiler.symbols import shown

__all__ = ["PAGES", "CompileError", "Diagnostic", "InputError", "PlanError", "RunError", "program"]

PAGES = {
    "CC0101": "The file is not an ONNX model: it is empty, truncated, or of another format. Export or download it "
    "again.",
    "CC0102": "The file cannot be read: it does not exist, is a directory, or permission is missing.",
    "CC0103": "External data cannot be loaded. Weights outside the .onnx file must lie inside the model's own folder, "
    "and be as long as the model says. A path that leaves the folder is refused, because a model is not trusted.",
    "CC0104": "The model imports an opset that this version does not know. The "
    "newest is that of the installed onnx package: upgrade onnx, or export with a known opset.",
    "CC0105": "The graph has a cycle: a node needs, through others, its own output. ONNX graphs have none.",
    "CC0106": "The graph is broken: a value is used that nothing defines, or two nodes define one name.",
    "CC0107": "A model-local function calls itself. ONNX functions may not be recursive.",
    "CC0201": "No lowering knows this operator. `candlec ops` lists those there are. An operator of a private domain "
    "can be added as a model-local function, or as described in docs/adding-an-operator.md.",
    "CC0202": "An attribute is missing or has a value that the operator does not allow.",
    "CC0203": "The node has an attribute that the compiler does not read. It may change the result, so the node "
    "is refused.",
    "CC0204": "The node belongs to a newer version of its operator than the compiler was written for.",
    "CC0205": "An input of the node is missing or is not what the operator takes: its dtype or rank is not supported.",
    "CC0206": "The node has an operator that needs training or random state that a plan does not have.",
    "CC0207": "The node's result has another dtype than ONNX says. This is a fault of the compiler: please report it.",
    "CC0208": "The operator was experimental and was removed from ONNX. "
    "Export the model again with a current exporter.",
    "CC0210": "The node is given shapes that its operator cannot take, so it would fail whenever it runs.",
    "CC0301": "The model has a three-dimensional operator (convolution, pooling, normalisation, resize … with three "
    "spatial dimensions). candle-plan executes 1-D and 2-D operators only, by design.",
    "CC0401": "Shapes contradict each other: the operator cannot be applied to inputs of these shapes.",
    "CC0402": "The shape that the file declares for a value differs from the one that follows from the operators. "
    "The one that follows is used.",
    "CC0403": "A dimension that was pinned (`--dim`) is not a symbol of the model's inputs, or its size is negative.",
    "CC0404": "An output is declared with another element type than it has.",
    "CC0501": "A pass left the graph broken. This is a fault of the compiler: please report it.",
    "CC0502": "The plan that was written is not valid. This is a fault of the compiler: please report it.",
    "CC0503": "There is no pass of that name. `candlec compile --help` lists them.",
    "CC0504": "The plan does not fit its file format: its description (steps, names, strings) may have 100,000,000 "
    "bytes. Constants of numbers do not count.",
}
"""Code → the page that `candlec explain` prints."""


def program() -> str:
    """The command line as the user called it: `cc`, of which its script tells, or `candlec`."""
    return "cc" if os.environ.get("CANDLEC_CALLED_AS") == "cc" else "candlec"


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a model."""

    code: str
    message: str
    origin: Origin | None = None
    help: str = ""
    severity: Literal["error", "warning"] = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shown(self.message))  # dimensions by the names that the model gives them

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.origin:
            lines.append(f"  --> {self.origin}")
        see = f"see `{program()} explain {self.code}`"
        lines.append(f"  help: {self.help}; {see}" if self.help else f"  help: {see}")
        return "\n".join(lines)


class CompileError(Exception):
    """The model is refused. `diagnostics` holds every finding, not only the first.

    `unchecked` are the nodes behind refused ones of which too little is known to say whether they can be compiled.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], unchecked: Iterable[Origin] = ()) -> None:
        self.diagnostics, self.unchecked = list(diagnostics), list(unchecked)
        super().__init__("\n\n".join(map(str, self.diagnostics)))


class PlanError(Exception):
    """A plan file cannot be read. `violations` holds every reason."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = list(violations)
        super().__init__("\n".join(self.violations))


class InputError(Exception):
    """An input of a run does not fit what the plan declares."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        self.name, self.expected, self.found = name, expected, found
        super().__init__(f"input {name!r}: expected {expected}, found {found}")


class RunError(Exception):
    """A step of a run failed.

    `inputs` are its inputs' dtypes and shapes, `within` the blocks of other steps that it is in, the outermost first.
    """

    def __init__(
        self, step: int, op: str, inputs: list[str], origin: str, message: str, within: Sequence[str] = ()
    ) -> None:
        self.step, self.op, self.inputs, self.origin = step, op, inputs, origin
        self.message, self.within = message, list(within)
        blocks = "".join(f" in {block}" for block in reversed(self.within))
        place = f"step {step} {op}({', '.join(inputs)}){blocks}" + (f" from {origin}" if origin else "")
        super().__init__(f"{place}: {message}")
