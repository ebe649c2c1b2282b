"""Export of PyTorch modules to ONNX, with named symbolic dims and the origin of each node."""

from __future__ import annotations

import inspect
import logging
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.errors import Error
from compiler.validate import validate_mapping

if TYPE_CHECKING:
    import onnx_ir
    import torch

OLDEST_OPSET = 18
"""The oldest opset. For older ones, PyTorch uses a converter that drops the origins of nodes."""
STACK_TRACE = "pkg.torch.onnx.stack_trace"
INSTALLED = re.compile(r".*/(?=(?:site|dist)-packages/|python3\.\d+/)")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
OTHERS = re.compile(rf"<|{INSTALLED.pattern}")
"""Names of files that are not the user's code."""


class ExportError(Error):
    """PyTorch cannot export a module, or the exported model computes another function.

    If PyTorch refused the module, the exception's `__cause__` is PyTorch's own exception.
    """


@dataclass(frozen=True)
class Exported:
    """A written model, and how the module's arguments and results correspond to its inputs and outputs."""

    path: Path
    inputs: tuple[str | None, ...]
    """For each leaf of `(args, kwargs)`, the name of the model's input; `None` for a constant."""
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    """The names that the outputs have in `program`."""
    program: torch.export.ExportedProgram
    """PyTorch's graph. Its nodes have the names of the model's values."""


def write_model(
    module: torch.nn.Module,
    args: Sequence[Any],
    path: str | Path,
    dynamic: Mapping[str, Mapping[int, str]] | None,
    kwargs: Mapping[str, Any] | None,
    outputs: Sequence[str] | None,
    opset: int | None,
    optimize: bool = False,
) -> Exported:
    """Write the ONNX file of a module without a check. `compiler.export` documents the arguments and errors."""
    _require_torch()
    given = bound(module, args, kwargs)
    shapes = _shapes(given, dynamic) if dynamic else None
    if opset is not None:
        _check_opset(opset)
    with evaluating(module), _logging_hidden():
        program = _program(module, tuple(args), dict(kwargs or {}), shapes, opset, optimize)
    if outputs is not None:
        name_outputs(program.model, outputs)
    for node in program.model.graph.all_nodes():
        if STACK_TRACE in node.metadata_props:
            node.metadata_props[STACK_TRACE] = relative_trace(node.metadata_props[STACK_TRACE], Path.cwd())
    program.save(str(path))
    return _exported(Path(path), program)


