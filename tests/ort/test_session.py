"""Sessions of `compiler.ort` behave like onnxruntime's: inputs, outputs, types and errors."""

from __future__ import annotations

import threading
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import compiler
import compiler.ort
from compiler.ort.capi import onnxruntime_pybind11_state as errors
from tests.ort.both import ADD, HEADER, add_inputs, assert_same, model, ramp

ROOT = Path(__file__).parent.parent.parent

X = ramp(2, 3)
FEEDS: dict[str, Any] = {
    "arrays": add_inputs(),
    "views": {"x": ramp(3, 2).T, "y": X[::-1]},
    "lists": {"x": [[1, 2, 3], [4.5, 5, 6]], "y": X.tolist()},
    "a list of arrays": {"x": [X], "y": X},
    "an irregular list": {"x": [[1.0], [2.0, 3.0]], "y": X},
    "a list of texts": {"x": [["a", "b", "c"]], "y": X},
    "a proxy": MappingProxyType(add_inputs()),
    "no rows": {"x": ramp(0, 3), "y": ramp(0, 3)},
    "float64": {"x": X.astype(np.float64), "y": X},
    "int32": {"x": X.astype(np.int32), "y": X},
    "strings": {"x": X.astype(str), "y": X},
    "one axis more": {"x": ramp(2, 3, 1), "y": X},
    "a wrong size": {"x": ramp(2, 4), "y": X},
    "an input less": {"x": X},
    "an input more": {**add_inputs(), "q": X},
    "another input": {"x": X, "q": X},
}


@pytest.mark.parametrize("feed", FEEDS.values(), ids=FEEDS)
def test_inputs_are_taken_or_refused_alike(feed: Any) -> None:
    assert_same(lambda module: module.InferenceSession(model(ADD)).run(None, feed))


def test_inputs_that_onnxruntime_misreads() -> None:
    session = compiler.ort.InferenceSession(model(ADD))
    (big_endian, _) = session.run(None, {"x": X.astype(">f4"), "y": X})
    assert big_endian.tolist() == (2 * X).tolist()
    with pytest.raises(errors.InvalidArgument, match=r"input 'y': expected float32 \[n, 3\] with n = 2"):
        session.run(None, {"x": X, "y": ramp(1, 3)})
    scalar = compiler.ort.InferenceSession(model("g (float x) => (float y) { y = Neg (x) }"))
    with pytest.raises(errors.InvalidArgument, match=r"input 'x': expected float32 \[\]"):
        scalar.run(None, {"x": X})


@pytest.mark.parametrize("names", [None, [], ["w"], ["w", "z"], ["w", "w"], ("z",), ["v"], "w", 1, iter(["w"])])
def test_outputs_are_chosen_alike(names: Any) -> None:
    assert_same(lambda module: module.InferenceSession(model(ADD)).run(names, add_inputs()))


TYPED = {
    "strings": ("string[n] x", np.array(["a", "é"])),
    "objects": ("string[n] x", np.array(["a", "b"], object)),
    "a list of strings": ("string[n] x", ["a", "b"]),
    "numbers for strings": ("string[n] x", ramp(2)),
    "a sequence": ("seq(float[m, 3]) x", [ramp(1, 3), ramp(2, 3)]),
    "an array for a sequence": ("seq(float[m, 3]) x", ramp(2, 3)),
    "an optional": ("optional(float[2]) x", ramp(2)),
    "an empty optional": ("optional(float[2]) x", None),
    "an optional sequence": ("optional(seq(float[2])) x", [ramp(2)]),
    "an empty optional sequence": ("optional(seq(float[2])) x", None),
    "integers": ("int64[n] x", [1, 2]),
    "booleans": ("bool[n] x", [True, False]),
    "a boolean for an integer": ("int64[n] x", np.array([True])),
    "float16": ("float16[n] x", ramp(2, dtype=np.float16)),
    "an unknown rank": ("float[] x", ramp(2, 3)),
    "a scalar": ("float x", np.array(1, np.float32)),
}


