import numpy as np
import pytest

import compiler
from tests.scratch.row import rows


def text(*items):
    return np.array(items, object)


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 3), (2, 1), ()])
def test_concat(check_node, shape):
    y = np.full(shape, "ü", object)
    check_node("StringConcat", [text("a", "", "b c"), y], opset=20, rtol=0, atol=0)


@pytest.mark.parametrize("delimiter", [None, "", " ", ",", ", "])
@pytest.mark.parametrize("most", [None, 0, 1, 2])
def test_split(check_node, delimiter, most):
    attributes = ({} if delimiter is None else {"delimiter": delimiter}) | ({} if most is None else {"maxsplit": most})
    inputs = [text("  a b  c ,d  ", "", "   ", "a,,b, c").reshape(2, 2)]
    check_node("StringSplit", inputs, opset=20, attributes=attributes, outputs=2, rtol=0, atol=0)


NORMALIZED = [
    ({}, ["Monday", "TUESDAY", "Straße"]),
    ({"stopwords": ["Monday"], "is_case_sensitive": 1}, ["TUESDAY", "Straße"]),
    ({"stopwords": ["monday"], "case_change_action": "UPPER"}, ["TUESDAY", "STRASSE"]),
    ({"stopwords": ["monday"], "is_case_sensitive": 1, "case_change_action": "LOWER"}, ["monday", "tuesday", "straße"]),
    ({"stopwords": ["monday", "tuesday", "straße"], "locale": "de_DE"}, [""]),
]


@pytest.mark.parametrize(("attributes", "expected"), NORMALIZED)
def test_normalizer(check_node, attributes, expected):
    # onnxruntime needs the system's locales, which are rarely installed.
    x, y = text("Monday", "TUESDAY", "Straße"), text(*expected)
    check_node("StringNormalizer", [x], opset=10, attributes=attributes, rtol=0, atol=0, expected=[y])
    rows = {"rtol": 0, "atol": 0, "expected": [y.reshape(1, -1)]}
    check_node("StringNormalizer", [x.reshape(1, 3)], opset=10, attributes=attributes, **rows)


PATTERNS = [
    r"www\.[\w.-]+\.com",
    r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
    r"[^a-c]*",
    r"\d{2,3}",
    "(?i)É|x*",
    "",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regex_full_match(check_node, pattern):
    inputs = [text("www.google.com", "account@gmail.com", "123", "é", "xX", "", "abc").reshape(7, 1)]
    check_node("RegexFullMatch", inputs, opset=20, attributes={"pattern": pattern}, rtol=0, atol=0)


REFUSED = [
    ("RegexFullMatch", {"pattern": "("}, "pattern"),
    ("StringNormalizer", {"locale": "tr_TR"}, "locale"),
    ("StringNormalizer", {"case_change_action": "TITLE"}, "case_change_action"),
    ("StringSplit", {"maxsplit": -1}, "maxsplit"),
]


@pytest.mark.parametrize(("op_type", "attributes", "message"), REFUSED)
def test_refused(node_model, op_type, attributes, message):
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(node_model(op_type, [text("a")], opset=20, attributes=attributes))


SCRATCH = [
    *rows("string", "T[k] x", 'y = RegexFullMatch<pattern = "[1-4]">(x)', k=200_000),
    *rows("string", "T[k] x, T[k] z", "y = OP(x, z)", "StringConcat Equal", k=200_000),
    *rows("string", "T[k] x", 'y = StringNormalizer<case_change_action = "UPPER">(x)', k=200_000),
    *rows(
        "string",
        "T[k] x",
        'w = Constant<value_string = " a word">() v = StringConcat(x, w) y, z = StringSplit(v)',
        k=100_000,
    ),
]
