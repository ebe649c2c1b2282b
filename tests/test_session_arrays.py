"""Input and output arrays of sessions: every dtype and memory layout, without changes to their elements."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

import compiler
from compiler import InputError, Session
from compiler.ir import dtypes

ROOT = Path(__file__).parent.parent

Array = np.ndarray[Any, Any]


def echo(dtype: str, rank: int) -> Session:
    """A session that returns its input."""
    element = onnx.TensorProto.STRING if dtype == "string" else helper.np_dtype_to_tensor_dtype(of(dtype))
    x, y = (helper.make_tensor_value_info(name, element, [None] * rank) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "echo", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    return compiler.load(compiler.compile(model), threads=1)


def loaded(text: str) -> Session:
    """A session for a model in ONNX's text syntax, without its header."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    return compiler.load(compiler.compile(model), threads=1)


def of(dtype: str) -> np.dtype[Any]:
    return dtypes.numpy_dtype(dtype)


def ramp(dtype: str, shape: tuple[int, ...]) -> Array:
    return np.asarray((np.arange(int(np.prod(shape))) % 2).reshape(shape), of(dtype))


def assert_same(found: Any, expected: Array) -> None:
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist() or found.tobytes() == expected.tobytes()
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.base is not expected


@pytest.mark.parametrize("dtype", [*sorted(dtypes.NAMES), "string"])
def test_every_dtype_goes_through(dtype: str) -> None:
    session = echo(dtype, 2)
    for shape in [(2, 3), (1, 1), (0, 3)]:
        given = ramp("bool", shape).astype(str).astype(object) if dtype == "string" else ramp(dtype, shape)
        assert_same(session.run({"x": given})["y"], given)
        assert_same(session.run({"x": given.T})["y"], given.T)


def unaligned(array: Array) -> Array:
    bytes_ = np.zeros(array.nbytes + 1, np.uint8)
    bytes_[1:] = np.frombuffer(array.tobytes(), np.uint8)
    return np.frombuffer(bytes_.data, array.dtype, offset=1).reshape(array.shape)


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "every other row": lambda x: x[::2],
    "every other column": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "one row again and again": lambda x: np.broadcast_to(x[0], x.shape),
    "the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "not aligned": unaligned,
    "read-only": read_only,
    "a masked array": np.ma.masked_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "bool"])
def test_every_layout_is_read(dtype: str, layout: str) -> None:
    given = LAYOUTS[layout](np.arange(24).reshape(4, 6).astype(of(dtype)))
    assert_same(echo(dtype, 2).run({"x": given})["y"], np.asarray(given))


@pytest.mark.parametrize("value", [np.float32(3), np.array(3, np.float32), np.ma.masked_array(np.float32(3))], ids=repr)
def test_numbers_are_arrays_too(value: Any) -> None:
    assert_same(echo("float32", 0).run({"x": value})["y"], np.array(3, np.float32))


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("size", [2, 5000])
def test_an_array_that_was_given_is_not_kept(size: int, copy: bool) -> None:
    given = np.ones((2, size), np.float32)
    references = sys.getrefcount(given)
    found = echo("float32", 2).run({"x": given}, copy=copy)["y"]
    assert sys.getrefcount(given) == references
    assert not np.shares_memory(found, given)
    given[:] = 5
    assert (found == 1).all()


@pytest.mark.parametrize("size", [2, 5000])
def test_no_step_writes_to_an_input(size: int) -> None:
    session = loaded(f"""in_place (float[2, {size}] x) => (float[2, {size}] y, float[{size}] z) {{
        a = Abs(x)
        b = Exp(a)
        y = Softmax(b)
        half = Constant <value = float {{0.5}}> ()
        c = Mul(x, half)
        at = Constant <value_int = 1> ()
        z = Gather(c, at)
    }}""")
    given = np.linspace(-3, 3, 2 * size, dtype=np.float32).reshape(2, size)
    before = given.copy()
    lent, copied = session.run({"x": given}), session.run({"x": given}, copy=True)
    assert (given == before).all()
    assert (lent["z"] == before[1] / 2).all()
    for name, array in lent.items():
        assert (array == copied[name]).all()


def test_a_limit_of_memory_counts_copies_of_inputs_only() -> None:
    text = "sum (float[4096] x, float[4096] z) => (float[4096] y) { y = Add (x, z) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    session = compiler.load(compiler.compile(model), threads=1, max_memory=4 * 4096)
    given = {name: np.ones(4096, np.float32) for name in "xz"}
    assert (session.run(given)["y"] == 2).all()
    with pytest.raises(compiler.RunError, match="max_memory"):
        session.run(given, copy=True)


PEAK = '''
import sys
import numpy as np
from tests.process_memory import memory
from tests.test_session_arrays import loaded

given = np.zeros((1 << 18, 256), np.float32)  # no page is in memory before a read
session = loaded("""rows (float[n, 256] x) => (float[2, 256] y) {
    rows = Constant <value = int64[2] {5, -9}> ()
    y = Gather(x, rows)
}""")
before = memory("VmHWM")
session.run({"x": given}, copy=sys.argv[1] == "copy")
print(memory("VmHWM") - before)
'''


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts the peak")
def test_inputs_are_read_in_place() -> None:
    def grown(passing: str) -> int:
        command = [sys.executable, "-c", PEAK, passing]
        return int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)

    assert grown("lend") < 32 << 20 < 128 << 20 < grown("copy"), "bytes"


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
def test_every_kind_of_mapping_is_read(kind: Callable[[dict[str, Any]], Any]) -> None:
    assert echo("float32", 1).run(kind({"x": np.ones(1, np.float32)}))["y"].tolist() == [1]


