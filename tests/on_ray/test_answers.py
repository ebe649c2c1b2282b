"""Requests whose rows run together, and the bodies of requests and responses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import compiler
from compiler import Error
from compiler.batch.declared import Value
from compiler.ray.answers import Answers
from compiler.ray.messages import BINARY, JSON, packed, unpacked
from tests.batch.plans import FIXED, LINES, LOOKUP, TOKENS, plan_of, ramp


class Counted:
    """A session that notes the number of rows of each run."""

    def __init__(self, graph: str) -> None:
        self._session = compiler.load(plan_of(graph), threads=1)
        self.inputs, self.outputs = self._session.inputs, self._session.outputs
        self.rows: list[int] = []

    def run(self, arrays: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
        self.rows.append(len(next(iter(arrays.values()))))
        return self._session.run(arrays, outputs)


def answers(graph: str, most: int) -> tuple[Answers, Counted]:
    session = Counted(graph)
    return Answers(session, None, most), session  # type: ignore[arg-type]


def test_rows_of_several_requests_run_together() -> None:
    found, session = answers(LINES, 8)
    requests = [found.checked({"x": ramp(count) + count}) for count in (1, 3, 2, 8, 5)]
    results = found.of(requests)
    assert session.rows == [6, 8, 5]
    for count, result in zip((1, 3, 2, 8, 5), results, strict=True):
        assert not isinstance(result, Error)
        np.testing.assert_array_equal(result["y"], 2 * (ramp(count) + count))


def test_a_bad_row_disturbs_no_other_request() -> None:
    found, _ = answers(LOOKUP, 8)
    rows = ([0, 1], [2, 9, 1], [2])
    first, second, third = found.of([found.checked({"i": np.array(each)}) for each in rows])
    assert isinstance(second, Error) and str(second).startswith("row 1: step ")
    assert not isinstance(first, Error) and not isinstance(third, Error)
    assert (first["y"].tolist(), third["y"].tolist()) == ([10, 20], [30])


def test_requests_of_several_shapes_run_apart() -> None:
    found, session = answers(TOKENS, 8)
    given = [np.ones((1, size), np.int64) for size in (3, 5, 3)]
    results = found.of([found.checked({"ids": each}) for each in given])
    assert session.rows == [2, 1]
    assert [each["y"].shape for each in results if not isinstance(each, Error)] == [(1, 3), (1, 5), (1, 3)]


def test_a_plan_with_a_fixed_size_repeats_a_row() -> None:
    found, session = answers(FIXED, 32)
    (result,) = found.of([found.checked({"x": ramp(3)})])
    assert session.rows == [4] and not isinstance(result, Error)
    np.testing.assert_array_equal(result["y"], 2 * ramp(3))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, r"input 'x': expected rows of float32 \[2\], found nothing"),
        ({"x": ramp(2), "z": ramp(2)}, "there is no input 'z': the inputs are x"),
        ({"x": ramp(2)[0]}, r"found float32 \[2\]"),
        ({"x": ramp(2).astype(np.float64)}, r"found float64 \[2, 2\]"),
        ({"x": ramp(0)}, "the request has 0 rows, and may have 1 to 8"),
        ({"x": ramp(9)}, "the request has 9 rows, and may have 1 to 8"),
    ],
)
def test_requests_that_do_not_fit_are_refused(arrays: Any, said: str) -> None:
    found, _ = answers(LINES, 8)
    with pytest.raises(Error, match=said):
        found.checked(arrays)


def value(dtype: str) -> dict[str, Value]:
    return {"x": Value("x", dtype, (2,), "x")}


@pytest.mark.parametrize(
    ("dtype", "lists"),
    [("float32", [[1, 2.5]]), ("int8", [[1, -128]]), ("uint64", [[0, 2**62]]), ("bool", [[True, False]])],
)
def test_json_bodies(dtype: str, lists: Any) -> None:
    found = unpacked(json.dumps({"x": lists}).encode(), JSON, value(dtype))
    assert found["x"].dtype == np.dtype(dtype)
    assert json.loads(packed(found, JSON)) == {"x": lists}


def test_binary_bodies_and_strings() -> None:
    found = unpacked(save({"x": ramp(2)}), BINARY, value("float32"))
    np.testing.assert_array_equal(load(packed(found, BINARY))["x"], ramp(2))
    words = unpacked(b'{"x": [["a", "b"]]}', JSON, value("string"))
    assert words["x"].dtype == object and json.loads(packed(words, JSON)) == {"x": [["a", "b"]]}


@pytest.mark.parametrize(
    ("body", "dtype", "said"),
    [
        (b"{", "float32", "the body is not JSON"),
        (b"[1]", "float32", "the body is no JSON object"),
        (b'{"x": [[1, 2], [3]]}', "float32", "its lists have several sizes"),
        (b'{"x": [["1", "2"]]}', "float32", "its lists hold other values"),
        (b'{"x": [[1, 2.5]]}', "int32", "its lists hold other values"),
        (b'{"x": [[1, 300]]}', "uint8", "a number is outside the range of uint8"),
        (b'{"x": [[1, 1e39]]}', "float32", "a number is outside the range of float32"),
        (b'{"x": [[1, 2]]}', "bfloat16", "send application/octet-stream"),
    ],
)
def test_json_bodies_that_do_not_fit_are_refused(body: bytes, dtype: str, said: str) -> None:
    with pytest.raises(Error, match=said):
        unpacked(body, JSON, value(dtype))


def test_other_bodies_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Error, match=r"cannot read body.safetensors"):
        unpacked(b"12345678901", BINARY, value("float32"))
    with pytest.raises(Error, match="the output 'y' is not finite, which JSON cannot express"):
        packed({"y": np.array([np.inf])}, JSON)
