"""Drops Identity nodes and casts to the same type, and replaces CastLike with Cast."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, can_be_renamed, rules_pass

__all__ = ["drop_identities"]


class _DropCopy(Rule):
    """The base of rules whose root returns its first input."""

    def check(self, match: Match) -> str | None:
        """The input can take the name of a graph output: it is no graph input, constant or other output."""
        output = match.root.outputs[0]
        if output.is_graph_output() and not can_be_renamed(output, match["x"]):
            return f"the output {output.name!r} needs a name of its own"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The input itself."""
        return match["x"]


class DropIdentity(_DropCopy):
    """`Identity(x)` → `x`."""

    pattern = Op("Identity", Var("x"))


_NAMES = {int(dtype): dtype.name for dtype in ir.DataType}


class DropCast(_DropCopy):
    """`Cast(x, to=dtype of x)` → `x`."""

    pattern = Op("Cast", Var("x"))

    def check(self, match: Match) -> str | None:
        """The types are known and equal."""
        target = match.root.attributes["to"].as_int()
        if match["x"].dtype != target:
            return f"it casts {match['x'].dtype or 'an unknown type'} to {_NAMES.get(target, target)}"
        return super().check(match)


class DropCastLike(_DropCopy):
    """`CastLike(x, y)` → `x`, if both have the same dtype."""

    pattern = Op("CastLike", Var("x"), Var("like"))

    def check(self, match: Match) -> str | None:
        """The types are known and equal."""
        if match["x"].dtype is None or match["x"].dtype != match["like"].dtype:
            return f"it casts {match['x'].dtype} to {match['like'].dtype}"
        return super().check(match)


class CastLikeToCast(Rule):
    """`CastLike(x, y)` → `Cast(x, to=dtype of y)`, which is constant if `x` is."""

    pattern = Op("CastLike", Var("x"), Var("like"))
    notable = True

    def check(self, match: Match) -> str | None:
        """The type of `y` is known."""
        return "the type of the second input is not known" if match["like"].dtype is None else None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The Cast, with the attributes that it shares."""
        attributes: dict[str, Any] = {**match.root.attributes, "to": int(match["like"].dtype or 0)}
        result: ir.Value = new.op("Cast", match["x"], version=match.root.version, **attributes)
        return result


drop_identities = rules_pass(
    "drop_identities",
    [DropIdentity(), DropCast(), DropCastLike(), CastLikeToCast()],
    result="nodes dropped",
    ensures=frozenset({"stored weights"}),
)
