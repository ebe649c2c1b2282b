"""TfIdfVectorizer against onnxruntime."""

import numpy as np
import pytest

import compiler
from tests.scratch.row import KEEP, KEPT, rows

EXACT = {"rtol": 0, "atol": 0}
NUMBERS = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
}
WORDS = {"pool_strings": ["a", "b", "c", "a", "b", "b", "c", "a", "b", "c"], "ngram_counts": [0, 3, 7]}
WORDS |= {"ngram_indexes": [3, 0, 1, 2, 5, 4]}


def limits(shortest, longest, skips):
    return {"min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("shortest", "longest", "skips"), [(1, 1, 0), (2, 2, 0), (2, 2, 5), (1, 2, 5)])
def test_numbers(check_node, shortest, longest, skips, mode):
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    attributes = {"mode": mode, **NUMBERS, **limits(shortest, longest, skips)}
    weighted = attributes | {"weights": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}
    for given in (attributes, weighted):
        check_node("TfIdfVectorizer", [x], opset=9, attributes=given, **EXACT)
        check_node("TfIdfVectorizer", [x.reshape(-1).astype(np.int32)], opset=9, attributes=given, **EXACT)


@pytest.mark.parametrize("case", [(1, 3, 0), (1, 3, 2), (3, 3, 1), (2, 3, 4)], ids=str)
def test_words(check_node, case):
    x = np.array([list("abcabc"), list("?aabbc"), list("cxbxa?")], object)
    attributes = {"mode": "TF", **WORDS, **limits(*case)}
    check_node("TfIdfVectorizer", [x], opset=9, attributes=attributes, **EXACT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "FT"}, "no mode"),
        ({"pool_strings": ["a"]}, "one of pool_int64s and pool_strings"),
        ({"mode": "IDF", "weights": [1.0]}, "1 weights for 7"),
        ({"mode": "IDF", "weights": [1, 2, 3, 4, 5, 6, 7.0], "ngram_indexes": [1, 0, 2, 3, 4, 5, 6]}, "another order"),
    ],
)
def test_refusals(node_model, changes, message):
    attributes = {"mode": "TF", **NUMBERS, **limits(1, 2, 0), **changes}
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(node_model("TfIdfVectorizer", [np.arange(4)], opset=9, attributes=attributes))


GRAMS = (
    'y = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1,'
    " ngram_counts = [0, 2], ngram_indexes = [0, 1, 2],"
)

SCRATCH = [
    *rows("int32 int64", f"T[k] x, {KEEP}", f"{GRAMS} pool_int64s = [1, 2, 2, 3]>(x) {KEPT}", k=500_000),
    *rows("string", f"T[k] x, {KEEP}", f'{GRAMS} pool_strings = ["1", "2", "2", "3"]>(x) {KEPT}', k=200_000),
]