@pytest.mark.parametrize(("declared", "value"), TYPED.values(), ids=TYPED)
def test_types_are_named_and_taken_alike(declared: str, value: Any) -> None:
    made = model(f"g ({declared}) => ({declared.replace(' x', ' y')}) {{ y = Identity (x) }}")

    def described(module: Any) -> Any:
        session = module.InferenceSession(made)
        args = [*session.get_inputs(), *session.get_outputs()]
        return [(arg.name, arg.type, arg.shape, str(arg)) for arg in args]

    assert_same(described)
    assert_same(lambda module: module.InferenceSession(made).run(None, {"x": value}))


def test_an_optional_input_may_be_left_out() -> None:
    made = model("g (optional(float[2]) x) => (bool[] y) { y = OptionalHasElement (x) }")
    assert_same(lambda module: module.InferenceSession(made).run(None, {}))


SHAPES = """g (float[batch, 3, h, w] x, float u, float[] v, int64[k] i) =>
(float[batch, c, oh, ow] y, float[bb, 3, h, w] z, float[] d, float[8, 3, h, w] e, float[] f, float[m, ?, 1] r) {
    y = AveragePool <kernel_shape = [2, 2]> (x)
    z = Concat <axis = 0> (x, x)
    d = Concat <axis = 0> (x, x)
    e = Concat <axis = 0> (x, x)
    f = Add (u, v)
    r = Reshape (x, i)
}"""


def test_shapes_have_the_sizes_and_names_of_the_model() -> None:
    def outputs(module: Any, source: bytes) -> Any:
        session = module.InferenceSession(source)
        assert [arg.shape for arg in session.get_inputs()] == [["batch", 3, "h", "w"], [], [], ["k"]]
        return [arg.shape for arg in session.get_outputs()]

    source = model(SHAPES)
    unnamed = [None, 3, "h", "w"]
    found = assert_same(lambda module: outputs(module, source))
    assert found == [
        *(["batch", 3, "oh", "ow"], ["bb", 3, "h", "w"], unnamed, [8, 3, "h", "w"], []),
        ["m", None, 1],
    ]
    of_plan = outputs(compiler.ort, compiler.compile(onnx.load_from_string(source)).data)
    assert of_plan == [["batch", 3, None, None], *[unnamed] * 3, [], []]


DTYPES = [number for number in TensorProto.DataType.values() if number not in (0, 14, 15)]


@pytest.mark.parametrize("number", DTYPES, ids=TensorProto.DataType.Name)
def test_dtypes_have_the_names_and_numbers_of_onnx(number: int) -> None:
    value = helper.make_tensor_value_info("x", number, [2])
    result = helper.make_tensor_value_info("y", number, [2])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [result])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13).SerializeToString()
    if number == TensorProto.STRING or TensorProto.DataType.Name(number).startswith("FLOAT6"):
        return
    session = compiler.ort.InferenceSession(made)
    text = TensorProto.DataType.Name(number).lower()
    assert session.get_inputs()[0].type == f"tensor({text})"
    array = np.zeros(2, helper.tensor_dtype_to_np_dtype(number))
    given = compiler.ort.OrtValue.ortvalue_from_numpy(array)
    (found,) = session.run_with_ort_values(None, {"x": given})
    assert found.data_type() == given.data_type() == f"tensor({text})"
    assert found.element_type() == number
    assert found.numpy().dtype == array.dtype


FAILURES = {
    "Gather": ("g (float[a, b] x, int64[k] i) => (float y) { y = Gather (x, i) }", [ramp(2, 3), np.array([9])]),
    "Reshape": ("g (float[a, b] x, int64[k] i) => (float y) { y = Reshape (x, i) }", [ramp(2, 3), np.array([9])]),
    "MatMul": ("g (float[a, b] x, float[c, d] i) => (float y) { y = MatMul (x, i) }", [ramp(2, 3), ramp(2, 3)]),
    "Expand": ("g (float[a, b] x, int64[k] i) => (float y) { y = Expand (x, i) }", [ramp(2, 3), np.array([5, 5])]),
    "Squeeze": ("g (float[a] x, int64[k] i) => (float y) { y = Squeeze (x, i) }", [ramp(2), np.array([0])]),
}


