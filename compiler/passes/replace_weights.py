"""Replaces the weights of a model by the tensors of a file, which the option `weights` names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir import origin
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.stored.file import WeightFile
from compiler.rewrite.stored.fit import Blocks
from compiler.rewrite.stored.fitting import fits_of
from compiler.rewrite.stored.parameters import parameters_of, set_elements

__all__ = ["replace_weights"]


def replace_weights(path: str, keep: Sequence[str]) -> Pass:
    """The pass that gives weights the elements of a file, but not those with a name in `keep`.

    It records the matrices of codes for the pass `keep_blocks`.
    """

    def apply(model: ir.Model, report: PassReport) -> None:
        file, kept = WeightFile(path), KeptWeights(keep)
        blocks = model.meta[Blocks.KEY] = Blocks(file)
        for fit in fits_of(parameters_of(model), file, kept):
            rows, value = fit.rows(file), fit.parameter.value
            array = np.ascontiguousarray(rows.T if fit.transposed else rows)
            blocks.add(fit, array)
            set_elements(value, array)
            note = f"{fit.tensor}, {file.tensors[fit.tensor].kind}"
            report.fired.append(
                Fired("ReplaceWeights", origin.of(fit.parameter.readers[0]), note, weights=value.name or "")
            )
        kept.check_names()

    return Pass("replace_weights", apply, result="weights replaced", needed=True, requires=frozenset({"inlined"}))
