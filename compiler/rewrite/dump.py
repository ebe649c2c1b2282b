"""Writes the graph after each pass as an ONNX file, to look at."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, graphs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compiler.rewrite.report import PassReport

__all__ = ["Dump"]

_LEAST = 1024
"""The size in bytes from which a weight is in a file of its own."""
_WEIGHTS = "weights"


class Dump:
    """Writes files such as `003-fold_constants.onnx` to a folder: after the first pass, and after each change.

    Each large weight is a file in the subfolder `weights`, once for all graphs. Viewers such as Netron open the files.
    Other runtimes do not run those with fused nodes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._files: dict[
            int, tuple[ir.TensorProtocol, str]
        ] = {}  # keeps the tensors, so that no new one has their ids

    def __call__(self, report: PassReport, model: ir.Model) -> None:
        """Write the graph, if the pass has changed it.

        Raises:
            OSError: a file cannot be written.
        """
        self._count += 1
        if self._count > 1 and not report.changed:
            return
        with self._weights_outside(model):
            proto = ir.to_proto(model)
        if any(node.domain == PLAN_DOMAIN for node in proto.graph.node):
            proto.opset_import.add(domain=PLAN_DOMAIN, version=1)
        path = self._folder / f"{self._count:03}-{report.name}.onnx"
        path.write_bytes(proto.SerializeToString())

    @contextmanager
    def _weights_outside(self, model: ir.Model) -> Iterator[None]:
        """Replace large weights with references to files as long as the context lasts."""
        weights = [
            (value, value.const_value)
            for graph in graphs_of(model.graph)
            for value in graph.initializers.values()
            if value.const_value is not None and value.const_value.nbytes >= _LEAST
        ]
        try:
            for value, tensor in weights:
                value.const_value = self._outside(tensor)
            yield
        finally:
            for value, tensor in weights:
                value.const_value = tensor

    def _outside(self, tensor: ir.TensorProtocol) -> ir.ExternalTensor:
        """A reference to the file of a weight, which is written at its first use."""
        if id(tensor) not in self._files:
            location = f"{_WEIGHTS}/{len(self._files):04}.bin"
            (self._folder / _WEIGHTS).mkdir(exist_ok=True)
            (self._folder / location).write_bytes(tensor.tobytes())
            self._files[id(tensor)] = tensor, location
        _, location = self._files[id(tensor)]
        shape = ir.Shape(tensor.shape.numpy())  # of numbers, as of every weight
        return ir.ExternalTensor(
            location, 0, tensor.nbytes, tensor.dtype, shape=shape, name=tensor.name or "", base_dir=self._folder
        )
