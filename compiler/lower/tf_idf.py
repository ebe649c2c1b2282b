"""TfIdfVectorizer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("TfIdfVectorizer", newest=9)
def tf_idf_vectorizer(node: Node, build: PlanBuilder) -> Value:
    """`TfIdfVectorizer`: the counts of n-grams, transformed as `mode` requires."""
    mode, columns = node.string("mode"), node.ints("ngram_indexes")
    if mode not in ("TF", "IDF", "TFIDF") or not columns or min(columns) < 0:
        node.refuse("CC0202", f"TfIdfVectorizer has no mode {mode!r} with ngram_indexes {columns}")
    op = ops.TfIdfVectorizer(
        shortest=_count(node, "min_gram_length", 1),
        longest=_count(node, "max_gram_length", 1),
        max_skips=_count(node, "max_skip_count", 0),
        columns=max(columns) + 1,
    )
    words, begins = _pool(node), node.ints("ngram_counts")
    for length, (begin, end) in enumerate(pairwise([*begins, len(words)]), 1):
        if not 0 <= begin <= end or (end - begin) % length:
            node.refuse("CC0202", f"words {begin} to {end} of TfIdfVectorizer's pool do not form {length}-grams")
    pool, starts = build.constant(words), build.constant(np.array(begins, np.int64))
    counts = build(op, node.input(0), pool, starts, build.constant(np.array(columns, np.int64)))
    weights = _weights(node, columns)
    if mode == "TF":
        return counts
    if mode == "IDF":
        counts = converted(build, converted(build, counts, "bool"), "float32")
    return counts if weights is None else build(ops.Binary(function="Mul"), counts, build.constant(weights))


def _count(node: Node, name: str, least: int) -> int:
    count = node.int(name)
    if count < least:
        node.refuse("CC0202", f"TfIdfVectorizer's {name} is {count}, less than {least}")
    return count


def _pool(node: Node) -> np.ndarray:
    numbers, texts = node.ints("pool_int64s", None), node.strings("pool_strings", None)
    if (numbers is None) == (texts is None):
        node.refuse("CC0202", "TfIdfVectorizer needs one of pool_int64s and pool_strings")
    return np.array(texts, object) if numbers is None else np.array(numbers, np.int64)


def _weights(node: Node, columns: list[int]) -> np.ndarray | None:
    """The weight of each column. The standard orders weights by n-gram, onnxruntime by column: both must agree."""
    given = node.floats("weights", None)
    if not given:
        return None
    if len(given) != len(columns):
        node.refuse("CC0202", f"TfIdfVectorizer has {len(given)} weights for {len(columns)} n-grams")
    by_column = np.zeros(max(columns) + 1, np.float32)
    by_column[columns] = given
    if len(by_column) != len(given) or not np.array_equal(by_column, np.array(given, np.float32)):
        node.refuse("CC0202", "TfIdfVectorizer's weights are in another order than the columns of its n-grams")
    return by_column
