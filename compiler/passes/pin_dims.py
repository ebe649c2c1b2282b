"""Replaces symbolic dimensions of the inputs with the numbers that the caller gives."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from compiler.errors import Diagnostic, did_you_mean
from compiler.ir.origin import Origin
from compiler.ir.symbols import shown
from compiler.rewrite.report import Fired, Pass, PassReport

__all__ = ["pin_dims"]


def pin_dims(dims: Mapping[str, int]) -> Pass:
    """The pass that pins these symbols. The name of an unnamed dimension is `input.axis`, as in `image.0`."""

    def pin(model: ir.Model, report: PassReport) -> None:
        """Replaces symbols of the inputs' shapes with numbers."""
        left, known = dict(dims), dict[str, None]()
        for value in model.graph.inputs:
            shape = value.shape
            if shape is None:
                continue
            names = [
                "" if isinstance(dim, int) else shown(dim.value or f"{value.name}.{axis}")
                for axis, dim in enumerate(shape)
            ]
            known.update((name, None) for name in names if name)
            for name in set(names) & set(dims):
                left.pop(name, None)
                report.fired.append(Fired(f"{name} = {dims[name]}", Origin(nodes=(f"input {value.name}",))))
            sizes = [dims.get(name, dim) for name, dim in zip(names, shape, strict=True)]
            value.shape = ir.Shape([None if isinstance(size, int) and size < 0 else size for size in sizes])
        advice = f"the inputs have the dimensions {', '.join(known)}" if known else "all sizes of the inputs are fixed"
        report.refused.extend(
            Diagnostic("CC0403", f"no input has a dimension {name!r}", help=did_you_mean(name, known) or advice)
            for name in left
        )

    return Pass("pin_dims", pin, result="dimensions pinned", needed=True)
