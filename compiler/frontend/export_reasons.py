"""Why PyTorch cannot export a module: the reason in one line, its place in the module's code, and the usual cure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from compiler.frontend.source_lines import is_own, relative_name

if TYPE_CHECKING:
    import torch

__all__ = ["Reason", "line_of", "reason_of", "titled"]

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_MORE = re.compile(r"\n\n|\s*Please feel free to request support|\s*\[Caused by the value")
"""Where PyTorch's messages go on with advice for its own developers, graphs and traces."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_OPERATOR = re.compile(r"op='([\w.]+)', overload='(\w+)'")
_BRANCH = (
    "a branch in the code depends on the value of a tensor: write torch.where or torch.cond instead of `if`, or move "
    "the decision out of the module"
)
_SIZE = (
    "a size or a number depends on the value of a tensor: pass it as an int argument, take it from a shape, or state "
    "its range with torch._check"
)
_CURES = (
    (r"extract specialized integer|unbacked", _SIZE),
    (r"[Dd]ata-dependent|[Dd]ynamic control flow|guard on", _BRANCH),
    (
        r"[Cc]onstraints violated|specialized|not in range|suggested fixes",
        "do not name this dim as one that may vary, or only the sizes that the module accepts",
    ),
    (
        r"complex",
        "ONNX has no complex numbers: compute with real and imaginary parts, as torch.view_as_real gives them",
    ),
    (
        r"set the storage of a tensor|resize",
        "the code gives a tensor other memory (resize_, set_ or out=): write it with operators that make new tensors, "
        "also in place of a layer that does this, such as torch.nn.CrossMapLRN2d",
    ),
    (
        r"autograd|Function",
        "write the function of torch.autograd.Function with differentiable operators, as its forward does",
    ),
)
"""Patterns of PyTorch's messages → the usual cures."""


@dataclass(frozen=True)
class Reason:
    """PyTorch's reason, and the module and line of Python that caused it; empty if unknown."""

    said: str
    module: str
    line: str
    cure: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.module, self.line) if part)
        return f"{self.said} ({place})" if place else self.said


def reason_of(error: BaseException, module: torch.nn.Module | None) -> Reason:
    """The reason of an error that the exporter raised for a module. The module is unknown for an exported program."""
    import torch

    chain = list(_causes(error))
    inner = next((each for each in chain if not isinstance(each, torch.onnx.OnnxExporterError)), chain[-1])
    node = next((found for each in chain if (found := _node(each)) is not None), None)
    text = _MORE.split(_COLOR.sub("", str(inner)).strip())[0]
    said = f"{type(inner).__name__}: {text}"
    operator = _OPERATOR.search(text) or _OPERATOR.search(repr(getattr(node, "target", "")))
    where = _place_of_node(node) if node is not None else _place_of_frames(chain, module)
    if where == ("", "") and (run := next((found for each in chain if (found := _running(each))), None)) is not None:
        where = _place_of_node(run)
    if node is None or operator is None:
        return Reason(said, *where, _cure(said))
    name = f"{operator[1]}.{operator[2]}".removesuffix(".default")
    lacks = isinstance(inner, torch.onnx.OnnxExporterError)  # a DispatchError, which has no cause
    said = f"it does not translate {name} to ONNX" + ("" if lacks else f": {said}")
    return Reason(said, *where, _cure_of_operator(operator[1], operator[2], text, is_module=module is not None))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _cure(said: str) -> str:
    return next((cure for pattern, cure in _CURES if re.search(pattern, said, re.DOTALL)), "")


def _cure_of_operator(operator: str, overload: str, said: str, is_module: bool) -> str:
    """The cure for an operator without translation. Only an export of a module takes functions of the caller's."""
    if "complex" in said:
        return _cure("complex")
    table = f"custom_translation_table={{torch.ops.{operator}.{overload}: …}}"
    way = f"give its ONNX function with {table}"
    if not is_module:
        way = f"export the module with compiler.export(…, {table}), which takes its ONNX function"
    advice = f"write it with other operators, or {way}"
    own = "" if operator.startswith(("aten.", "prims.")) else ", which compiler.custom_op lets a plan call"
    return advice + (f": a node of your own{own}" if own else "")


def _node(error: BaseException) -> Any:
    """The node of PyTorch's graph that the exporter was translating."""
    import torch

    for frame in _frames(error):
        if isinstance(node := frame.f_locals.get("node"), torch.fx.Node):
            return node
    return None


def _running(error: BaseException) -> Any:
    """The node of a captured graph that PyTorch was running."""
    import torch

    for frame in _frames(error):
        if frame.f_code.co_name == "run_node" and isinstance(node := frame.f_locals.get("n"), torch.fx.Node):
            return node
    return None


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _place_of_node(node: torch.fx.Node) -> tuple[str, str]:
    """The module with the path and class of its innermost part, and the innermost line of its code."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    name = kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
    path = str(path).removeprefix("L['self']").strip(".")
    frames = [found for found in _FRAME.findall(node.meta.get("stack_trace") or "") if is_own(found[0])]
    return titled(path, name), line_of(*frames[-1]) if frames else ""


def _place_of_frames(chain: list[BaseException], module: torch.nn.Module | None) -> tuple[str, str]:
    """The same from the frames of the run that captured the graph."""
    import torch

    names = {id(part): name for name, part in module.named_modules()} if module is not None else {}
    part, line = "", ""
    for error in reversed(chain):
        trace = error.__traceback__
        while trace is not None:
            code, owner = trace.tb_frame.f_code, trace.tb_frame.f_locals.get("self")
            if isinstance(owner, torch.nn.Module) and id(owner) in names:
                part = titled(names[id(owner)], type(owner).__name__)
            if part and is_own(code.co_filename):
                line = line_of(code.co_filename, trace.tb_lineno, code.co_name, owner)
            trace = trace.tb_next
        if line:
            break
    return part, line


def titled(path: str, kind: str) -> str:
    """The path and the class of a module, or one of them."""
    return f"{path} : {kind}" if path and kind else path or kind


def line_of(file: str, number: int | str, function: str, owner: Any = None) -> str:
    """The place of a line of Python, without the folders of the machine. `owner` is the object of a method."""
    kind = "" if owner is None else f"{type(owner).__name__}."
    return f"{relative_name(file, Path.cwd())}:{number} in {kind}{function}"
