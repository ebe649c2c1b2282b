"""The origin of a node: the ONNX nodes, the PyTorch module and the Python line.

`record` writes the origin of every node of a loaded model into the node's metadata, so that passes may rename and merge
nodes. A pass that replaces nodes calls `inherit`: the new nodes get the origins of all nodes that they replace.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["Origin", "common_prefix", "inherit", "of", "record"]

_KEY = "candle_plan.origin"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_SCRIPTED_FRAME = re.compile(r"^(?P<file>.+\.py)\((?P<line>\d+)\): (?P<function>\S+)$", re.MULTILINE)
_LIBRARY = re.compile(r"(site|dist)-packages/|(^|/)torch/|<(frozen|string)")
_NO_MODULE = "_empty_nn_module_stack"
_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True)
class Origin:
    """The nodes, such as `Conv(encoder.0.conv)`, the module's path and class, and the source line; empty if unknown."""

    nodes: tuple[str, ...] = ()
    module: str = ""
    layer: str = ""
    source: str = ""

    def __str__(self) -> str:
        module = f"{self.module} : {self.layer}" if self.module and self.layer else self.module
        return "   ".join(part for part in (self.source, module, " + ".join(self.nodes)) if part)


class Frame(NamedTuple):
    """A line of a stack trace, and the class of the module whose `forward` contains it."""

    file: str
    line: str
    function: str
    owner: str


def of(node: ir.Node) -> Origin:
    """The origin of a node."""
    text = node.metadata_props.get(_KEY)
    if text is None:
        return Origin(nodes=(_title(node),))
    return _read(text)


@lru_cache(maxsize=1 << 12)
def _read(text: str) -> Origin:
    fields = json.loads(text)
    return Origin(**{**fields, "nodes": tuple(fields["nodes"])})


def inherit(new: Iterable[ir.Node], old: Sequence[ir.Node]) -> None:
    """Gives every new node the merged origins of all old nodes."""
    texts = {node.metadata_props.get(_KEY) for node in old}
    text = texts.pop() if len(texts) == 1 else None
    if text is None:
        text = _text(_merge([of(node) for node in old]))
    for node in new:
        node.metadata_props[_KEY] = text


def record(model: ir.Model) -> None:
    """Records the origin of every node without one."""
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    nodes = [node for graph in graphs for node in graph.all_nodes()]
    nodes = [node for node in nodes if _KEY not in node.metadata_props]
    frames = [_frame(node) for node in nodes]
    root = _project_root([frame.file for frame in frames if frame])
    for node, frame in zip(nodes, frames, strict=True):
        node.metadata_props[_KEY] = _text(Origin((_title(node),), *_module(node), _source(frame, root)))


def _text(origin: Origin) -> str:
    return _ENCODER.encode(vars(origin))


def _title(node: ir.Node) -> str:
    name = node.name or next((value.name for value in node.outputs if value.name), "")
    return f"{node.op_type}({name})"


def _merge(origins: Sequence[Origin]) -> Origin:
    nodes = tuple(dict.fromkeys(name for origin in origins for name in origin.nodes))
    modules = [origin.module.split(".") for origin in origins if origin.module]
    module = ".".join(common_prefix(modules))
    layers = {origin.layer for origin in origins if origin.module == module}
    source = next((origin.source for origin in origins if origin.source), "")
    return Origin(nodes, module, layers.pop() if len(layers) == 1 else "", source)


def common_prefix(paths: Sequence[Sequence[str]]) -> list[str]:
    """The parts with which all paths begin."""
    prefix = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        prefix.append(parts[0])
    return prefix


def _frame(node: ir.Node) -> Frame | None:
    """The innermost frame of the stack trace in the user's code."""
    trace = node.metadata_props.get("pkg.torch.onnx.stack_trace", "").replace("\\", "/")
    frames = [match.group("file", "line", "function") for match in _FRAME.finditer(trace)] or _scripted_frames(node)
    own = [index for index, frame in enumerate(frames) if not _LIBRARY.search(frame[0])]
    if not own:
        return None
    file, line, function = frames[own[-1]]
    return Frame(file, line, function, _owner(node, frames, own[-1]))


def _scripted_frames(node: ir.Node) -> list[tuple[str, ...]]:
    """The stack trace that the TorchScript exporter writes with `verbose=True`. It begins with the innermost frame."""
    trace = (node.doc_string or "").replace("\\", "/")
    return [match.group("file", "line", "function") for match in _SCRIPTED_FRAME.finditer(trace)][::-1]


def _owner(node: ir.Node, frames: Sequence[tuple[str, ...]], index: int) -> str:
    """The class of the module whose `forward` is frame `index`. Each enclosing module has one such frame."""
    forwards = [at for at, frame in enumerate(frames) if frame[2] == "forward"]
    classes = _names(node, "pkg.torch.onnx.class_hierarchy")[:-1]
    if len(forwards) != len(classes) or index not in forwards:
        return ""
    return classes[forwards.index(index)].rsplit(".", 1)[-1]


def _project_root(files: Sequence[str]) -> str:
    """The common folder of all absolute paths. Paths relative to it reveal nothing about the machine."""
    folders = sorted({str(PurePosixPath(file).parent) for file in files if PurePosixPath(file).is_absolute()})
    try:
        return os.path.commonpath(folders) if folders else ""
    except ValueError:
        return ""


def _source(frame: Frame | None, root: str) -> str:
    if frame is None:
        return ""
    path = PurePosixPath(frame.file)
    if path.is_absolute():
        path = path.relative_to(root) if root and path.is_relative_to(root) else PurePosixPath(path.name)
    return f"{path}:{frame.line} in {frame.owner + '.' if frame.owner else ''}{frame.function}"


def _module(node: ir.Node) -> tuple[str, str]:
    """The module's path and class."""
    scopes = _names(node, "pkg.torch.onnx.name_scopes")[:-1]
    classes = _names(node, "pkg.torch.onnx.class_hierarchy")[:-1]
    inner = [(path, name.rsplit(".", 1)[-1]) for path, name in zip(scopes, classes, strict=False) if path]
    if inner and not inner[-1][0].startswith(_NO_MODULE):
        return inner[-1]
    return _scripted_module(node), ""


def _names(node: ir.Node, key: str) -> list[str]:
    text = node.metadata_props.get(key)
    if text is None:
        return []
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def _scripted_module(node: ir.Node) -> str:
    """The module's path from a node name of the TorchScript exporter: `/encoder/0/pool/MaxPool`."""
    name = node.name or ""
    return ".".join(name.strip("/").split("/")[:-1]) if name.startswith("/") else ""
