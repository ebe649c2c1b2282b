"""Sequences, control flow, strings and the rest."""

from __future__ import annotations

import numpy as np

from tests.scratch.row import KEEP, KEPT, ONE, rows

PARTS = {"n": 6000, "k": np.int64(8)}
CUT = "q = SplitToSequence<axis = 0>(x, k)"
BODY = "(T[a, b] v) => (T[a, b] w) { w = Neg(v) }"
GRAMS = (
    'y = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1,'
    " ngram_counts = [0, 2], ngram_indexes = [0, 1, 2],"
)

OTHERS = [
    *rows("int64", "T k", "y = OP(k)", "BlackmanWindow HammingWindow HannWindow", k=np.int64(1_000_000)),
    *rows("float", KEEP, f"y = OP<shape = [1536, 1536]>() {KEPT}", "RandomNormal RandomUniform"),
    *rows("float", ONE, "y = Multinomial<sample_size = 1000>(x)"),
    *rows("float double", "T[k, n, 1] x", "y = DFT(x)", k=400, n=2000),
    *rows("float", "T[1, k, 1] x, int64 a, int64 b", "y = DFT(x, a, b)", k=400_009, a=np.int64(400_009), b=np.int64(1)),
    *rows("float", "T[1, k, 1] x, int64 a, T[400] w", "y = STFT(x, a, w)", k=500_000, a=np.int64(100)),
    *rows(
        "int64",
        "T a, T b, T c, float d, float e",
        "y = MelWeightMatrix(a, b, c, d, e)",
        a=np.int64(400),
        b=np.int64(8192),
        c=np.int64(16000),
        d=np.float32(0),
        e=np.float32(8000),
    ),
    *rows("float uint8", "T[n, m] x, int64 k", "q = SplitToSequence<axis = 1>(x, k) s = SequenceLength(q)", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} y = OP(q, k)", "SequenceAt", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} y = ConcatFromSequence<axis = OP>(q)", "0 1", **PARTS | {"n": 1600}),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = OP(q, k) s = SequenceLength(r)", "SequenceErase", **PARTS),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = SequenceInsert(q, x, k) s = SequenceLength(r)", **PARTS),
    *rows("float", ONE, "q = SequenceConstruct(x, x) s = SequenceLength(q)"),
    *rows("float", ONE, "e = SequenceEmpty() q = SequenceInsert(e, x) s = SequenceLength(q)"),
    *rows("float", "T[n, m] x, int64 k", f"{CUT} r = SequenceMap<body = b {BODY}>(q) s = SequenceLength(r)", **PARTS),
    *rows("float", ONE, "o = Optional(x) y = OptionalGetElement(o)"),
    *rows("float", ONE, "o = Optional(x) y = OptionalHasElement(o)"),
    *rows(
        "float",
        "T[n, m] x, bool k",
        "y = If(k) <then_branch = t () => (T[a, b] u) { u = Neg(x) },"
        " else_branch = e () => (T[a, b] v) { v = Abs(x) }>",
        k=np.array(True),
    ),
    *rows(
        "float",
        "T[n, m] x, int64 k",
        "z, y = Loop(k, , x) <body = b (int64 i, bool d, T[a, b] v) => (bool e, T[a, b] w, T[a, b] u)"
        " { e = Identity(d) w = Neg(v) u = Exp(w) }>",
        k=np.int64(4),
    ),
    *rows("float", ONE, "y = Scan<num_scan_inputs = 1, body = b (T[a] v) => (T[a] w) { w = Neg(v) }>(x)"),
    *rows("string", "T[k] x", 'y = RegexFullMatch<pattern = "[1-4]">(x)', k=200_000),
    *rows("string", "T[k] x, T[k] z", "y = OP(x, z)", "StringConcat Equal", k=200_000),
    *rows("string", "T[k] x", 'y = StringNormalizer<case_change_action = "UPPER">(x)', k=200_000),
    *rows(
        "string",
        "T[k] x",
        'w = Constant<value_string = " a word">() v = StringConcat(x, w) y, z = StringSplit(v)',
        k=100_000,
    ),
    *rows("int32 int64", f"T[k] x, {KEEP}", f"{GRAMS} pool_int64s = [1, 2, 2, 3]>(x) {KEPT}", k=500_000),
    *rows("string", f"T[k] x, {KEEP}", f'{GRAMS} pool_strings = ["1", "2", "2", "3"]>(x) {KEPT}', k=200_000),
    *rows(
        "int64", "T[k] x", "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_int64s = [1, 2]>(x)", k=1_000_000
    ),
    *rows(
        "string", "T[k] x", 'y = ai.onnx.ml.LabelEncoder<keys_strings = ["1"], values_strings = ["one"]>(x)', k=200_000
    ),
]
