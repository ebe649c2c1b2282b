"""`compiler.ray.Predictor` outside of Ray: columns, kept columns, and errors that name the row; batches by memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler import Error, InputError, RunError
from compiler.batch import largest_batch
from compiler.ray import Predictor
from tests.batch.plans import FIXED, LINES, LOOKUP, TABLES, TOKENS, WORDS, plan_of, ramp


def objects(*rows: Any) -> np.ndarray[Any, Any]:
    """A column of lists, as Ray gives it."""
    array = np.empty(len(rows), object)
    array[:] = rows
    return array


def test_the_outputs_and_the_kept_columns() -> None:
    predictor = Predictor(plan_of(LINES), columns={"x": "points"}, keep=["id"], threads=1)
    found = predictor({"points": ramp(5), "id": np.arange(5)})
    assert list(found) == ["id", "y"] and predictor.session.threads == 1
    np.testing.assert_array_equal(found["y"], 2 * ramp(5))
    np.testing.assert_array_equal(found["id"], np.arange(5))
    empty = predictor({"points": ramp(0), "id": np.arange(0)})
    assert (empty["y"].shape, empty["y"].dtype) == ((0, 2), np.float32)


@pytest.mark.parametrize("count", [1, 4, 11])
def test_a_plan_with_a_fixed_size_takes_batches_of_any_size(count: int) -> None:
    np.testing.assert_array_equal(Predictor(plan_of(FIXED))({"x": ramp(count)})["y"], 2 * ramp(count))


@pytest.mark.parametrize(
    ("graph", "name", "column", "expected"),
    [
        (LINES, "x", objects(*ramp(3)), 2 * ramp(3)),
        (LINES, "x", objects([1, 2], [3, 4]).astype(object), [[2, 4], [6, 8]]),
        (TABLES, "x", objects(*np.ones((2, 6), np.float32)), -np.ones((2, 2, 3))),
        (TABLES, "x", objects(objects([1.0, 2, 3], [4, 5, 6])), [[[-1, -2, -3], [-4, -5, -6]]]),
        (LINES, "x", np.ones((3, 2), np.float16), np.full((3, 2), 2.0)),
        (WORDS, "s", np.array(["a", "ö"]), ["a", "ö"]),
        (WORDS, "s", np.array(["a", "ö"], object), ["a", "ö"]),
    ],
    ids=["lists", "Python's lists", "flat lists", "nested lists", "an exact conversion", "text", "strings"],
)
def test_columns_become_inputs(graph: str, name: str, column: Any, expected: Any) -> None:
    found = Predictor(plan_of(graph), cast=True)({name: column})["y"]
    np.testing.assert_array_equal(found, np.asarray(expected, found.dtype))


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ({"y": ramp(2)}, "there is no column 'x': the columns are y; `columns` names the columns of inputs"),
        ({"x": ramp(2), "z": ramp(2)}, r"the column 'z' is no input: drop it, keep it \(`keep`\), or map it"),
        ({"x": ramp(2).astype(np.float64)}, "elements of float64, and the input 'x' takes float32: a conversion may"),
        ({"x": np.ones((4, 3), np.float32)}, r"rows of the shape \[3\], and a row of the input 'x' is float32 \[2\]"),
        ({"x": objects([1.0, 2.0], [1.0])}, r"row 1 of the batch: the column 'x' has the shape \[1\], and row 0 has"),
        ({"x": objects([1.0, 2.0], None)}, "row 1 of the batch: the column 'x' is null, holds null, or holds lists"),
        ({"x": objects([1.0, 2.0], [None, 2.0])}, "row 1 of the batch: the column 'x' is null"),
        ({"x": objects([1.0, 2.0], [1, 2])}, "rows of several dtypes"),
    ],
)
def test_columns_that_do_not_fit_are_refused(batch: Any, said: str) -> None:
    with pytest.raises(Error, match=said):
        Predictor(plan_of(LINES))(batch)


def test_errors_name_the_row() -> None:
    predictor = Predictor(plan_of(LOOKUP), keep=["id"])
    batch = {"i": np.array([0, 2, 7, 1, 8]), "id": np.arange(70, 75)}
    with pytest.raises(Error, match=r"^row 2 of a batch of 5 \(id = 72\): step .*Gather.* has 2 bad rows$"):
        predictor(batch)
    graph = LINES.replace("float", "int8")
    with pytest.raises(Error, match=r"^row 1 of a batch of 2: a number of 'x' is outside the range of int8$"):
        Predictor(plan_of(graph), cast=True)({"x": np.array([[1, 2], [3, 300]])})


def test_names_are_checked_before_the_first_batch() -> None:
    with pytest.raises(Error, match="the column 'y' has the name of an output"):
        Predictor(plan_of(LINES), keep=["y"])
    with pytest.raises(Error, match="there is no output 'z'"):
        Predictor(plan_of(LINES), outputs=["z"])
    with pytest.raises(Error, match="there is no input 'z'"):
        Predictor(plan_of(LINES), columns={"z": "x"})


WIDE = "(float[batch, 1000] x) => (float[batch, 1000] y) { a = Exp(x) b = Sigmoid(a) c = Softmax(b) y = Add(c, a) }"


def test_the_largest_batch_fits_the_memory() -> None:
    plan = plan_of(WIDE)
    found = {memory: largest_batch(plan, memory) for memory in (20_000, 100_000, 1_000_000)}
    assert found == {20_000: 1, 100_000: 8, 1_000_000: 64}  # a row has 4 kB: the input, and two values between steps
    assert largest_batch(plan, 1_000_000_000, most=50) == 32
    with pytest.raises((Error, RunError), match="bytes"):
        largest_batch(plan, 5_000)


def test_the_largest_batch_of_other_plans() -> None:
    assert largest_batch(plan_of(FIXED), 1000) == 4
    assert largest_batch(plan_of(WORDS), 10_000, most=2) == 2
    with pytest.raises(InputError, match="a size is unknown: give a `sample`"):
        largest_batch(plan_of(TOKENS), 1000)
    assert largest_batch(plan_of(TOKENS), 100_000, sample={"ids": np.ones((1, 100), np.int64)}) in (32, 64)
