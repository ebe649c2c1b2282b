"""The weights that an option leaves as they are, such as those that the option `keep` names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.rewrite.pattern import Match

__all__ = ["KeptWeights"]

_LEAST = 1024
"""Weights with fewer elements stay as they are: they take little memory."""
_SEPARATORS = re.compile(r"[./()\s]+")


class KeptWeights:
    """The names of weights that stay unchanged, and the names among them that fit a weight."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = patterns
        self._matched: set[str] = set()

    def reason(self, match: Match, dtypes: Collection[ir.DataType]) -> str | None:
        """Why the weights `w` of a match stay as they are; `None` if they may change.

        They change if they are finite, large enough, and of one of these types, and if no pattern names them.
        """
        weights = match["w"]
        if self.names(match.root, weights):
            return "the option `keep` names them"
        if weights.dtype not in dtypes:
            return f"the weights are {weights.dtype}"
        array = match.constant("w")
        if array.size < _LEAST:
            return f"the weights have fewer than {_LEAST} elements"
        return None if np.isfinite(array).all() else "a weight is not finite"

    def names(self, node: ir.Node, weights: ir.Value) -> bool:
        """Whether a pattern matches a name of a node's weights: their own, or one of the node or of its module."""
        place = origin.of(node)
        names = [name for name in (weights.name, node.name, place.module, *place.nodes) if name]
        found = {pattern for pattern in self.patterns if any(_is_named(name, pattern) for name in names)}
        self._matched |= found
        return bool(found)

    def check_names(self) -> None:
        """Check that each pattern has named weights.

        Raises:
            CompileError: one has not.
        """
        if unknown := [pattern for pattern in self.patterns if pattern not in self._matched]:
            raise CompileError([Diagnostic("CC0407", f"no weight has the name {each!r}") for each in unknown])


def _is_named(name: str, pattern: str) -> bool:
    """Whether a pattern with `*` matches a name, or a part of its path, such as `lm_head` of `model.lm_head.weight`."""
    return fnmatchcase(name, pattern) or any(fnmatchcase(part, pattern) for part in _SEPARATORS.split(name) if part)
