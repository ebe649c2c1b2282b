"""Diagnostics: problems, origins and advice as data.

The text of a diagnostic has the same form as rustc's::

    error[CC0301]: 3-D convolution is not supported (kernel 3×3×3)
      --> model.py:118 in UNet3D.forward   encoder.0.conv : Conv3d   Conv(node_conv3d)
      help: no kernel computes 3-D operators: `candlec compile --lower-3d` or `Options(lower_3d=True)` replaces it …
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from compiler.ir.origin import Origin
from compiler.ir.symbols import shown

__all__ = [
    "PAGES",
    "CompileError",
    "DeviceError",
    "Diagnostic",
    "Error",
    "ErrorKind",
    "InputError",
    "Page",
    "PlanError",
    "RunError",
    "did_you_mean",
    "program",
]


class Page(NamedTuple):
    """The meaning of a code, and advice."""

    meaning: str
    advice: str


_REPORT = "This is a bug in the compiler, not in the model. Please report it, and attach the model if you can."

PAGES = {
    "CC0101": Page(
        "The file is not a valid ONNX model: it is empty, truncated, damaged, or of another format.",
        "Download or export the model again. The compiler reads only ONNX files. First export a model of another "
        "framework to ONNX (`candlec export` exports PyTorch modules). To run a plan, use `candlec run`.",
    ),
    "CC0102": Page(
        "The compiler cannot read the file: it does not exist, is a folder, or permission is missing.",
        "Check the path and the file's permissions. A relative path starts at the current folder.",
    ),
    "CC0103": Page(
        "The compiler cannot read a file of weights, or the weights do not fit the file: the file is too short, or the "
        "length in the model differs from the size of the weight. Because the compiler does not trust the model, the "
        "file must be in the model's own folder or in a subfolder of it. The compiler refuses an absolute path, a path "
        "or a link that leads out of the folder, and a file with a second name (a hard link).",
        "Copy the .onnx file and all files of weights into one folder, and keep their names and subfolders. A model "
        "passed as bytes has no folder: pass its path. You can store weights of less than 2 GB in the model itself: "
        "`onnx.save(onnx.load(path), one_file)`.",
    ),
    "CC0104": Page(
        "This version of the compiler does not support the model's opset.",
        "Upgrade the onnx package, which defines the opsets, or export the model for an older opset "
        "(`opset_version=…` of torch.onnx.export).",
    ),
    "CC0105": Page(
        "The graph has a cycle: a node depends on its own output through other nodes. ONNX graphs must be acyclic.",
        "Check the inputs of the nodes that the error names: one of them reads a wrong value. "
        "Write a loop with the operators Loop or Scan.",
    ),
    "CC0106": Page(
        "The graph is invalid: a value is used but not defined, a name is defined twice, there is no output, or the "
        "calls of the model's functions are invalid or expand to too many nodes.",
        "Fix the program that wrote or edited the model. `onnx.checker.check_model(path)` also finds such errors.",
    ),
    "CC0107": Page(
        "Model-local functions call each other recursively. ONNX functions must not be recursive.",
        "Write the repetition with Loop or Scan. Another solution is to export the module again without turning its "
        "parts into functions.",
    ),
    "CC0201": Page(
        "The compiler does not support this operator.",
        "`candlec ops` lists the supported operators. Check the spelling and the domain. You can define your own "
        "operator as a model-local function of supported operators, register a function of your own for it "
        "(docs/custom-operators.md), or add it to the compiler: docs/adding-an-operator.md.",
    ),
    "CC0202": Page(
        "An attribute of the node is missing, or its value is not allowed or not supported.",
        "Compare the attribute with the operator's page in the ONNX documentation, then correct the model or export it "
        "again. If the error lists other values, use one of them.",
    ),
    "CC0203": Page(
        "The node has an attribute that the compiler does not read. The attribute may change the result, so the "
        "compiler refuses the node.",
        "If the attribute belongs to another version of the operator, remove it. If the operator's page in the ONNX "
        "documentation lists the attribute for the model's opset, this is a gap in the compiler: please report it.",
    ),
    "CC0204": Page(
        "The compiler supports the node's operator, but not in this version.",
        "Export the model for another opset, such as 20 (`opset_version=20` of torch.onnx.export). "
        "`candlec ops NAME` prints the newest supported version of an operator.",
    ),
    "CC0205": Page(
        "An input or output of the node or of the model is missing, or its element type, its kind (tensor, sequence or "
        "optional) or its rank is not supported.",
        "If the element type is not supported, cast the value to another type (float32, int64) before the node. "
        "Write complex numbers as a last axis of size two. If a size is unknown, `--dim` may set it.",
    ),
    "CC0206": Page(
        "The node is a random Dropout: its `training_mode` is a constant true. This is usually a mistake of an export.",
        "Export in evaluation mode: `module.eval()`. For random runs, make `training_mode` an input of the model.",
    ),
    "CC0207": Page(
        "The compiler and the ONNX standard give different element types for an output of this node. If only the "
        "declaration in the file is wrong, the compiler prints the warning CC0402 instead.",
        "Run `onnx.checker.check_model(path, full_check=True)`. If it reports an error, export the model again. "
        "If it reports none, this is a bug in the compiler: please report it.",
    ),
    "CC0208": Page("ONNX removed the operator, which was experimental.", "Export the model with a current exporter."),
    "CC0209": Page(
        "The registration of a custom operator does not fit the node: the rule for its types fails or returns no "
        "types, an attribute is a graph or a type, or the compiler or the model defines the operator already.",
        "The message names the operator and the types of the node's inputs. Correct the rule that you passed to "
        "`compiler.custom_op`, or leave out the registration: docs/custom-operators.md.",
    ),
    "CC0210": Page(
        "The operator does not accept the shapes of the node's inputs, or the numbers in a constant input: for "
        "example, wrong axes or sizes, an index out of range, or an integer divisor of 0. The node would fail in every "
        "run.",
        "Check the shapes and numbers that the error names, and the sizes of `--dim` if you set any. "
        "If onnxruntime runs the model with such inputs, this is a bug in the compiler: please report it.",
    ),
    "CC0301": Page(
        "The model has an operator with three or more spatial dimensions: a convolution, pooling, batch or instance "
        "normalization, resize or similar operator. By design, plans support only one- and two-dimensional operators.",
        "Compile the model with `--lower-3d` or `Options(lower_3d=True)`. The compiler then replaces most of these "
        "operators with 2-D ones, and lists how many nodes, bytes and multiply-adds it adds. If it cannot replace an "
        "operator, the message gives the reason: run this part of the model in onnxruntime.",
    ),
    "CC0401": Page(
        "All inputs of a node are constants, and its computation fails: for example, a string is not a number. Two "
        "similar cases differ. A number that the operator does not accept, such as an integer divisor of 0 or an "
        "index out of range, is CC0210. A result that is not finite is no error: 1.0 / 0.0 and the inverse of a "
        "singular matrix are infinite or NaN, as in onnxruntime. With `--no-optimize`, the compiler computes only "
        "small integers and booleans, such as shapes and axes. A run computes the other nodes, and may fail. A node "
        "in a branch or a loop may never run, so the compiler reports a near miss instead of an error.",
        "Check the constants of the nodes that the error names. onnxruntime would fail there as well.",
    ),
    "CC0402": Page(
        "The file declares a shape or type for a value, but the compiler infers another one from the operators. This "
        "is only a warning: the compiler ignores the declaration.",
        "To correct the file, remove its declarations, and run `onnx.shape_inference.infer_shapes`.",
    ),
    "CC0403": Page(
        "No input of the model has the symbolic dimension that `--dim` names.",
        "`candlec inspect MODEL` prints the symbols. Name an unnamed dimension by its position: `--dim image.0=1`.",
    ),
    "CC0404": Page(
        "The model declares an element type for an output, but the compiler infers another one from the operators. A "
        "program that reads the output would get a wrong type, so the compiler refuses the model, as onnxruntime does.",
        "Correct the declaration (`model.graph.output[0].type.tensor_type.elem_type`), or insert a Cast before the "
        "output. Converters to float16 have an option that keeps the types of inputs and outputs.",
    ),
    "CC0405": Page(
        "Inputs of the model have default values: they are also initializers. A plan has no such inputs: they become "
        "constants. This is only a warning, because most exporters mean these inputs to be constants.",
        "To pass these inputs at run time, remove them from `model.graph.initializer`. To silence the warning, remove "
        "them from `model.graph.input`.",
    ),
    "CC0406": Page(
        "The option `state` does not fit the model, in one of three ways. It names an output or input that the model "
        "lacks. The input of a pair cannot take the value of the output, because the two differ in element type, rank "
        "or size, or one is not a tensor of numbers. With `auto`, no name of an output matches the name of an input.",
        "`candlec inspect MODEL` prints the inputs and outputs. Name the pairs: `--state 'present.*=past.*'`, or "
        '`Options(state={"present.*": "past.*"})`. If a size along the axis that grows is fixed, for example by '
        "`--dim`, keep its symbol.",
    ),
    "CC0407": Page(
        "The option `keep` names weights that the model lacks. Without this error, the compiler would quantize weights "
        "that you want to keep.",
        "Correct the name. It is the name of a weight, a node or a module, or a part of its path; `*` stands for any "
        "text. `candlec compile MODEL --weights int8 --report report.html` lists the modules and nodes.",
    ),
    "CC0408": Page(
        "The file breaks a rule of ONNX, but onnxruntime runs it: a layer normalization has an attribute that is not "
        "defined for it, or several constants have the same name. This warning says what the compiler assumes.",
        "Correct a misspelled attribute: the plan uses the default value instead. `--strict` refuses such files.",
    ),
    "CC0409": Page(
        "The option `weights` names a file that the compiler cannot read, or whose tensors do not fit the weights of "
        "the model. Without this error, some weights of the plan would not be those of the file.",
        "Give a file of the same model: docs/weights.md says how the compiler finds the tensor of a weight. Export the "
        "model with the names of its modules, as `candlec export` does. `--keep NAME` leaves a weight as it is.",
    ),
    "CC0501": Page(
        "A pass made the graph invalid.",
        f"{_REPORT} To avoid it, use `--skip-pass` with the pass that the error names.",
    ),
    "CC0502": Page("The compiler wrote an invalid plan.", f"{_REPORT} `--no-optimize` may avoid it."),
    "CC0503": Page(
        "There is no pass of that name, or the pass cannot be left out, because every plan needs it.",
        "`candlec compile --help` lists the names.",
    ),
    "CC0504": Page(
        "The plan's description, without numeric constants, is larger than the file format allows: 100,000,000 bytes.",
        "`--strip-origins` makes it smaller. If the model has large tables of strings, look up these outside of it.",
    ),
    "CC0505": Page(
        "A pass of `--passes` requires a fact about the model, such as known shapes, that does not hold when it runs.",
        "Add one of the passes that the error names to `--passes`, or leave out the pass that requires the fact.",
    ),
    "CC0506": Page(
        "A pass or a phase of passes does not end: its rewrites undo each other.",
        f"{_REPORT} To avoid it, use `--skip-pass` with the pass that the error names, or with a pass of the phase.",
    ),
}
"""Code → the page that `candlec explain` prints."""


def program() -> str:
    """The program's name as the user called it: `candlec` or `cc`.

    The name keeps its path if the shell would find another program, or none, under the bare name.
    """
    name = "cc" if os.environ.get("CANDLEC_CALLED_AS") == "cc" else "candlec"
    called = Path(sys.argv[0] if sys.argv else "")
    if called.name != "candlec" or not called.is_file():  # the package is a library, or runs as `python -m compiler`
        return name
    own, found = called.with_name(name), shutil.which(name)
    return name if found and own.exists() and own.samefile(found) else str(own)


def did_you_mean(name: str, names: Iterable[str], least: float = 0.75) -> str:
    """A question that suggests a known name with a similar spelling; an empty string if there is none.

    `least` is the similarity of the name, between 0 and 1 (`difflib.SequenceMatcher.ratio`). Short names need a lower
    value, because one wrong letter is a large part of them.
    """
    known = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=least)
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
        object.__setattr__(self, "message", shown(self.message))  # with the model's names of dimensions

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.origin:
            lines.append(f"  --> {self.origin}")
        return "\n".join([*lines, f"  help: {self.advice}"])

    @property
    def advice(self) -> str:
        """The help, and the command that explains the code."""
        advice = self.help + ("" if not self.help else " " if self.help.endswith("?") else "; ")
        return f"{advice}see `{program()} explain {self.code}`"


class Error(Exception):
    """A problem with a model, plan, input, run or device. Wrong arguments raise `TypeError` or `ValueError` instead.

    Errors can be pickled, so that they reach other processes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(kind: type[Error], arguments: tuple[Any, ...]) -> Error:
    """The error without its attributes, which pickle sets."""
    error = kind.__new__(kind)
    error.args = arguments
    return error