@pytest.mark.parametrize(("text", "values"), FAILURES.values(), ids=FAILURES)
def test_failed_steps_are_caught_alike(text: str, values: list[Any]) -> None:
    feed = dict(zip("xi", values, strict=True))
    error = assert_same(lambda module: module.InferenceSession(model(text)).run(None, feed))
    assert isinstance(error, compiler.Error)
    assert isinstance(error.__cause__, compiler.RunError)


def wrong_models() -> dict[str, bytes]:
    one = "g (float[1] x) => (float[1] y)"
    damaged = (ROOT / "models/digits.onnx").read_bytes()[:2000]
    return {
        "no bytes": b"",
        "other bytes": b"abc",
        "a damaged model": damaged,
        "an unknown operator": model(f"{one} {{ y = Foo (x) }}"),
        "an unknown domain": model(f"{one} {{ y = my.Foo (x) }}"),
        "a cycle": model(f"{one} {{ a = Add (x, y) y = Neg (a) }}"),
        "an undefined value": model(f"{one} {{ y = Add (x, q) }}"),
        "a value that is defined twice": model(f"{one} {{ y = Neg (x) y = Abs (x) }}"),
        "different types": model("g (float[1] x, int64[1] q) => (float[1] y) { y = Add (x, q) }"),
        "a type without a kernel": model("g (bool[1] x) => (bool[1] y) { y = Neg (x) }"),
        "an output of another type": model("g (float[1] x) => (int64[1] y) { y = Neg (x) }"),
        "shapes that do not fit": model("g (float[2, 3] x, float[2, 3] q) => (float y) { y = MatMul (x, q) }"),
        "an unknown attribute": model(f"{one} {{ y = Neg <zork = 1> (x) }}"),
        "a missing attribute": model(f"{one} {{ y = Concat (x) }}"),
        "a wrong attribute": model(f"{one} {{ y = Cast <to = 999> (x) }}"),
        "a future opset": model(f"{one} {{ y = Neg (x) }}", HEADER.replace("21", "99")),
    }


@pytest.mark.parametrize("name", wrong_models())
def test_wrong_models_are_caught_alike(name: str) -> None:
    data = wrong_models()[name]
    error = assert_same(lambda module: module.InferenceSession(data).get_inputs() and None)
    assert isinstance(error, compiler.Error)


@pytest.mark.parametrize("name", ["no.onnx", "", ".", "other.onnx", "empty.onnx", "outside.onnx"])
def test_files_are_caught_alike(name: str, tmp_path: Path) -> None:
    (tmp_path / "other.onnx").write_bytes(b"hello world, no model")
    (tmp_path / "empty.onnx").write_bytes(b"")
    made = onnx.numpy_helper.from_array(ramp(1), "w")
    onnx.external_data_helper.set_external_data(made, "nowhere.bin")
    made.ClearField("raw_data")
    outside = onnx.load_from_string(model("g (float[1] x) => (float[1] y) { y = Add (x, w) }"))
    outside.graph.initializer.append(made)
    (tmp_path / "outside.onnx").write_bytes(outside.SerializeToString())
    path = str(tmp_path / name) if name else str(tmp_path / "no" / "such" / "folder")
    for source in (path, Path(path)):
        error = assert_same(lambda module, source=source: module.InferenceSession(source))
        assert isinstance(error, compiler.Error)


@pytest.mark.parametrize("source", [3, None, bytearray(b"abc")], ids=str)
def test_other_sources_are_wrong_arguments(source: Any) -> None:
    assert_same(lambda module: module.InferenceSession(source))


def test_what_a_plan_does_not_support_says_so() -> None:
    volume = model("g (float[1, 1, 4, 4, 4] x, float[1, 1, 3, 3, 3] w) => (float y) { y = Conv (x, w) }")
    with pytest.raises(
        errors.NotImplemented, match=r"^\[compiler.ort\] : 9 : NOT_IMPLEMENTED : error\[CC0301\]: 3-D"
    ) as raised:
        compiler.ort.InferenceSession(volume)
    assert isinstance(raised.value.__cause__, compiler.CompileError)


