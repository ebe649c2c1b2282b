"""Rows of .npz and .safetensors files, batches of a fixed size, and the names of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from compiler import Error
from compiler.batch import Settings, run_batch
from compiler.batch.rows import Chunk
from tests.batch.plans import FIXED, LINES, LOOKUP, bad_rows, plan_of, ramp, written

ROWS = 11


def saved(path: Path, arrays: dict[str, Any]) -> Path:
    """A file with these arrays."""
    if path.suffix == ".safetensors":
        save_file(arrays, path)
    elif "small" in path.name:
        np.savez_compressed(path, **arrays)
    else:
        np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("graph", [LINES, FIXED], ids=["symbolic", "fixed"])
@pytest.mark.parametrize("name", ["rows.npz", "small.npz", "rows.safetensors"])
@pytest.mark.parametrize("most", [3, 1000])
def test_each_row_has_its_outputs(
    graph: str, name: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compiler.batch.rows.CHUNK_ROWS", most)
    file = saved(tmp_path / name, {"x": ramp(ROWS), "other": np.zeros(2, np.float32)})
    summary = run_batch(plan_of(graph), [file], tmp_path / "out", Settings(batch=4, part_rows=5))
    rows, values = written(tmp_path / "out")
    assert rows == [*range(ROWS)]
    np.testing.assert_array_equal(values, 2 * ramp(ROWS))
    assert (summary.rows, summary.written, summary.bad, summary.parts, summary.finished) == (ROWS, ROWS, 0, 2, True)


def test_the_plan_chooses_the_size_of_a_batch(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": ramp(3)})
    assert run_batch(plan_of(FIXED), [file], tmp_path / "fixed").batch == 4
    assert run_batch(plan_of(LINES), [file], tmp_path / "symbolic").batch == 32
    with pytest.raises(Error, match="the plan has the fixed batch size 4: leave out the batch size"):
        run_batch(plan_of(FIXED), [file], tmp_path / "other", Settings(batch=2))


def test_rows_of_several_files_follow_each_other(tmp_path: Path) -> None:
    for name, count in (("a.npz", 3), ("b.safetensors", 5), ("c.npz", 0), ("d.npz", 1)):
        saved(tmp_path / name, {"x": ramp(count)})
    run_batch(plan_of(LINES), [tmp_path], tmp_path / "out", Settings(batch=4))
    rows, values = written(tmp_path / "out")
    assert rows == [*range(3), *range(5), 0]
    np.testing.assert_array_equal(values, 2 * np.concatenate([ramp(3), ramp(5), ramp(1)]))
    with np.load(tmp_path / "out/part-000000.npz") as part:
        files = [Path(each).name for each in part["source_files"]]
        assert [files[at] for at in part["source_file"]] == ["a.npz"] * 3 + ["b.safetensors"] * 5 + ["d.npz"]


def test_patterns_name_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a1.npz", "a2.npz", "b1.npz"):
        saved(Path(name), {"x": ramp(1)})
    assert run_batch(plan_of(LINES), ["a*.npz", "b1.npz"], "out").rows == 3
    with pytest.raises(Error, match="the data name a file twice"):
        run_batch(plan_of(LINES), ["*.npz", "b1.npz"], "again")
    with pytest.raises(Error, match=r"c\*.npz: there is no such file"):
        run_batch(plan_of(LINES), ["c*.npz"], "again")
    Path("rows.txt").write_text("1")
    with pytest.raises(Error, match=r"rows.txt: files of data end with .parquet, .npz, "):
        run_batch(plan_of(LINES), ["rows.txt"], "again")
    Path("empty").mkdir()
    with pytest.raises(Error, match="empty: the folder has no files of data"):
        run_batch(plan_of(LINES), ["empty"], "again")
    Path("empty/inner").mkdir()
    saved(Path("empty/inner/a.npz"), {"x": ramp(2)})
    with pytest.raises(Error, match=r"for those in its folders, give the pattern 'empty/\*\*/\*\.npz'"):
        run_batch(plan_of(LINES), ["empty"], "again")
    assert run_batch(plan_of(LINES), ["empty/**/*.npz"], "inner").rows == 2


def test_columns_map_to_inputs(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"points": ramp(3), "names": np.zeros(3, np.float32)})
    run_batch(plan_of(LINES), [file], tmp_path / "out", Settings({"x": "points"}))
    np.testing.assert_array_equal(written(tmp_path / "out")[1], 2 * ramp(3))
    with pytest.raises(Error, match=r"there is no column 'x': its columns are points, names; map columns to inputs"):
        run_batch(plan_of(LINES), [file], tmp_path / "other")
    with pytest.raises(Error, match="did you mean points"):
        run_batch(plan_of(LINES), [file], tmp_path / "other", Settings({"x": "point"}))
    with pytest.raises(Error, match="there is no input 'z': the inputs are x"):
        run_batch(plan_of(LINES), [file], tmp_path / "other", Settings({"z": "points"}))


def test_no_rows_make_no_part(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": ramp(0)})
    summary = run_batch(plan_of(LINES), [file], tmp_path / "out")
    assert (summary.rows, summary.parts, summary.finished) == (0, 0, True)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((3, 4), np.float32), r"has the shape \[3, 4\], and a row of the input 'x' is float32 \[2\]"),
        (np.zeros((), np.float32), r"has the shape \[\]"),
        (np.zeros((3, 2)), r"elements of float64, and the input 'x' takes float32: a conversion may round"),
        (np.full((3, 2), "a"), r"has elements of string, and the input 'x' takes float32$"),
        (np.asfortranarray(ramp(3)), "has Fortran's order"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array: Any, said: str, tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": array})
    with pytest.raises(Error, match=said):
        run_batch(plan_of(LINES), [file], tmp_path / "out")


@pytest.mark.parametrize("array", [ramp(3).astype(np.float16), ramp(3).astype(np.int8), ramp(3) > 2])
def test_exact_conversions_need_no_option(array: Any, tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": array})
    run_batch(plan_of(LINES), [file], tmp_path / "out")
    np.testing.assert_array_equal(written(tmp_path / "out")[1], 2 * array.astype(np.float32))


def test_a_number_outside_the_range_is_bad_after_a_conversion(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": np.array([[0, 0.1], [0, 1e39], [np.inf, np.nan]])})
    run_batch(plan_of(LINES), [file], tmp_path / "out", Settings(cast=True))
    rows, values = written(tmp_path / "out")
    assert rows == [0, 2]
    np.testing.assert_array_equal(values, 2 * np.array([[0, 0.1], [np.inf, np.nan]], np.float32))
    assert bad_rows(tmp_path / "out") == [(1, "a number of 'x' is outside the range of float32")]


def test_bfloat16_is_read_and_written(tmp_path: Path) -> None:
    x = ramp(5).astype(ml_dtypes.bfloat16)
    file = saved(tmp_path / "rows.safetensors", {"x": x})
    run_batch(plan_of(LINES.replace("float", "bfloat16")), [file], tmp_path / "out")
    _, values = written(tmp_path / "out")
    np.testing.assert_array_equal(values["bfloat16"].view(ml_dtypes.bfloat16), x + x)


def test_arrays_have_the_same_number_of_rows(tmp_path: Path) -> None:
    graph = "(float[batch] a, float[batch] b) => (float[batch] y) { y = Add (a, b) }"
    file = saved(tmp_path / "rows.npz", {"a": np.zeros(3, np.float32), "b": np.zeros(2, np.float32)})
    with pytest.raises(Error, match="the arrays have different numbers of rows: a 3, b 2"):
        run_batch(plan_of(graph), [file], tmp_path / "out")


@pytest.mark.parametrize("name", ["rows.npz", "rows.safetensors"])
def test_a_damaged_file_is_reported(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(b"\x00" * 100)
    with pytest.raises(Error, match=f"cannot read .*{name}: "):
        run_batch(plan_of(LINES), [file], tmp_path / "out")


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_array_is_reported(at: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).standard_normal((5000, 2), np.float32)
    file = saved(tmp_path / "small.npz", {"x": noise})
    data = bytearray(file.read_bytes())
    data[int(at * len(data))] ^= 255
    file.write_bytes(data)
    with pytest.raises(Error, match=r"cannot read .*small.npz: "):
        run_batch(plan_of(LINES), [file], tmp_path / "out")


def test_a_row_for_which_a_step_fails_is_bad(tmp_path: Path) -> None:
    i = np.array([0, 1, 2, 7, 1, -9, 0, 2])
    file = saved(tmp_path / "rows.npz", {"i": i})
    run_batch(plan_of(LOOKUP), [file], tmp_path / "out")
    rows, values = written(tmp_path / "out")
    assert (rows, values.tolist()) == ([0, 1, 2, 4, 6, 7], [10, 20, 30, 20, 10, 30])
    bad = bad_rows(tmp_path / "out")
    assert [row for row, _ in bad] == [3, 5]
    assert "7" in bad[0][1] and "-9" in bad[1][1]


def test_a_run_that_fails_for_every_row_is_an_error(tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"i": np.full(8, 5)})
    with pytest.raises(Error, match="Gather"):
        run_batch(plan_of(LOOKUP), [file], tmp_path / "out")


GRAPHS = [
    ("(float[batch, 2] x, float t) => (float[batch, 2] y) { y = Add (x, t) }", "'t' has no first axis for the rows"),
    ("(float[3] x, float[4] z) => (float[3] y, float[4] q) { y = Neg(x)  q = Neg(z) }", "have different sizes"),
    ("(float[batch, 2] x) => (float[5] y) <float[5] c = {1, 2, 3, 4, 5}> { y = Identity (c) }", "its first axis has a"),
    ("(float[batch, 2] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }", "'y' has no first axis for the rows"),
    ("() => (float[2] y) { y = Constant <value = float[2] {1, 2}> () }", "the plan has no inputs"),
]


@pytest.mark.parametrize(("graph", "said"), GRAPHS)
def test_plans_without_rows_are_refused(graph: str, said: str, tmp_path: Path) -> None:
    file = saved(tmp_path / "rows.npz", {"x": ramp(3)})
    with pytest.raises(Error, match=said):
        run_batch(plan_of(graph), [file], tmp_path / "out")


def test_an_output_without_the_rows_is_refused(tmp_path: Path) -> None:
    graph = "(float[batch, 2] x) => (float[k, 2] y, float[batch, 2] z) { y = Concat <axis = 0> (x, x)  z = Neg (x) }"
    file = saved(tmp_path / "rows.npz", {"x": ramp(3)})
    with pytest.raises(Error, match=r"the output 'y' of 3 rows has the shape \[6, 2\]: its first axis is not the rows"):
        run_batch(plan_of(graph), [file], tmp_path / "out")
    run_batch(plan_of(graph), [file], tmp_path / "chosen", Settings(outputs=["z"]))
    np.testing.assert_array_equal(written(tmp_path / "chosen", "z")[1], -ramp(3))
    with pytest.raises(Error, match="there is no output 'w': the outputs are y, z"):
        run_batch(plan_of(graph), [file], tmp_path / "none", Settings(outputs=["w"]))


def test_a_batch_ends_where_the_shape_changes() -> None:
    from compiler.batch.batches import batches

    widths = [2, 2, 3, 3, 3, 2]
    chunks = [Chunk(np.array([at]), {"x": np.zeros((1, width))}) for at, width in enumerate(widths)]
    chunks.insert(3, Chunk(np.arange(0), {}, {9: "bad"}))
    found = [[*batch.rows] for batch in batches(iter(chunks), 2, 10)]
    assert found == [[0, 1], [2, 3], [4], [5], []]