class CompileError(Error):
    """The compiler refuses the model. `diagnostics` holds every finding, not only the first.

    `unchecked` lists nodes that follow refused nodes. The compiler knows too little about their inputs to judge them.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], unchecked: Iterable[Origin] = ()) -> None:
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        self.unchecked: list[Origin] = list(unchecked)
        super().__init__("\n\n".join(map(str, self.diagnostics)))


ErrorKind = Literal[
    "not_a_plan",
    "damaged",
    "version",
    "invalid",
    "file",
    "input",
    "op",
    "limit",
    "memory",
    "device",
    "setting",
    "interrupted",
    "timed_out",
    "threads",
    "state",
    "state_file",
    "weights",
    "custom_op",
]
"""The names of the kinds of the runtime's errors (`ErrorKind` in runtime/plan/src/error.rs, which describes them)."""


class PlanError(Error):
    """A plan is invalid. `violations` holds every reason.

    `kind` is `not_a_plan` (the file has another format), `damaged`, `version` (the plan is newer than the runtime),
    `invalid` (it breaks the rules of the format), `file` (the file cannot be read, or changed meanwhile), `memory`
    (the host has too little memory for the plan) or `custom_op` (it needs an operator that is not registered).
    """

    def __init__(self, violations: Iterable[str], kind: ErrorKind = "invalid") -> None:
        self.violations: list[str] = list(violations)
        self.kind: ErrorKind = kind
        super().__init__("\n".join(self.violations))


