"""The node AppendRows of `candle.plan` against its definition."""

import numpy as np
import onnx.parser
import pytest

import compiler
from tests.scratch.row import integers, rows

RANDOM = np.random.default_rng(5)


def model_of(cache="float[B, 2, P, 3]", new="float[B, 2, S, 3]", lengths="int64[B]", total="int64[1]"):
    kind = cache.partition("[")[0]
    return onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20, "candle.plan" : 1]>
        agraph ({cache} cache, {new} new, {lengths} lengths, {total} total) => ({kind}[B, 2, T, 3] y) {{
            y = candle.plan.AppendRows (cache, new, lengths, total)
        }}
    """)


def appended(cache, new, lengths, total):
    """The rows of the definition, one by one."""
    rows = max(cache.shape[2], total)
    y = np.zeros((*cache.shape[:2], rows, cache.shape[3]), cache.dtype)
    for batch, length in enumerate(lengths):
        kept = min(length, cache.shape[2])
        y[batch, :, :kept] = cache[batch, :, :kept]
        y[batch, :, length : length + new.shape[2]] = new[batch]
    return y


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    ("held", "rows", "lengths", "total"),
    [(4, 1, [4, 4], 5), (8, 1, [3, 5], 6), (2, 3, [0, 1], 4), (1, 1, [4, 3], 6), (0, 4, [0, 0], 4), (3, 0, [2, 0], 0)],
)
def test_rows_follow_others(held, rows, lengths, total, dtype, optimize):
    cache, new = (10 * RANDOM.standard_normal((2, 2, size, 3)) for size in (held, rows))
    cache, new = cache.astype(dtype), new.astype(dtype)
    kind = {"float32": "float", "float16": "float16", "int8": "int8"}[dtype]
    model = model_of(f"{kind}[B, 2, P, 3]", f"{kind}[B, 2, S, 3]")
    plan = compiler.compile(model, compiler.Options(optimize=optimize))
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]] == ["AppendRows"]
    feeds = {"cache": cache, "new": new, "lengths": np.array(lengths), "total": np.array([total])}
    found = compiler.load(plan, threads=1).run(feeds)["y"]
    np.testing.assert_array_equal(found, appended(cache, new, lengths, total))


@pytest.mark.parametrize(("lengths", "total"), [([5], 5), ([-1], 5), ([2**62], 5), ([0], -1)])
def test_rows_beyond_the_end_are_an_error(lengths, total):
    session = compiler.load(compiler.compile(model_of()), threads=1)
    new = np.zeros((1, 2, 1, 3), np.float32)
    feeds = {"cache": new, "new": new, "lengths": np.array(lengths), "total": np.array([total])}
    with pytest.raises(compiler.RunError, match=r"do not fit a cache of|is not a shape"):
        session.run(feeds)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"new": "float16[B, 2, S, 3]"}, "new is float16"),
        ({"new": "float[B, 2, S, 4]"}, r"rows of shape \[\?, 2, \?, 4\] do not fit a cache"),
        ({"cache": "float[B, 3]", "new": "float[B, 3]"}, "a cache has at least 3 dimensions"),
        ({"lengths": "int32[B]"}, "n is int32"),
        ({"lengths": "int64[B, 1]"}, "n must have 1 dimension"),
        ({"cache": "float[2, 2, P, 3]", "new": "float[2, 2, S, 3]", "lengths": "int64[3]"}, "does not fit a cache"),
        ({"cache": "string[B, 2, P, 3]", "new": "string[B, 2, S, 3]"}, "a cache of strings is not supported"),
    ],
)
def test_operands_that_do_not_fit_are_refused(given, reason):
    with pytest.raises(compiler.CompileError, match=reason):
        compiler.compile(model_of(**given))


SCRATCH = [
    *rows(
        "float float16 int8",
        "T[1, 8, p, 64] x, T[1, 8, q, 64] z, int64[1] a, int64[1] b",
        "y = candle.plan.AppendRows(x, z, a, b)",
        p=4000,
        q=500,
        a=integers(4000),
        b=integers(4500),
    ),
]
