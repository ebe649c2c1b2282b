"""Refuses operators with three spatial dimensions."""

from __future__ import annotations

import onnx_ir as ir

from compiler._runtime import MOST_WINDOW_AXES
from compiler.errors import program
from compiler.ir.graph import nodes_of
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.spatial import refusal, spatial_dims

__all__ = ["reject_3d"]

_UNLOWERED = frozenset(["DeformConv", "MaxUnpool"])
"""The operators that no pass lowers."""


def _reject_3d(model: ir.Model, report: PassReport) -> None:
    """Refuses all operators with three or more spatial dimensions."""
    opset = model.opset_imports.get("", 1)
    for node in nodes_of(model):
        if (count := spatial_dims(node, opset)) > MOST_WINDOW_AXES:
            lowers = node.op_type not in _UNLOWERED
            rule = f"no kernel computes {count}-D operators"
            cure = f": `{program()} compile --lower-3d` or `Options(lower_3d=True)` replaces it with 2-D ones"
            advice = f"{rule}{cure if lowers else ''}"
            report.refused.append(refusal(node, count, advice))


reject_3d = Pass("reject_3d", _reject_3d, result="nodes refused", requires=frozenset({"shapes"}), needed=True)
