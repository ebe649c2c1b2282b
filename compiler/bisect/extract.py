"""A small model of one step of a plan, with its inputs and a program that compares it with onnxruntime."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from compiler.accuracy.intermediate import intermediate_values
from compiler.accuracy.reference import ReferenceFailed
from compiler.accuracy.verify import verify
from compiler.atomic_files import write_whole
from compiler.custom_modules import imported_modules
from compiler.errors import CompileError, InputError, RunError
from compiler.frontend.load import load_model
from compiler.ir.graph import graph_attributes, graphs_of
from compiler.options import Options
from compiler.pipeline import compile_stored

if TYPE_CHECKING:
    from pathlib import Path

    from compiler.bisect.error import WrongResult
    from compiler.frontend.load import Source

__all__ = ["Extracted", "extract_step"]

MODEL, INPUTS, PROGRAM, WEIGHTS = "step.onnx", "step.npz", "replay.py", "step.data"
MOST_INSIDE = 256 << 20
"""The most bytes of weights in the file of a small model. Larger ones are in a file of their own."""

_PROGRAM = '''\
"""Compares the plan of {model} with onnxruntime: `python {program}`. The exit code is 1 if they are different."""
from pathlib import Path

import numpy as np

import compiler
{custom}
model = Path(__file__).parent / "{model}"
with np.load(model.with_name("{inputs}")) as arrays:
    plan, inputs = compiler.compile(model, compiler.Options({options})), dict(arrays)
report = compiler.verify(model, plan, inputs{arguments})
for each in report.outputs:
    print(f"{{each.name}}: {{each.verdict}}, the largest difference is {{each.max_abs:.3g}}")
raise SystemExit(0 if report.ok else 1)
'''


@dataclass(frozen=True)
class Extracted:
    """The files of a small model, or the reason why there are none.

    `differs` says whether its plan is different from onnxruntime's result too.
    """

    files: tuple[Path, ...] = ()
    differs: bool = False
    problem: str = ""


def extract_step(
    model: Source,
    found: WrongResult,
    folder: Path,
    *,
    threads: int | None = None,
    tolerance: float | None = None,
) -> Extracted:
    """Write the part of the model that computes the value of `found.step`, into an existing folder.

    The part begins at the nearest values that the plan has too. If its plan is right, the part begins at the inputs of
    the model. onnxruntime computes the values, node by node.

    Raises:
        CompileError, ReferenceFailed: the model cannot be read, or onnxruntime cannot run it.
        OSError: a file cannot be written.
    """
    assert found.step is not None
    written = Extracted(problem="the value of the step, or an input, is not an array of numbers")
    trials = [replace(found.options, dims={})]
    if found.culprit is not None:
        trials.insert(0, Options(lower_3d=found.options.lower_3d))
    for begin in dict.fromkeys((found.before, ())):
        part = _part(model, found, begin)
        if part is None:
            continue
        for options in trials:
            written = _written(folder, part, options, threads, tolerance)
            if written.differs:
                return written
    return written


@dataclass(frozen=True)
class _Part:
    """A part of a model, and the values of its inputs."""

    model: ir.Model
    inputs: Mapping[str, Any]


def _part(model: Source, found: WrongResult, begin: tuple[str, ...]) -> _Part | None:
    """The part that computes the value of the step from values of `begin`, or from the model's inputs.

    It is `None` if one of these values cannot be in an `.npz` file, or if the step computes a sequence.
    """
    loaded = load_model(model).model
    assert found.step is not None
    graph, name = loaded.graph, found.step.output.name
    last = next((value for node in graph for value in node.outputs if value.name == name), None)
    if last is None:  # an item of a sequence
        return None
    first = _inputs_of(last, {*begin, *(value.name or "" for value in graph.inputs)}, graph)
    computed = [*(value for value in first if value.producer() is not None), last]
    expected = dict(found.inputs) | intermediate_values(
        model, found.inputs, lambda _: [value.name or "" for value in computed]
    )
    given = {value.name or "": expected.get(value.name or "") for value in first}
    if not all(map(_is_saved, given.values())):
        return None
    small = ir.Model(ir.convenience.extract(graph, first, [last]), ir_version=loaded.ir_version)
    small.functions.update(loaded.functions)
    small.opset_imports.update(loaded.opset_imports)
    for value in (*small.graph.inputs, *small.graph.outputs):
        if isinstance(array := expected.get(value.name or ""), np.ndarray):
            value.type, value.shape = ir.TensorType(_kind_of(value, array)), ir.Shape(array.shape)
    return _Part(small, given)


def _is_saved(value: Any) -> bool:
    """Whether an `.npz` file keeps the value as it is: an array of a dtype that NumPy has, without objects."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin == 1 and value.dtype != object


