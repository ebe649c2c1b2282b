"""StringConcat, StringSplit, StringNormalizer, RegexFullMatch: tensors of text."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_CASES: dict[str, ops.Case] = {"NONE": "keep", "LOWER": "lower", "UPPER": "upper"}
_OTHER_CASES = ("az", "lt", "tr")
"""Languages with their own rules for changing case."""


@lowers("StringConcat", newest=20)
def string_concat(node: Node, build: PlanBuilder) -> Value:
    """`StringConcat`."""
    return build(ops.StringConcat(), node.input(0), node.input(1))


@lowers("StringSplit", newest=20)
def string_split(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`StringSplit`; splits at white space without a delimiter."""
    most = node.int("maxsplit", None)
    if most is not None and most < 0:
        node.refuse("CC0202", f"maxsplit {most} is negative")
    op = ops.StringSplit(delimiter=node.string("delimiter", ""), most=most)
    return build(op, node.input(0), outputs=2)


@lowers("StringNormalizer", newest=10)
def string_normalizer(node: Node, build: PlanBuilder) -> Value:
    """`StringNormalizer`, for locales that change case by Unicode's default rules."""
    case = _CASES.get(action := node.string("case_change_action", "NONE"))
    if case is None:
        node.refuse("CC0202", f"StringNormalizer has no case_change_action {action!r}")
    locale = node.string("locale", "")
    if locale.lower().startswith(_OTHER_CASES):
        node.refuse("CC0202", f"StringNormalizer does not support the locale {locale!r}")
    ignore_case = not node.int("is_case_sensitive", 0)
    op = ops.StringNormalizer(case=case, ignore_case=ignore_case, stop_words=node.strings("stopwords", []))
    return build(op, node.input(0))


@lowers("RegexFullMatch", newest=20)
def regex_full_match(node: Node, build: PlanBuilder) -> Value:
    """`RegexFullMatch`."""
    return build(ops.RegexFullMatch(pattern=node.string("pattern")), node.input(0))
