"""Diagnostics: what is wrong, where it came from and what to do, as data.

A diagnostic is printed in the form of rustc's::

    error[CC0301]: 3-D convolution is not supported (kernel 3×3×3)
      --> model.py:118 in UNet3D.forward   encoder.0.conv : Conv3d   Conv(node_conv3d)
      help: candle-plan executes 1-D and 2-D operators only; see `candlec explain CC0301`
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from compiler.origin import Origin
from compiler.symbols import shown

__all__ = [
    "PAGES",
    "CompileError",
    "DeviceError",
    "Diagnostic",
    "Error",
    "InputError",
    "Page",
    "PlanError",
    "RunError",
    "did_you_mean",
    "program",
]


class Page(NamedTuple):
    """What a code means, and what to do about it."""

    meaning: str
    advice: str


_REPORT = "This is a fault of the compiler, not of the model: please report it, with the model if you can."

PAGES = {
    "CC0101": Page(
        "The file is not a sound ONNX model: it is empty, truncated, damaged, or of another format.",
        "Download or export it again. A model of another framework has to be exported first: `candlec export` does so "
        "for PyTorch. A plan is run (`candlec run`), not compiled.",
    ),
    "CC0102": Page(
        "The file cannot be read: it does not exist, is a directory, or permission is missing.",
        "Look at the path, which is relative to the folder that the command is called in, and at the file's rights.",
    ),
    "CC0103": Page(
        "Weights that are kept in another file cannot be read, or are not as long as the model says. Such a file has "
        "to lie in the model's own folder, itself and not as a link to elsewhere, because a model is not trusted.",
        "Copy the .onnx file and all files of weights into one folder, with the names that they had. A model given as "
        "bytes has no folder: give its path. Weights of less than 2 GB can be put into the model: "
        "`onnx.save(onnx.load(path), one_file)`.",
    ),
    "CC0104": Page(
        "The model is written for an opset that this version does not know.",
        "Upgrade the onnx package, which knows the opsets, or export the model for an older one "
        "(`opset_version=…` of torch.onnx.export).",
    ),
    "CC0105": Page(
        "The graph has a cycle: a node needs, through others, its own result. ONNX graphs have none.",
        "Look at the nodes that the error names: one of them reads a value that it should not. "
        "A loop is written with the operators Loop or Scan.",
    ),
    "CC0106": Page(
        "The graph is broken: a value is used that nothing defines, one name is defined twice, or there is no output.",
        "Correct the program that wrote or edited the model. `onnx.checker.check_model(path)` finds such faults too.",
    ),
    "CC0107": Page(
        "Model-local functions call each other in a circle. ONNX functions may not be recursive.",
        "Write the repetition with Loop or Scan, or export the module again without making functions of its parts.",
    ),
    "CC0201": Page(
        "The compiler has no such operator.",
        "`candlec ops` lists those it has; look for a name of other spelling, and at the domain. An operator of "
        "your own can be given as a model-local function of others, or be added: docs/adding-an-operator.md.",
    ),
    "CC0202": Page(
        "An attribute of the node is missing, or has a value that the operator does not allow or that is not computed.",
        "Compare the attribute with the operator's page in the ONNX documentation, and correct or export the model "
        "again. Where the error offers other values, use one of these.",
    ),
    "CC0203": Page(
        "The node has an attribute that the compiler does not read. It may change the result, so the node is refused.",
        "Remove the attribute if it is a leftover of another version of the operator. If the operator's page in the "
        "ONNX documentation has it for the model's opset, please report it.",
    ),
    "CC0204": Page(
        "The node belongs to a version of its operator that the compiler was not written for.",
        "Export the model for another opset, such as 20 (`opset_version=20` of torch.onnx.export). "
        "`candlec ops NAME` tells the newest version of an operator that is understood.",
    ),
    "CC0205": Page(
        "An input or output of the node or of the model is missing, or of a type, kind or rank that is not supported.",
        "Where the type is the matter, cast the value to another type (float32, int64) before it comes to the node. "
        "Complex numbers are written as a last axis of two. Where something is not known, `--dim` may tell it.",
    ),
    "CC0206": Page(
        "The node computes something that belongs to training, such as random dropout.",
        "Export the module in evaluation mode: `module.eval()`, and `training=TrainingMode.EVAL` in torch.onnx.export.",
    ),
    "CC0207": Page(
        "The node's result is of another type than the file or the standard says.",
        "Run `onnx.checker.check_model(path, full_check=True)`: if it finds the model wrong, export the model again. "
        "If it finds nothing, this is a fault of the compiler: please report it.",
    ),
    "CC0208": Page(
        "The operator was experimental and was removed from ONNX.",
        "Export the model again with a current exporter.",
    ),
    "CC0210": Page(
        "The node is given shapes that its operator cannot take, so it would fail whenever it runs.",
        "Look at the shapes that the error names, and at the sizes of `--dim` if you gave any. "
        "If onnxruntime runs the model with such inputs, please report it.",
    ),
    "CC0301": Page(
        "The model has a three-dimensional operator (convolution, pooling, normalization, resize … with three spatial "
        "dimensions). A plan has one- and two-dimensional ones only, by design.",
        "Keep that part of the model in onnxruntime. Where a kernel has size 1 along an axis, write it as a "
        "two-dimensional operator, with that axis moved to the batch.",
    ),
    "CC0401": Page(
        "Nodes whose inputs are all constants fail when they are computed: their shapes or values contradict each "
        "other.",
        "Look at the constants of the nodes that the error names; onnxruntime would fail there as well.",
    ),
    "CC0402": Page(
        "The file declares another shape or type for a value than follows from the operators. What follows is used, "
        "and this is only a warning.",
        "Nothing has to be done. `onnx.shape_inference.infer_shapes` writes what is right into a model "
        "from which the declarations were removed.",
    ),
    "CC0403": Page(
        "A size is given (`--dim`) for a dimension that no input of the model has as a symbol.",
        "`candlec inspect MODEL` shows the inputs with their symbols. An unnamed dimension is called by its place: "
        "`--dim image.0=1`.",
    ),
    "CC0404": Page(
        "An output of the model is declared with another element type than the operators give it. "
        "Whoever reads it would get what the declaration does not say, so the model is refused, as by onnxruntime.",
        "Correct the declaration (`model.graph.output[0].type.tensor_type.elem_type`), or put a Cast before the "
        "output. Converters to float16 leave such declarations behind: use their option that keeps input and output "
        "types, or convert again.",
    ),
    "CC0405": Page(
        "Inputs of the model have default values: they are initializers too. A plan has no such inputs, so these are "
        "constants of it, as most exporters mean it, and this is only a warning.",
        "To give them at run time, take them out of `model.graph.initializer`. To be rid of the warning, take them out "
        "of `model.graph.input`.",
    ),
    "CC0501": Page("A pass left the graph broken.", f"{_REPORT} `--passes` without the pass that is named avoids it."),
    "CC0502": Page("The plan that was written is not valid.", f"{_REPORT} `--no-optimize` may avoid it."),
    "CC0503": Page(
        "There is no pass of that name.",
        "`candlec compile --help` lists the names.",
    ),
    "CC0504": Page(
        "The plan does not fit its file format: its description (steps, names, strings) may have 100,000,000 bytes. "
        "Constants of numbers do not count.",
        "`--strip-origins` makes the description smaller. Tables of strings can be looked up outside the model.",
    ),
}
"""Code → the page that `candlec explain` prints."""


def program() -> str:
    """The command line as the user can call it again: `candlec`, or `cc` where that is how it was called.

    One that was called by its path, and is not what the shell finds under its name, keeps the path.
    """
    name = "cc" if os.environ.get("CANDLEC_CALLED_AS") == "cc" else "candlec"
    called = Path(sys.argv[0] if sys.argv else "")
    if called.name != "candlec" or not called.is_file():  # a library, or `python -m compiler`
        return name
    own, found = called.with_name(name), shutil.which(name)
    return name if found and own.exists() and own.samefile(found) else str(own)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The question whether a name of nearly the same spelling was meant; empty where there is none."""
    known = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return f"did you mean {known[near[0]]}?" if near else ""


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
        advice = self.help + ("" if not self.help else " " if self.help.endswith("?") else "; ")
        lines.append(f"  help: {advice}see `{program()} explain {self.code}`")
        return "\n".join(lines)


