"""Rows of Parquet files: columns, lists of every kind, bad rows, parts, and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import Error
from compiler.batch import Settings, run_batch
from tests.batch.plans import LINES, TABLES, TOKENS, WORDS, bad_rows, plan_of, ramp

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

ROOT = Path(__file__).parent.parent.parent


def saved(path: Path, rows: Any, kind: Any = None, *, column: str = "x", group: int | None = None) -> Path:
    """A Parquet file with one column."""
    array = rows if isinstance(rows, pa.Array) else pa.array(rows, kind)
    pq.write_table(pa.table({column: array}), path, row_group_size=group)
    return path


def found(folder: Path) -> tuple[list[int], list[Any]]:
    """The numbers of the rows, and their outputs."""
    table = pq.read_table(folder)
    assert table.schema.names == ["source_file", "source_row", "y"]
    return table["source_row"].to_pylist(), table["y"].to_pylist()


def lists(rows: np.ndarray[Any, Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(rows.reshape(-1), rows[0].size)


KINDS = {
    "fixed": lambda rows: lists(rows),
    "variable": lambda rows: lists(rows).cast(pa.list_(pa.float32())),
    "large": lambda rows: lists(rows).cast(pa.large_list(pa.float32())),
    "tensor": lambda rows: pa.FixedShapeTensorArray.from_numpy_ndarray(rows),
    "half": lambda rows: lists(rows).cast(pa.list_(pa.float16(), rows[0].size)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("graph", "shape"), [(LINES, (2,)), (TABLES, (2, 3))], ids=["vectors", "matrices"])
@pytest.mark.parametrize("most", [3, 1000])
def test_lists_become_arrays(
    kind: str, graph: str, shape: tuple[int, ...], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compiler.batch.rows.CHUNK_ROWS", most)
    rows = np.arange(11 * np.prod(shape), dtype=np.float32).reshape(11, *shape)
    file = saved(tmp_path / "rows.parquet", KINDS[kind](rows), group=5)
    summary = run_batch(plan_of(graph), [file], tmp_path / "out", Settings(batch=4, part_rows=5))
    assert (summary.written, summary.parts) == (11, 2)
    expected = 2 * rows if graph == LINES else -rows
    assert found(tmp_path / "out") == ([*range(11)], expected.tolist())


def test_nested_lists_have_the_axes_of_a_row(tmp_path: Path) -> None:
    good = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    uneven, long = [[1.0, 2.0], [3.0, 4.0, 5.0, 6.0]], [[1.0, 2.0, 3.0]] * 3
    rows = [good, uneven, long, [[1.0, 2.0, None], good[1]], [None, good[1]], None, good]
    file = saved(tmp_path / "rows.parquet", rows, pa.list_(pa.list_(pa.float32())))
    run_batch(plan_of(TABLES), [file], tmp_path / "out")
    negative = (-np.array(good)).tolist()
    assert found(tmp_path / "out") == ([0, 6], [negative, negative])
    size = "a list in 'x' has a wrong size: a row of the input is float32 [2, 3]"
    null = "'x' is null or holds null"
    assert bad_rows(tmp_path / "out") == [(1, size), (2, size), (3, null), (4, null), (5, null)]
    again = run_batch(plan_of(TABLES), [tmp_path / "out"], tmp_path / "again", Settings({"x": "y"}))
    assert (again.written, found(tmp_path / "again")[1]) == (2, [good, good])  # an output can be an input


def test_lists_of_a_wrong_size_are_bad_rows(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.parquet", [[1, 2], [1], None, [3, None], [3, 4], []], pa.list_(pa.float32()))
    run_batch(plan_of(LINES), [file], tmp_path / "out")
    assert found(tmp_path / "out") == ([0, 4], [[2, 4], [6, 8]])
    size = "'x' has {} elements, and a row of the input is float32 [2]"
    null = "'x' is null or holds null"
    assert bad_rows(tmp_path / "out") == [(1, size.format(1)), (2, null), (3, null), (5, size.format(0))]


def test_lists_of_several_sizes_run_in_batches_of_one_size(tmp_path: Path) -> None:
    rows = [[1, 2], [3, 4], [5], [], [], [6, 7, 8], [9, 10, 11]]
    file = saved(tmp_path / "rows.parquet", rows, pa.list_(pa.int64()), column="ids")
    run_batch(plan_of(TOKENS), [file], tmp_path / "out")
    assert found(tmp_path / "out")[1] == [[2 * each for each in row] for row in rows]
    with pytest.raises(Error, match="the rows of the output 'y' have different shapes: choose the format parquet"):
        run_batch(plan_of(TOKENS), [file], tmp_path / "npz", Settings(format="npz"))


def test_nested_lists_of_an_unknown_size_are_regular(tmp_path: Path) -> None:
    graph = "(float[batch, 2, n] x) => (float[batch, 2, n] y) { y = Identity(x) }"
    rows = [[[1, 2], [3, 4]], [[1], [2, 3, 4]], [[5], [6]]]
    file = saved(tmp_path / "rows.parquet", rows, pa.list_(pa.list_(pa.float32())))
    run_batch(plan_of(graph), [file], tmp_path / "out")
    assert found(tmp_path / "out") == ([0, 2], [rows[0], rows[2]])


def test_columns_of_numbers_and_words(tmp_path: Path) -> None:
    graph = "(double[batch] x, int64[batch, 1] n) => (double[batch] y) { y = Identity(x) m = Identity(n) }"
    table = {"x": pa.array([1.5, None, 2.5]), "n": pa.array([1, 2, 3], pa.int32())}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    run_batch(plan_of(graph), [tmp_path / "rows.parquet"], tmp_path / "out")
    assert found(tmp_path / "out") == ([0, 2], [1.5, 2.5])
    words = pa.array(["a", None, "ö", "a"]).dictionary_encode()
    file = saved(tmp_path / "words.parquet", words, column="s")
    run_batch(plan_of(WORDS), [file], tmp_path / "words")
    assert found(tmp_path / "words") == ([0, 2, 3], ["a", "ö", "a"])


def test_integers_are_converted_if_asked(tmp_path: Path) -> None:
    graph = LINES.replace("float", "int32")
    file = saved(tmp_path / "rows.parquet", [[1, 2], [3, 2**31], [5, -6]], pa.list_(pa.int64()))
    with pytest.raises(Error, match="has elements of int64, and the input 'x' takes int32: a conversion may round"):
        run_batch(plan_of(graph), [file], tmp_path / "out")
    run_batch(plan_of(graph), [file], tmp_path / "out", Settings(cast=True))
    assert found(tmp_path / "out") == ([0, 2], [[2, 4], [10, -12]])
    assert bad_rows(tmp_path / "out") == [(1, "a number of 'x' is outside the range of int32")]


@pytest.mark.parametrize(
    ("rows", "kind", "said"),
    [
        ([1.0], pa.float32(), "has the type float, and a row of the input 'x' is float32"),
        ([[[[1.0]]]], pa.list_(pa.list_(pa.list_(pa.float32()))), "has the type list"),
        ([0], pa.timestamp("s"), "has the type timestamp"),
        ([[0, 0]], pa.list_(pa.date32()), "which no input can take"),
        ([["a", "b"]], pa.list_(pa.string()), "elements of string, and the input 'x' takes float32"),
    ],
)
def test_columns_that_do_not_fit_are_refused(rows: Any, kind: Any, said: str, tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.parquet", rows, kind)
    with pytest.raises(Error, match=said):
        run_batch(plan_of(LINES), [file], tmp_path / "out")


def test_a_missing_column_is_an_error_that_lists_the_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"left": [1], "right": [2]}), tmp_path / "rows.parquet")
    with pytest.raises(Error, match=r"there is no column 'x': its columns are left, right; map columns to inputs"):
        run_batch(plan_of(LINES), [tmp_path / "rows.parquet"], tmp_path / "out")


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" * 10)
    with pytest.raises(Error, match=r"cannot read .*rows.parquet: "):
        run_batch(plan_of(LINES), [tmp_path / "rows.parquet"], tmp_path / "out")


def test_a_damaged_page_is_reported(tmp_path: Path) -> None:
    table = pa.table({"x": lists(np.random.default_rng(0).standard_normal((5000, 2), np.float32))})
    file = tmp_path / "rows.parquet"
    pq.write_table(table, file, write_page_checksum=True)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)
    with pytest.raises(Error, match=r"cannot read .*rows.parquet: .*"):
        run_batch(plan_of(LINES), [file], tmp_path / "out")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([lists(ramp(2))] * 2, names=["x", "x"]), tmp_path / "rows.parquet")
    with pytest.raises(Error, match="two columns have the name 'x'"):
        run_batch(plan_of(LINES), [tmp_path / "rows.parquet"], tmp_path / "out")


def test_only_bad_rows_make_an_empty_part(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.parquet", [[1], [2]], pa.list_(pa.float32()))
    summary = run_batch(plan_of(LINES), [file], tmp_path / "out")
    assert (summary.written, summary.bad, summary.parts) == (0, 2, 1)
    assert pq.read_table(tmp_path / "out").schema.field("y").type == pa.list_(pa.float32(), 2)


def test_parquet_has_no_bfloat16(tmp_path: Path) -> None:
    graph = "(float[batch, 2] x) => (bfloat16[batch, 2] y) { y = Cast <to = 16> (x) }"
    file = saved(tmp_path / "rows.parquet", lists(ramp(2)))
    with pytest.raises(Error, match="Parquet has no type for the output 'y' of bfloat16: choose the format npz"):
        run_batch(plan_of(graph), [file], tmp_path / "out")


def test_names_of_outputs_differ_from_those_of_places(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.parquet", lists(ramp(2)))
    with pytest.raises(Error, match="'source_row' has the name of a column for the places of rows"):
        run_batch(plan_of(LINES.replace("y", "source_row")), [file], tmp_path / "out")


MEMORY = """
import sys
from compiler.batch import run_batch
from tests.process_memory import memory
run_batch(sys.argv[1], [sys.argv[2]], sys.argv[3])
print(memory("VmHWM"))
"""


def test_the_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    graph = "(float[batch, 64] x) => (float[batch] y) { z = ReduceSum <keepdims = 0> (x, a) y = Identity (z) }"
    graph = graph.replace(") {", ") <int64[1] a = {1}> {")
    plan_of(graph).save(tmp_path / "sum.plan")
    peaks = []
    for count in (100_000, 400_000):
        rows = np.random.default_rng(0).standard_normal((count, 64), np.float32)
        file = saved(tmp_path / f"{count}.parquet", lists(rows))
        command = [sys.executable, "-c", MEMORY, tmp_path / "sum.plan", file, tmp_path / f"out{count}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 40 << 20, "the other rows have 77 MB"
