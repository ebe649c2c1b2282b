"""Small models with a state, and runs that feed their outputs back by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser

import compiler

Array = np.ndarray[Any, Any]

CACHE = """(float[batch, heads, n, 4] x, float[batch, heads, past, 4] past_x, float[batch, 4] state)
    => (float[batch, heads, n, total] y, float[batch, heads, total, 4] present_x, float[batch, 4] state_out) {
    present_x = Concat <axis = 2> (past_x, x)
    t = Transpose <perm = [0, 1, 3, 2]> (present_x)
    s = MatMul (x, t)
    y = Softmax (s)
    m = ReduceMean <keepdims = 0> (x, axes)
    scaled = Mul (state, half)
    state_out = Add (scaled, m)
}"""
"""Attention of the new rows to all rows, whose number grows, and a mean that fades."""
PAIRS = {"present_x": "past_x", "state_out": "state"}


def model_of(text: str, **constants: Any) -> onnx.ModelProto:
    """A model in ONNX's text syntax, without its header and name."""
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    for name, value in constants.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    return made


def cache_model() -> onnx.ModelProto:
    return model_of(CACHE, axes=np.array([1, 2]), half=np.float32(0.5))


def cache_plan(**options: Any) -> compiler.Plan:
    """The plan of `CACHE`, with a state."""
    return compiler.compile(cache_model(), compiler.Options(**{"state": "auto", **options}))


def rows(step: int, count: int = 1, batch: int = 1) -> dict[str, Array]:
    """The inputs of a run of `CACHE`."""
    drawn = np.random.default_rng(step).standard_normal((batch, 2, count, 4), np.float32)
    return {"x": drawn}


FIRST = {"past_x": np.zeros((1, 2, 0, 4), np.float32), "state": np.zeros((1, 4), np.float32)}
"""The values with which a state of `CACHE` begins."""
STEPS = [rows(0, 5), *(rows(step) for step in range(1, 9)), rows(9, 3)]
"""The inputs of some runs of `CACHE`."""


def fed_back(
    session: compiler.Session, pairs: Mapping[str, str], first: Mapping[str, Any], inputs: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The outputs of runs that begin with the values `first`, each fed with the outputs of the run before it."""
    held = dict(first)
    for given in inputs:
        outputs = session.run({**given, **held})
        held = {target: outputs[source] for source, target in pairs.items()}
        yield outputs


def expected(
    session: compiler.Session, steps: Iterable[Mapping[str, Any]], first: Mapping[str, Any] = FIRST
) -> list[dict[str, Any]]:
    """The outputs of runs of `CACHE` that are fed back by hand."""
    return list(fed_back(session, PAIRS, first, steps))


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Check that two runs gave the same bits."""
    assert list(found) == list(expected)
    for name, value in found.items():
        value, other = np.asarray(value), np.asarray(expected[name])
        assert (value.dtype, value.shape) == (other.dtype, other.shape), name
        assert value.tobytes() == other.tobytes(), name


def merged_decoder(heads: int, size: int) -> str:
    """A decoder with an If: attention to the new rows and the past, or only to the negative new rows.

    The last step fails if `pick` is not an index of an element.
    """
    new, past, total = (f"float[1, {heads}, {length}, {size}]" for length in ("n", "past", "total"))
    return f"""<ir_version: 11, opset_import: ["": 23]> m
    ({new} q, {new} k, {new} v, bool[1] use_cache_branch, int64[1] pick,
     {past} past_key, {past} past_value)
    => (float[1, {heads}, n, 1] z, {total} present_key, {total} present_value) {{
    y, present_key, present_value = If (use_cache_branch) <
        then_branch = later () => ({new} a, {total} b, {total} c) {{
            b = Concat <axis = 2> (past_key, k)
            c = Concat <axis = 2> (past_value, v)
            a = Attention (q, b, c)
        }},
        else_branch = first () => ({new} d, {new} e, {new} f) {{
            e = Neg (k)
            f = Neg (v)
            d = Attention (q, e, f)
        }}>
    z = Gather <axis = 3> (y, pick)
}}"""