class InputError(Error):
    """An input of a run does not fit the plan's declaration. A `message` replaces the usual text of the error."""

    kind: ErrorKind = "input"
    name: str
    expected: str
    found: str

    def __init__(self, name: str, expected: str, found: str, message: str = "") -> None:
        self.name, self.expected, self.found = name, expected, found
        super().__init__(message or f"input {name!r}: expected {expected}, found {found}")


class RunError(Error):
    """A step of a run failed.

    `inputs` holds the dtypes and shapes of its inputs, and is empty if these are no longer known. `within` lists the
    blocks of other steps that contain it, outermost first. `kind` is `op` (the step refuses its inputs), `limit` (it
    exceeds a limit that all kernels have by design), `memory` (the host lacks memory, or the run would exceed
    `max_memory`), `device` (the GPU fails, or lacks memory or a kernel) or `setting` (the step cannot run with the
    value of an environment variable).
    """

    step: int
    op: str
    inputs: list[str]
    origin: str
    message: str
    within: list[str]
    kind: ErrorKind

    def __init__(
        self,
        step: int,
        op: str,
        inputs: list[str],
        origin: str,
        message: str,
        within: Sequence[str] = (),
        kind: ErrorKind = "op",
    ) -> None:
        self.step, self.op, self.inputs, self.origin = step, op, inputs, origin
        self.message, self.within, self.kind = message, list(within), kind
        blocks = "".join(f" in {block}" for block in reversed(self.within))
        given = f"({', '.join(inputs)})" if inputs else ""
        place = f"step {step} {op}{given}{blocks}" + (f" from {origin}" if origin else "")
        super().__init__(f"{place}: {message}")


class DeviceError(Error):
    """A device cannot be used as the caller requests, or fails outside of a step.

    `kind` is `device`, or `op`, `limit` or `memory` if the runtime refuses a value without a step.
    """

    def __init__(self, message: str, kind: ErrorKind = "device") -> None:
        self.kind: ErrorKind = kind
        super().__init__(message)
