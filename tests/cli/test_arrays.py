"""The files that `candlec run` writes: a plan reads the same arrays back, or refuses the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler import Error, TensorInfo
from compiler import array_files as arrays
from compiler.ir import dtypes

NUMBERS = sorted(dtypes.NAMES)
NUMPYS = [name for name in NUMBERS if not hasattr(ml_dtypes, name)]


def ramp(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    values = (np.arange(int(np.prod(shape))) % 2).reshape(shape)
    return np.asarray(values, dtypes.numpy_dtype(dtype))


def saved(folder: Path, name: str, values: dict[str, Any]) -> dict[str, Any]:
    path = folder / name
    path.write_bytes(arrays.pack(values, path))
    return arrays.read(path)  # type: ignore[no-any-return]


def assert_same(found: Any, expected: np.ndarray[Any, Any]) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes() or found.tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_npz_holds_every_dtype(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = ramp(dtype, shape)
    assert_same(saved(tmp_path, "out.npz", {"y": array})["y"], array)


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_safetensors_file_holds_a_dtype_or_says_that_it_cannot(
    dtype: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    array = ramp(dtype, shape)
    if dtype in dtypes.SAFETENSORS_TYPES or dtype in ("float8_e4m3fn", "float8_e5m2"):
        assert_same(saved(tmp_path, "out.safetensors", {"y": array})["y"], array)
        return
    with pytest.raises(Error, match=f"cannot hold the output 'y' of {dtype}: write an .npz file"):
        arrays.pack({"y": array}, tmp_path / "out.safetensors")


@pytest.mark.parametrize("dtype", NUMPYS)
def test_numpy_reads_what_it_knows_as_it_is(dtype: str, tmp_path: Path) -> None:
    array = ramp(dtype, (2, 3))
    saved(tmp_path, "out.npz", {"y": array})
    with np.load(tmp_path / "out.npz", allow_pickle=False) as found:
        assert_same(found["y"], array)


def test_numpy_reads_the_bits_of_what_it_does_not_know(tmp_path: Path) -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    saved(tmp_path, "out.npz", {"y": array})
    with np.load(tmp_path / "out.npz", allow_pickle=False) as found:
        assert_same(found["y"]["bfloat16"].view(ml_dtypes.bfloat16), array)


@pytest.mark.parametrize("name", ["file", "args", "allow_pickle", "a/b", "../x", "ä", "y.npy", "x.0"])
def test_an_npz_holds_every_name(name: str, tmp_path: Path) -> None:
    array = ramp("float32", (2,))
    assert_same(saved(tmp_path, "out.npz", {name: array})[name], array)


STRINGS = np.array([["a", "", "längst"]], object)


@pytest.mark.parametrize(
    ("values", "file", "said"),
    [
        ({"y": STRINGS}, "out.safetensors", "'y' of string"),
        ({"y": np.array(["end\0"], object)}, "out.npz", "ends with a null character"),
        ({"a\0b": np.zeros(1)}, "out.npz", "with the name 'a\\\\x00b'"),
        ({"__metadata__": np.zeros(1)}, "out.safetensors", "the output '__metadata__': write an .npz file"),
        ({"y": [np.zeros(1)], "y.0": np.zeros(1)}, "out.npz", "two of them would have the name 'y.0'"),
        ({"y": [[np.zeros(1)]]}, "out.npz", "'y': it is not a sequence of tensors"),
        ({"y": [None]}, "out.npz", "'y': it is not a sequence of tensors"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(values: dict[str, Any], file: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match=said):
        arrays.pack(values, tmp_path / file)


def info(name: str, kind: str = "tensor") -> TensorInfo:
    return TensorInfo(name, "float32", None, kind)


def test_strings_sequences_and_optionals_are_read_back(tmp_path: Path) -> None:
    one, two = ramp("float32", (1,)), ramp("float32", (2,))
    kinds = {"s": "sequence", "none": "optional", "some": "optional", "empty": "sequence"}
    values = {"t": STRINGS, "s": [one, two, one], "none": None, "some": two, "empty": []}
    found = saved(tmp_path, "out.npz", values)
    assert sorted(found) == ["s.0", "s.1", "s.2", "some", "t"]
    gathered = arrays.gather(found, [info(name, kinds.get(name, "tensor")) for name in values])
    assert gathered["t"].tolist() == STRINGS.tolist()
    assert [each.tolist() for each in gathered["s"]] == [[0], [0, 1], [0]]
    assert gathered["some"].tolist() == [0, 1]
    assert gathered["empty"] == []
    assert "none" not in gathered


def test_an_input_of_its_own_is_no_item(tmp_path: Path) -> None:
    one = ramp("float32", (1,))
    assert arrays.gather({"s.0": one}, [info("s", "sequence"), info("s.0")]) == {"s": [], "s.0": one}
    assert list(arrays.gather({"s.1": one}, [info("s", "sequence")])) == ["s.1", "s"]


def save_raw(path: Path, array: Any, allow_pickle: bool = False) -> None:
    np.save(path, array, allow_pickle=allow_pickle)


@pytest.mark.parametrize(
    ("file", "write", "said"),
    [
        ("x.npy", lambda path: path.write_bytes(b"\0"), r"cannot read .*x\.npy: "),
        (
            "x.npy",
            lambda path: save_raw(path, np.zeros(2, ml_dtypes.bfloat16)),
            "does not name the type of its elements",
        ),
        ("x.npy", lambda path: save_raw(path, np.zeros(2, [("real", "f4")])), "does not name the type of its elements"),
        (
            "x.npy",
            lambda path: save_raw(path, np.zeros(2, [("int4", "<i8")])),
            "does not name the type of its elements",
        ),
        ("x.npy", lambda path: save_raw(path, np.array([{}]), allow_pickle=True), "save numbers, or text"),
        ("x.npz", lambda path: path.write_bytes(b"PK"), r"cannot read .*x\.npz: "),
        ("x.safetensors", lambda path: path.write_bytes(b"\0" * 99), r"cannot read .*x\.safetensors: "),
    ],
)
def test_unreadable_files_are_errors(file: str, write: Any, said: str, tmp_path: Path) -> None:
    write(tmp_path / file)
    with pytest.raises(Error, match=said) as raised:
        arrays.read(tmp_path / file)
    assert str(tmp_path / file) in str(raised.value)
    assert "unsafely" not in str(raised.value)