class Error(Exception):
    """What is wrong with a model, plan, input, run or device; wrong arguments are a `TypeError` or `ValueError`."""


class CompileError(Error):
    """The model is refused. `diagnostics` holds every finding, not only the first.

    `unchecked` are the nodes behind refused ones of which too little is known to say whether they can be compiled.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], unchecked: Iterable[Origin] = ()) -> None:
        self.diagnostics, self.unchecked = list(diagnostics), list(unchecked)
        super().__init__("\n\n".join(map(str, self.diagnostics)))


class PlanError(Error):
    """A plan file cannot be read. `violations` holds every reason."""

    def __init__(self, violations: Iterable[str]) -> None:
        self.violations = list(violations)
        super().__init__("\n".join(self.violations))


class InputError(Error):
    """An input of a run does not fit what the plan declares."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        self.name, self.expected, self.found = name, expected, found
        super().__init__(f"input {name!r}: expected {expected}, found {found}")


class RunError(Error):
    """A step of a run failed.

    `inputs` are its inputs' dtypes and shapes, none where they are not known any more; `within` the blocks of other
    steps that it is in, the outermost first.
    """

    def __init__(
        self, step: int, op: str, inputs: list[str], origin: str, message: str, within: Sequence[str] = ()
    ) -> None:
        self.step, self.op, self.inputs, self.origin = step, op, inputs, origin
        self.message, self.within = message, list(within)
        blocks = "".join(f" in {block}" for block in reversed(self.within))
        given = f"({', '.join(inputs)})" if inputs else ""
        place = f"step {step} {op}{given}{blocks}" + (f" from {origin}" if origin else "")
        super().__init__(f"{place}: {message}")


class DeviceError(Error):
    """A device cannot be used."""
