"""Plans that keep the weights of their models, and sessions with other weights."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
from safetensors.numpy import save_file

import compiler
from compiler import Options
from tests.gguf_files import gguf, matrix, plain

Array = np.ndarray[Any, Any]
HEAD = '<ir_version: 10, opset_import: ["": 21]> m '

MODELS = {
    "a linear layer": "(float[n, 4] x) => (float[n, 3] y) { y = Gemm <transB = 1> (x, w, b) }",
    "a transposed matrix": "(float[n, 4] x) => (float[n, 3] y) { t = Transpose(w) p = MatMul(x, t) y = Add(p, b) }",
    "a normed matrix": """(float[n, 4] x) => (float[n, 3] y) {
        norm = ReduceL2 <keepdims = 1> (w, axes) unit = Div(w, norm) y = Gemm <transB = 1> (x, unit, b) }""",
    "a branch": """(float[n, 4] x, bool c) => (float[n, 3] y) {
        y = If (c) <
            then_branch = g () => (float[n, 3] a) { a = Gemm <transB = 1> (x, w, b) },
            else_branch = g () => (float[n, 3] a) { t = Transpose(w) a = MatMul(x, t) }> }""",
    "an output": "(float[n, 4] x) => (float[n, 3] y, float[3] z) { y = Gemm <transB = 1> (x, w, b) z = Identity(b) }",
}


def model(text: str, **weights: Array) -> onnx.ModelProto:
    made = onnx.parser.parse_model(HEAD + text)
    constants = {**weights, "axes": np.array([1], np.int64)} if "axes" in text else weights
    for name, array in constants.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ones(text: str) -> onnx.ModelProto:
    """A model whose weights invite passes to drop or join them."""
    return model(text, w=np.ones((3, 4), np.float32), b=np.zeros(3, np.float32))


def inputs(text: str) -> dict[str, Array]:
    given = {"x": numbers(2, 4, seed=9)}
    return given | ({"c": np.array(True)} if "bool c" in text else {})


LINEAR = MODELS["a linear layer"]
KEPT = Options(keep_weights=True)


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("memory", ["full", "low"])
def test_a_session_computes_the_model_with_other_weights(text: str, memory: Any) -> None:
    weights = {"w": numbers(3, 4, seed=1), "b": numbers(3, seed=2)}
    plan = compiler.compile(ones(text), KEPT)
    assert {info.name for info in plan.weights} == {"w", "b"}
    session = compiler.load(plan, threads=1, memory=memory)
    expected = compiler.load(compiler.compile(model(text, **weights)), threads=1).run(inputs(text))
    for made in (session.with_weights(weights), compiler.load(plan, threads=1, memory=memory, weights=weights)):
        for name, array in made.run(inputs(text)).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)
    kept = compiler.load(compiler.compile(ones(text)), threads=1).run(inputs(text))
    for name, array in session.run(inputs(text)).items():  # it has its own weights as before
        np.testing.assert_allclose(array, kept[name], rtol=1e-5, atol=1e-6)


NETWORKS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "a convolution": (
        """(float[1, 2, 5, 5] x) => (float[1, 3, h, v] y) {
        c = Conv (x, w, b) n = BatchNormalization (c, scale, shift, mean, var) y = Relu (n) }""",
        {"w": (3, 2, 3, 3), "b": (3,), "scale": (3,), "shift": (3,), "mean": (3,), "var": (3,)},
    ),
    "a recurrent layer": (
        "(float[4, 1, 3] x) => (float[4, 1, 1, 2] y) { y = LSTM <hidden_size = 2> (x, w, r, b) }",
        {"w": (1, 8, 3), "r": (1, 8, 2), "b": (1, 16)},
    ),
    "a norm of a layer": (
        "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = LayerNormalization (x, scale, shift) }",
        {"scale": (4,), "shift": (4,)},
    ),
    "a slope": ("(float[2, 3] x) => (float[2, 3] y) { y = PRelu (x, w) }", {"w": (3,)}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_operators_take_other_weights(name: str) -> None:
    text, shapes = NETWORKS[name]
    plan = compiler.compile(model(text, **{name: np.ones(shape, np.float32) for name, shape in shapes.items()}), KEPT)
    assert {info.name for info in plan.weights} == set(shapes)
    weights = {name: np.abs(numbers(*shape, seed=len(name))) for name, shape in shapes.items()}
    size = [int(dim or 0) for dim in plan.inputs[0].shape or ()]
    given = {"x": numbers(*size, seed=7)}
    found = compiler.load(plan, threads=1, weights=weights).run(given)["y"]
    expected = compiler.load(compiler.compile(model(text, **weights)), threads=1).run(given)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_equal_weights_stay_two() -> None:
    text = "(float[n, 3] x) => (float[n, 3] y) { s = Mul(x, a) y = Mul(s, b) }"
    plan = compiler.compile(model(text, a=np.ones(3, np.float32), b=np.ones(3, np.float32)), KEPT)
    session = compiler.load(plan, threads=1).with_weights({"b": np.full(3, 2, np.float32)})
    np.testing.assert_array_equal(session.run({"x": np.ones((1, 3), np.float32)})["y"], [[2, 2, 2]])
    session = compiler.load(plan, threads=1).with_weights({"a": np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(session.run({"x": np.ones((1, 3), np.float32)})["y"], [[1, 2, 3]])


def test_transposed_weights_cost_nothing_in_a_run() -> None:
    text = MODELS["a normed matrix"]
    plan = compiler.compile(model(text, w=numbers(3, 4), b=numbers(3)), KEPT)
    ran = [step.op for step in compiler.load(plan, threads=1).placed_steps]
    assert ran == ["Gemm"]
    assert {next(iter(step["op"])) for step in plan.document["main"]["steps"]} > {"Gemm"}


def test_files_of_weights(tmp_path: Path) -> None:
    plan, path = compiler.compile(ones(LINEAR), KEPT), tmp_path / "tuned.safetensors"
    save_file({"w": numbers(3, 4)}, path)
    plan.save(tmp_path / "kept.plan")
    expected = inputs(LINEAR)["x"] @ numbers(3, 4).T
    for source in (plan, tmp_path / "kept.plan"):
        session = compiler.load(source, threads=1).with_weights(path)
        np.testing.assert_allclose(session.run(inputs(LINEAR))["y"], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(FileNotFoundError):
        session.with_weights(tmp_path / "absent.safetensors")
    path.write_bytes(b"no weights")
    with pytest.raises(ValueError, match="neither a safetensors file nor a GGUF file"):
        session.with_weights(path)


PRODUCTS = {
    "with a bias": ("(float[n, 64] x) => (float[n, 2] y) { y = Gemm <transB = 1> (x, w, b) }", True),
    "with an activation": (
        "(float[n, 64] x) => (float[n, 2] y) { t = Transpose(w) p = MatMul(x, t) s = Add(p, b) y = Relu(s) }",
        True,
    ),
    "of a matrix that is an output": (
        """(float[n, 64] x) => (float[n, 2] y, float[2, 64] v) {
        t = Transpose(w) p = MatMul(x, t) y = Add(p, b) v = Identity(w) }""",
        False,
    ),
}


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", PRODUCTS)
def test_quantized_tensors_of_gguf_files(tmp_path: Path, bits: int, name: str) -> None:
    text, has_codes = PRODUCTS[name]
    path, made = tmp_path / "tuned.gguf", matrix(f"Q{bits}_0", 2, 64)
    w, stored = made.numbers, made.stored()
    path.write_bytes(gguf({"w": stored, "b": plain(np.ones(2, np.float32))}))
    plan = compiler.compile(model(text, w=numbers(2, 64), b=numbers(2)), KEPT)
    session = compiler.load(plan, threads=1, weights=path)
    x = numbers(3, 64, seed=4)
    found, expected = session.run({"x": x}), x @ w.T + 1
    wanted = np.maximum(expected, 0) if "Relu" in text else expected
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-5)
    if "v" in found:
        np.testing.assert_array_equal(found["v"], w)
    assert has_codes == ("MatMulNBits" in {step.op for step in session.placed_steps})
    assert [str(info) for info in session.weights] == ["float32 [2, 64]", "float32 [2]"]
    path.write_bytes(gguf({"w": (stored[0], (4, 32), stored[2])}))
    with pytest.raises(ValueError, match=rf"expected float32 \[2, 64\], found Q{bits}_0 \[4, 32\]"):
        compiler.load(plan, threads=1, weights=path)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"w": numbers(4, 3)}, 'weight "w": expected float32 [3, 4], found float32 [4, 3]'),
        ({"w": numbers(3, 4).astype(np.float64)}, 'weight "w": expected float32 [3, 4], found float64 [3, 4]'),
        ({"v": numbers(3)}, '"v": the plan has no such weight. Similar names: "b", "w".'),
        ({"layer.w": numbers(3)}, '"layer.w": the plan has no such weight. If the model has it: compile the model'),
        ({"w": ["a"]}, 'weight "w": expected an array of numbers, found sequence of 1'),
        ({"w": np.array(["a"])}, 'weight "w": expected an array of numbers, found string [1]'),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights: dict[str, Any], said: str) -> None:
    plan = compiler.compile(ones(LINEAR), KEPT)
    with pytest.raises(ValueError) as error:
        compiler.load(plan, threads=1, weights=weights)
    assert said in str(error.value)


def test_names_and_values_are_checked() -> None:
    plan = compiler.compile(ones(LINEAR), KEPT)
    session = compiler.load(plan, threads=1)
    with pytest.raises(TypeError, match="a name in weights"):
        session.with_weights({1: numbers(3)})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="the path of a file, or a dict"):
        session.with_weights(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        session.with_weights({"w": np.zeros((3, 4), np.complex64)})


def test_a_plan_that_folds_weights_refuses_others() -> None:
    plan = compiler.compile(ones(LINEAR))
    assert plan.weights == [] and "weights" not in plan.document
    with pytest.raises(ValueError, match=r"the plan lists no weights.*Options\(keep_weights=True\)"):
        compiler.load(plan, threads=1).with_weights({"w": numbers(3, 4)})


def test_a_plan_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.plan"
    compiler.compile(ones(LINEAR), KEPT).save(path)
    session = compiler.load(path, threads=1)
    compiler.compile(ones(MODELS["a transposed matrix"]), KEPT).save(path)
    with pytest.raises(compiler.PlanError, match="no longer the plan of this session"):
        session.with_weights({"b": numbers(3)})


def test_the_arrays_may_change_afterwards() -> None:
    plan, w = compiler.compile(ones(LINEAR), KEPT), np.full((3, 4), 2, np.float32)
    session = compiler.load(plan, threads=1).with_weights({"w": w})
    w[:] = 7
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], [[8, 8, 8]])


def test_constants_by_name() -> None:
    plan = compiler.compile(model(LINEAR, w=numbers(3, 4), b=numbers(3)), KEPT)
    found = plan.constants
    assert list(found) == ["w", "b"] and not found["w"].flags.writeable
    np.testing.assert_array_equal(found["w"], numbers(3, 4))
    session = compiler.load(plan, threads=1)
    assert [str(info) for info in session.constants] == [str(info) for info in session.weights]
    assert [str(info) for info in session.weights] == ["float32 [3, 4]", "float32 [3]"]
    assert session.with_weights({}).weights == session.weights
    assert session.clone().with_weights({"b": numbers(3)}).threads == 1


def test_half_precision_and_scalars() -> None:
    text = "(bfloat16[n, 2] x) => (bfloat16[n, 2] y) { s = Mul(x, w) y = Add(s, one) }"
    bits = np.ones(2, ml_dtypes.bfloat16)
    plan = compiler.compile(model(text, w=bits, one=np.array(1, ml_dtypes.bfloat16)), KEPT)
    assert [info.name for info in plan.weights] == ["w"]  # one element is no weight
    session = compiler.load(plan, threads=1).with_weights({"w": bits * 2})
    assert session.run({"x": np.ones((1, 2), ml_dtypes.bfloat16)})["y"].tolist() == [[3, 3]]


def test_scales_of_images_are_no_weights() -> None:
    text = '(float[1, 1, 2, 2] x) => (float[1, 1, h, w] y) { y = Resize <mode = "nearest"> (x, , scales) }'
    plan = compiler.compile(model(text, scales=np.array([1, 1, 2, 2], np.float32)), KEPT)
    assert plan.weights == []


def test_options_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="leave it out, or keep_weights"):
        Options(keep_weights=True, weights="int8")
    with pytest.raises(TypeError, match=r"Options\.keep_weights"):
        Options(keep_weights="all")  # type: ignore[arg-type]


def test_the_session_does_not_keep_the_plan() -> None:
    plan = compiler.compile(ones(LINEAR), KEPT)
    session = compiler.load(plan, threads=1)
    assert session._source() is plan
    del plan
    gc.collect()
    assert session._source() is None
    with pytest.raises(ValueError, match="no longer in memory"):
        session.with_weights({"b": numbers(3)})


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_parameters_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    stored = numbers(3, 4).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float32)
    kind = dtype.removesuffix("32")
    text = f"({kind}[n, 3] x) => ({kind}[n, 4] y) {{ y = MatMul (x, w) }}"
    plan = compiler.compile(model(text, w=stored), KEPT)
    new = torch.nn.Parameter(torch.ones(3, 4, dtype=getattr(torch, dtype)))
    x = np.ones((2, 3), stored.dtype)
    np.testing.assert_array_equal(compiler.load(plan, threads=1, weights={"w": new}).run({"x": x})["y"], 3)