def _kind_of(value: ir.Value, array: np.ndarray[Any, Any]) -> ir.DataType:
    """The declared element type of a value, or else that of its array."""
    return ir.DataType.STRING if array.dtype == object else value.dtype or ir.DataType.from_numpy(array.dtype)


def _inputs_of(last: ir.Value, begin: set[str], graph: ir.Graph) -> list[ir.Value]:
    """The values of `begin` that `last` depends on directly, and not only through another value of `begin`."""
    first, seen, waiting = list[ir.Value](), {last}, list(_read_by(last, graph))
    while waiting:
        value = waiting.pop()
        if value in seen or value.is_initializer():
            continue
        seen.add(value)
        if value.name in begin:
            first.append(value)
        else:
            waiting.extend(_read_by(value, graph))
    return first


def _read_by(value: ir.Value, graph: ir.Graph) -> Iterator[ir.Value]:
    """The values of the graph that the producer of a value reads, also in its nested graphs."""
    node = value.producer()
    if node is None:
        return
    nested = (each for body in graph_attributes(node) for inner in graphs_of(body) for each in inner)
    for reader in (node, *nested):
        yield from (each for each in reader.inputs if each is not None and each.graph is graph)


def _written(folder: Path, part: _Part, options: Options, threads: int | None, tolerance: float | None) -> Extracted:
    """The files of a part. They replace those of another trial."""
    paths = tuple(folder / name for name in (MODEL, INPUTS, PROGRAM))
    paths += _saved(part.model, paths[0])
    with zipfile.ZipFile(paths[1], "w") as archive:  # `numpy.savez` would take some names for its own arguments
        for name, array in part.inputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    arguments = {"threads": threads, "tolerance": tolerance}
    text = "".join(f", {name}={value}" for name, value in arguments.items() if value is not None)
    given = {"options": _text(options), "arguments": text, "custom": _imports()}
    program = _PROGRAM.format(model=MODEL, inputs=INPUTS, program=PROGRAM, **given)
    write_whole(paths[2], program.encode())
    try:
        plan = compile_stored(paths[0], options)
        report = verify(paths[0], plan, part.inputs, threads=threads, tolerance=tolerance)
    except (CompileError, InputError, ReferenceFailed, RunError) as error:
        return Extracted(paths, problem=str(error).partition("\n")[0])
    return Extracted(paths, not report.ok)


def _saved(model: ir.Model, path: Path) -> tuple[Path, ...]:
    """Save a model, and return the files that belong to it: that of large weights."""
    weights = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    if sum(weight.nbytes for weight in weights) <= MOST_INSIDE:
        ir.save(ir.external_data.load_to_model(model), path)
        return ()
    ir.save(model, path, external_data=WEIGHTS, max_workers=1)
    return (path.with_name(WEIGHTS),)


def _imports() -> str:
    """The lines that import the modules of custom operators; empty without modules."""
    modules = imported_modules()
    lines = ["import sys", "from compiler.custom_modules import import_custom"] if modules else []
    for module in modules:
        lines += [f"sys.path.insert(0, {module.folder!r})", f"import_custom({module.name!r})"]
    return "".join(f"{line}\n" for line in lines)


def _text(options: Options) -> str:
    """The arguments of `Options`."""
    given = ["lower_3d=True"] if options.lower_3d else []
    if not options.optimize:
        return ", ".join(["optimize=False", *given])
    return ", ".join([*([] if options.passes is None else [f"passes={list(options.passes)}"]), *given])