def test_metadata_is_that_of_the_model() -> None:
    made = onnx.load_from_string(model(ADD))
    made.producer_name, made.domain, made.model_version, made.doc_string = "producer", "domain", 7, "text"
    made.graph.doc_string = "graph"
    helper.set_model_props(made, {"names": "ü", "more": "v"})
    for data in (made.SerializeToString(), model(ADD)):

        def metadata(module: Any, data: bytes = data) -> Any:
            found = module.InferenceSession(data).get_modelmeta()
            texts = [found.producer_name, found.graph_name, found.domain, found.description, found.graph_description]
            return [*texts, found.version, found.custom_metadata_map]

        assert_same(metadata)


def test_a_plan_has_the_metadata_that_it_keeps(tmp_path: Path) -> None:
    made = onnx.load_from_string(model(ADD))
    helper.set_model_props(made, {"names": "ü", "more": "v"})
    plan = compiler.compile(made, compiler.Options(keep_metadata=["names"]))
    plan.save(tmp_path / "add.plan")
    for source in (plan.data, tmp_path / "add.plan", str(tmp_path / "add.plan")):
        session = compiler.ort.InferenceSession(source)
        assert session.get_modelmeta() == compiler.ort.ModelMetadata(custom_metadata_map={"names": "ü"})
        assert session.run(["z"], add_inputs())[0].tolist() == (2 * X).tolist()
    with pytest.raises(errors.InvalidProtobuf, match="plan"):
        compiler.ort.InferenceSession(plan.data[:-9])


def test_initializers_are_constants() -> None:
    made = model("g (float[2] x, float[2] W = {1, 2}) => (float[2] y) { y = Add (x, W) }")
    session = compiler.ort.InferenceSession(made)
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert session.get_overridable_initializers() == []
    with pytest.raises(errors.InvalidArgument, match="no input 'W'"):
        session.run(None, {"x": ramp(2), "W": ramp(2)})


@pytest.mark.parametrize(("items", "dtype"), [([1.5], "int64"), ([300], "int8"), ([2], "bool"), ([-1], "uint8")])
def test_a_list_that_the_type_cannot_hold_is_refused(items: list[Any], dtype: str) -> None:
    session = compiler.ort.InferenceSession(model(f"g ({dtype}[n] x) => ({dtype}[n] y) {{ y = Identity (x) }}"))
    with pytest.raises(RuntimeError, match="input 'x': could not create a tensor"):
        session.run(None, {"x": items})


def finished(session: Any, names: Any, feed: Any) -> list[Any]:
    """The arguments that `run_async` passes to its callback; a boolean replaces the text of the error."""
    done, found = threading.Event(), list[Any]()

    def callback(results: Any, user_data: Any, error: str) -> None:
        found.extend([list(results), user_data, error != ""])
        done.set()

    assert session.run_async(names, feed, callback, "mine") is None
    assert done.wait(60)
    return found


@pytest.mark.parametrize("feed", ["arrays", "float64", "a wrong size", "an input less"])
@pytest.mark.parametrize("names", [None, ["w"]], ids=str)
def test_asynchronous_runs_call_back_alike(feed: str, names: Any) -> None:
    def run(module: Any) -> Any:
        options = module.SessionOptions()
        options.intra_op_num_threads = 2
        return finished(module.InferenceSession(model(ADD), options), names, FEEDS[feed])

    assert_same(run)


def test_the_outputs_of_a_model_are_those_of_onnxruntime() -> None:
    with np.load(ROOT / "models/digits.npz") as arrays:
        pictures = arrays["picture"]

    def run(module: Any) -> Any:
        session = module.InferenceSession(ROOT / "models/digits.onnx", providers=["CPUExecutionProvider"])
        assert [arg.type for arg in session.get_outputs()] == ["tensor(float)"] * 2
        return [array.round(2) + 0.0 for array in session.run(None, {session.get_inputs()[0].name: pictures})]

    expected, found = (run(module) for module in (__import__("onnxruntime"), compiler.ort))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)