def _exported(path: Path, program: torch.onnx.ONNXProgram) -> Exported:
    graph, inner = program.model.graph, program.exported_program
    assert inner is not None  # as always with dynamo=True
    names = {value.name for value in graph.inputs}
    signature = inner.graph_signature
    arguments = [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    results = [
        spec.arg.name
        for spec in signature.output_specs
        if spec.kind.name == "USER_OUTPUT" and not hasattr(spec.arg, "value")  # a constant, which ONNX lacks
    ]
    return Exported(
        path,
        tuple(name if name in names else None for name in arguments),
        tuple(str(value.name) for value in graph.outputs),
        tuple(results),
        inner,
    )


def _require_torch() -> None:
    for name in ("torch", "onnxscript"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            message = f'this needs {name}, which is not installed: run pip install "candle-compiler[export]"'
            raise ModuleNotFoundError(message, name=name) from None


def bound(module: Any, args: Any, kwargs: Any) -> Mapping[str, Any]:
    """The arguments of `forward` by name."""
    import torch

    if not isinstance(module, torch.nn.Module):
        kind = f"the class {module.__name__}" if isinstance(module, type) else type(module).__name__
        raise TypeError(f"module: expected a torch.nn.Module, found {kind}")
    if not isinstance(args, tuple | list):
        raise TypeError(f"args: expected a tuple of the module's arguments, as (x,), found {type(args).__name__}")
    if kwargs is not None:
        validate_mapping("kwargs", kwargs, "a dict of arguments by name")
    try:
        return inspect.signature(module.forward).bind(*args, **(kwargs or {})).arguments
    except TypeError as error:
        given = "args and kwargs" if kwargs else "args"
        raise TypeError(f"{given}: {type(module).__name__}.forward does not accept them: {error}") from None


def _shapes(given: Mapping[str, Any], dynamic: Mapping[str, Mapping[int, str]]) -> dict[str, Any]:
    """`dynamic` in PyTorch's format: an entry for every argument, with the argument's structure."""
    if not isinstance(dynamic, Mapping):
        raise TypeError(f'dynamic: expected a dict, as {{"x": {{0: "batch"}}}}, found {type(dynamic).__name__}')
    if unknown := [name for name in dynamic if name not in given]:
        raise ValueError(f"dynamic: the module has no argument {unknown[0]!r}; its arguments are {', '.join(given)}")
    sizes: dict[str, int] = {}
    return {
        name: _symbols(name, value, dynamic[name], sizes) if name in dynamic else _static(value)
        for name, value in given.items()
    }


def _symbols(name: str, value: Any, dims: Any, sizes: dict[str, int]) -> dict[int, str]:
    """`dims` with nonnegative axes. `sizes` collects the sizes of all names."""
    import torch

    if not isinstance(value, torch.Tensor):
        raise ValueError(f"dynamic: {name!r} is a {type(value).__name__}; only dims of a tensor may vary")
    if not isinstance(dims, Mapping):
        raise TypeError(f'dynamic: {name!r}: expected a dict, as {{0: "batch"}}, found {type(dims).__name__}')
    for axis, symbol in dims.items():
        if not isinstance(axis, int) or not -value.dim() <= axis < value.dim():
            raise ValueError(f"dynamic: {name!r} has {value.dim()} dims, but no dim {axis!r}")
        if not isinstance(symbol, str) or not symbol:
            raise TypeError(f"dynamic: {name!r}: dim {axis}: expected a name, found {symbol!r}")
        size = value.shape[axis]
        if sizes.setdefault(symbol, size) != size:
            raise ValueError(f"dynamic: the dims {symbol!r} have different sizes in args, {sizes[symbol]} and {size}")
    return {axis % value.dim(): symbol for axis, symbol in dims.items()}


def _static(value: Any, leaf: Any = None) -> Any:
    """The structure of `value` with `leaf` in place of each leaf."""
    if hasattr(value, "_fields"):  # a namedtuple; PyTorch would read one with only `None` as a shape
        return type(value)(*(_static(item, {}) for item in value))
    if isinstance(value, tuple | list):
        return type(value)(_static(item, leaf) for item in value)
    if isinstance(value, dict):
        return {key: _static(item, leaf) for key, item in value.items()}
    return leaf


def _check_opset(opset: int) -> None:
    import onnx

    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        raise ValueError(f"opset {opset}: choose one from {OLDEST_OPSET} to {newest}, the newest that onnx knows")


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Put the module into evaluation mode, and restore the mode of each of its parts afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def _logging_hidden() -> Iterator[None]:
    """Hide PyTorch's log messages, because its exception holds the error. TORCH_LOGS shows them again."""
    loggers = [logging.getLogger(name) for name in ("torch", "onnxscript")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(torch|onnxscript|copyreg|contextlib|compiler)\b")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def onnx_program(program: torch.export.ExportedProgram, title: str) -> torch.onnx.ONNXProgram:
    """Translates an exported program to ONNX. `title` names the program in errors. The program stays as it is.

    Raises:
        ModuleNotFoundError: onnxscript is not installed.
        ExportError: PyTorch cannot translate the program.
    """
    _require_torch()
    with _logging_hidden():
        return _translated(title, program, optimize=False)


def _program(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shapes: Any,
    opset: int | None,
    optimize: bool,
) -> torch.onnx.ONNXProgram:
    import torch

    name = type(module).__name__
    program = _translated(
        name, module, args, kwargs=kwargs, dynamic_shapes=shapes, opset_version=opset, optimize=optimize
    )
    nodes = list(program.model.graph.all_nodes())
    if opset is not None and (
        program.model.opset_imports.get("") != opset or (nodes and not any(node.metadata_props for node in nodes))
    ):
        raise ExportError(f"PyTorch {torch.__version__} cannot write {name} in opset {opset}")
    return program


def _translated(title: str, *arguments: Any, **options: Any) -> torch.onnx.ONNXProgram:
    import torch

    try:
        program = torch.onnx.export(*arguments, dynamo=True, verbose=False, **options)
    except Exception as error:
        raise ExportError(f"PyTorch cannot export {title}: {_reason(error)}") from error
    assert program is not None  # as always with dynamo=True
    return program


def _reason(error: BaseException) -> str:
    """The error in one line, with the line of the module's code, and without PyTorch's own advice."""
    import torch

    while isinstance(error, torch.onnx.OnnxExporterError) and error.__cause__ is not None:
        error = error.__cause__
    said = COLOR.sub("", str(error)).strip().partition("\n\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.name == "forward" and not OTHERS.match(each.filename)]
    place = f" ({relative_name(own[-1].filename, Path.cwd())}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {said}{place}"


def name_outputs(model: onnx_ir.Model, names: Sequence[str]) -> None:
    """Name the outputs. An output that is also an input or another output gets an Identity node.

    Raises:
        TypeError, ValueError: the names are not a list of different names, one for each output, or an input has one.
    """
    import onnx_ir
    from onnx_ir.passes.common import NameFixPass

    graph = model.graph
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"outputs: expected a list of names, found {names!r}")
    if len(names) != len(graph.outputs):
        found = ", ".join(str(value.name) for value in graph.outputs)
        raise ValueError(f"outputs: expected a name for each output ({found}), found {len(names)} names")
    if taken := {value.name for value in graph.inputs} & {*names} or {name for name in names if names.count(name) > 1}:
        raise ValueError(f"outputs: an input or another output has the name {taken.pop()!r} too: choose another")
    for index, name in enumerate(names):
        value = graph.outputs[index]
        if value.is_graph_input() or value in graph.outputs[:index]:
            passed = onnx_ir.node("Identity", [value])
            graph.append(passed)
            passed.outputs[0].type, passed.outputs[0].shape = value.type, value.shape
            graph.outputs[index] = value = passed.outputs[0]
        value.name = name
    NameFixPass()(model)


def relative_trace(trace: str, root: Path) -> str:
    """`trace` with its file names relative to `root`, or to the folder of installed packages."""
    return re.sub(r'File "([^"]+)"', lambda found: f'File "{relative_name(found[1], root)}"', trace)


def relative_name(name: str, root: Path) -> str:
    """`site-packages/…` for an installed file; else `name` relative to `root`, or only its last part."""
    path = Path(name)
    if INSTALLED.match(name):
        return INSTALLED.sub("", name)
    if not path.is_absolute():
        return name
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
