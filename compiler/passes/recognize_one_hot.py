"""Replaces products of one-hot vectors and a table with Gather; JAX and TensorFlow write embeddings this way."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass

__all__ = ["recognize_one_hot"]

_INTEGERS = {ir.DataType.INT32, ir.DataType.INT64}
_VERSION = 13
"""The version of the new operators."""


class OneHotProductToGather(Rule):
    """`MatMul(Cast(Equal(x, [0, …, n - 1])), w)` → `Gather([w; 0], Clip(x, -1, n))`, where `x` is `[…, 1]`.

    If `x` is no class, the product is zero. Then the indices -1 and `n` select the row of zeros appended to `w`.
    """

    pattern = Op("MatMul", Op("Cast", Op("Equal", Var("x"), Const("classes"), name="equal"), name="cast"), Const("w"))

    def check(self, match: Match) -> str | None:
        """The classes are 0, …, n - 1 along the last axis, and the table holds finite numbers of the product's type."""
        x, classes, w = match["x"], match.constant("classes"), match.constant("w")
        size, shape = rank(x), x.shape
        if x.dtype not in _INTEGERS or size is None or shape is None or size < max(classes.ndim, 2):
            return "the indices are not signed integers of known rank"
        if shape.dims[-1] != 1 or classes.shape[-1:] != (classes.size,):
            return "it does not compare one index with every class"
        if not np.array_equal(classes.reshape(-1), np.arange(classes.size)):
            return "the classes are not counted from 0"
        if w.ndim != 2 or match["w"].dtype != match.node("cast").outputs[0].dtype or not np.isfinite(w).all():
            return "it is not a table of finite numbers"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The rows at the indices, which are clipped to the extended table first."""
        x, w = match["x"], match.constant("w")
        places = np.dtype(np.int32 if x.dtype == ir.DataType.INT32 else np.int64).type
        least, most = (new.constant(places(bound), "bound") for bound in (-1, len(w)))
        inside = new.op("Clip", x, least, most, version=_VERSION)
        inside = new.op("Squeeze", inside, new.constant(np.array([-1]), "axes"), version=_VERSION)
        table = new.constant(np.concatenate([w, np.zeros_like(w[:1])]), "table")
        return new.op("Gather", table, inside, version=_VERSION, axis=0)


recognize_one_hot = rules_pass(
    "recognize_one_hot",
    [OneHotProductToGather()],
    result="one-hot products replaced",
    requires=frozenset({"shapes"}),
)