class Keyed(dict[str, Any]):
    """A dict that invents values."""

    def __missing__(self, key: str) -> Any:
        return np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({}, InputError, "input 'x' is missing: expected float32"),
        (Keyed(), InputError, "input 'x' is missing: expected float32"),
        ({"z": 1}, InputError, "there is no input 'z'; the only input is x"),
        ({"x": np.ones(1, np.float32), "z": 1}, InputError, "there is no input 'z'; the only input is x"),
        ({1: np.ones(1, np.float32)}, TypeError, "found the key 1"),
        ([np.ones(1, np.float32)], TypeError, "expected a dict of arrays by name"),
        (None, TypeError, "expected a dict of arrays by name"),
    ],
)
def test_other_names_are_refused(given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        echo("float32", 1).run(given)


def test_an_error_says_which_names_a_session_has() -> None:
    session = loaded("sum (float[2] a, float[2] b) => (float[2] y) { y = Add (a, b) }")
    with pytest.raises(InputError) as error:
        session.run({"a": np.ones(2, np.float32)})
    assert str(error.value) == "input 'b' is missing: expected float32 [2]"
    assert (error.value.name, error.value.expected, error.value.found) == ("b", "float32 [2]", "nothing")
    with pytest.raises(InputError) as error:
        session.run({"pic": 1})
    assert str(error.value) == "there is no input 'pic'; the inputs are a, b"
    assert (error.value.name, error.value.expected, error.value.found) == ("pic", "one of a, b", "an unknown name")
    with pytest.raises(InputError, match="there is no input 'x'; the plan has no inputs"):
        loaded("one () => (float y) { y = Constant <value_float = 1.0> () }").run({"x": 1})


@pytest.mark.parametrize("dtype", ["float32", "bool", "float16", "int4"])
@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 4096, 4097, 9000])
def test_outputs_of_every_length_belong_to_the_caller(dtype: str, count: int) -> None:
    session, given = echo(dtype, 2), ramp(dtype, (1, count))
    first, second = (session.run({"x": given})["y"] for _ in range(2))
    assert_same(first, given)
    assert not np.shares_memory(first, second)
    first[:] = 0
    assert_same(second, given)


def test_sequences_and_optionals() -> None:
    one = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n"])
    many, maybe = helper.make_sequence_type_proto(one), helper.make_optional_type_proto(one)
    values = [
        helper.make_value_info(name, kind) for name, kind in [("s", many), ("o", maybe), ("t", many), ("p", maybe)]
    ]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in ("st", "op")]
    graph = helper.make_graph(nodes, "echo", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = compiler.load(compiler.compile(model), threads=1)
    items = [np.float32([1, 2]), np.float32([])]
    for given in (items, tuple(items)):
        found = session.run({"s": given, "o": items[0]})
        assert [item.tolist() for item in found["t"]] == [[1, 2], []]
        assert found["p"].tolist() == [1, 2]
    assert session.run({"s": [], "o": None}) == {"t": [], "p": None}
    assert session.run({"s": []}) == {"t": [], "p": None}
    with pytest.raises(
        InputError, match=r"'s': expected sequence of float32 of any rank, found float64 \[1\] as item 0 of 1"
    ):
        session.run({"s": [np.zeros(1)]})


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        ("float[2]", ("tensor", "tensor", "float32 [2]")),
        ("seq(float[2])", ("sequence", "tensor", "sequence of float32")),
        ("optional(float[2])", ("optional", "tensor", "optional float32 [2]")),
        ("optional(seq(float[2]))", ("optional", "sequence", "optional sequence of float32")),
    ],
)
def test_inputs_tell_their_kind(kind: str, described: tuple[str, str, str]) -> None:
    (info,) = loaded(f"g ({kind} x) => ({kind} y) {{ y = Identity (x) }}").inputs
    assert (info.kind, info.holds, str(info)) == described


@pytest.mark.parametrize(
    ("dtype", "given", "said"),
    [
        ("bool", np.uint8([0, 2]).view(bool), "byte 1 is 2, which no bool has"),
        ("float32", np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
        ("float32", np.array([None]), "an array of objects that are not all texts, one is NoneType"),
        ("float32", {"a": 1}, "an array of objects that are not all texts, one is dict"),
        ("float32", np.zeros(1, np.longdouble), "is not a supported element type"),
        ("float32", None, r"found none"),
        ("float32", ["a"], r"found sequence of 1"),
    ],
)
def test_arrays_that_no_plan_accepts_are_refused(dtype: str, given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        echo(dtype, 1).run({"x": given})
    assert "'x': expected " + dtype in str(error.value)


MOST_DIMENSIONS = 32 if np.lib.NumpyVersion(np.__version__) < "2.0.0" else 64


@pytest.mark.parametrize("rank", [MOST_DIMENSIONS // 2 + 1, MOST_DIMENSIONS])
def test_as_many_dimensions_as_numpy_has(rank: int) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, *[1] * (rank - 2), 3)
    assert_same(echo("float32", rank).run({"x": x})["y"], x)
    assert_same(echo("float32", rank).run({"x": x[::-1, ..., ::2]})["y"], x[::-1, ..., ::2].copy())


def test_a_session_says_that_it_cannot_be_pickled() -> None:
    graph = "g (float[2] x) => (float[2] y) { y = Neg (x) }"
    session = compiler.load(
        compiler.compile(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {graph}'))
    )
    with pytest.raises(TypeError, match="a session cannot be pickled: send the path of its plan"):
        pickle.dumps(session)
