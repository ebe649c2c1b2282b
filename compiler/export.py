"""PyTorch → ONNX, with all that the compiler can use: symbolic dims by name, and where each node came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

STACK_TRACE = "pkg.torch.onnx.stack_trace"
INSTALLED = re.compile(r".*/(?=(?:site|dist)-packages/|python3\.\d+/)")


def export(
    module: torch.nn.Module,
    args: Sequence[Any],
    path: str | Path,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    opset: int | None = None,
    optimize: bool = False,
) -> Path:
    """Export `module`, called with `args`, to the ONNX file `path`, and return the path.

    `dynamic` names the dims that may vary: `{"x": {0: "batch", 2: "time"}}`; equal names mean equal sizes. `outputs`
    names the outputs. The names of Python files in the stack traces are made relative to the working folder, so that
    the file does not tell where it was made. The exporter's own optimiser is off by default: it leaves a fused node
    with the origin of one of its parts, and the compiler's passes do the same work.

    Needs PyTorch: `pip install "candle-compiler[export]"`.
    """
    import onnx_ir
    import torch

    shapes = {name: dict(dims) for name, dims in dynamic.items()} if dynamic else None
    program = torch.onnx.export(
        module.eval(), tuple(args), dynamo=True, dynamic_shapes=shapes, output_names=outputs, opset_version=opset,
        optimize=optimize, verbose=False,
    )  # fmt: skip
    if program is None:
        raise RuntimeError("torch.onnx.export returned no program")
    model = program.model
    for node in model.graph.all_nodes():
        if STACK_TRACE in node.metadata_props:
            node.metadata_props[STACK_TRACE] = relative_trace(node.metadata_props[STACK_TRACE], Path.cwd())
    onnx_ir.save(model, path)
    return Path(path)


def relative_trace(trace: str, root: Path) -> str:
    """`trace` with its file names relative to `root`, or to the folder of installed packages."""
    return re.sub(r'File "([^"]+)"', lambda found: f'File "{relative_name(found[1], root)}"', trace)


def relative_name(name: str, root: Path) -> str:
    """`site-packages/…` for an installed file, else `name` relative to `root`, or its last part alone."""
    path = Path(name)
    if INSTALLED.match(name):
        return INSTALLED.sub("", name)
    if not path.is_absolute():
        return name
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
