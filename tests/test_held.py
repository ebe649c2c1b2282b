"""Models that a program holds in memory: `onnx_ir.Model`, `torch.onnx.ONNXProgram`, `torch.export.ExportedProgram`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

import compiler
from compiler.frontend.load import load_model

DIGITS = Path(__file__).parent.parent / "models/digits.onnx"
TEXT = """<ir_version: 10, opset_import: ["": 20, "own": 1], metadata_props: ["key": "value"]>
m (float[n, 40] x) => (float[n, 40] y)
{ p = MatMul(x, w)  q = Add(p, b)  y = own.twice(q) }
<domain: "own", opset_import: ["": 20]> twice (x) => (y) { y = Add(x, x) }"""


def model_of(weights: dict[str, ir.TensorProtocol], text: str = TEXT) -> ir.Model:
    model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    values = {value.name: value for node in model.graph for value in node.inputs if value is not None}
    for name, tensor in weights.items():
        values[name].const_value = tensor
        model.graph.register_initializer(values[name])
    return model


def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {name: generator.random(shape, np.float32) for name, shape in {"w": (40, 40), "b": (40,)}.items()}


def tensors() -> dict[str, ir.TensorProtocol]:
    return {name: ir.tensor(array, name=name) for name, array in weights().items()}


def outputs(source: Any, **options: Any) -> np.ndarray:
    session = compiler.load(compiler.compile(source, compiler.Options(**options)), threads=1)
    x = np.random.default_rng(1).random((3, 40), np.float32)
    (found,) = session.run({session.inputs[0].name: x}).values()
    return np.asarray(found)


def test_an_ir_model_is_compiled_like_its_file(tmp_path: Path) -> None:
    model = model_of(tensors())
    ir.save(model, tmp_path / "m.onnx")
    expected = outputs(tmp_path / "m.onnx")
    np.testing.assert_array_equal(outputs(model), expected)
    held = weights()
    x = np.random.default_rng(1).random((3, 40), np.float32)
    np.testing.assert_allclose(expected, 2 * (x @ held["w"] + held["b"]), rtol=1e-5)


def test_a_plan_of_an_ir_model_keeps_names_and_metadata() -> None:
    plan = compiler.compile(model_of(tensors()), compiler.Options(keep_metadata=["key"]))
    assert plan.document["metadata"] == {"key": "value"}
    assert [info.name for info in compiler.load(plan).inputs] == ["x"]


def test_the_model_stays_as_it_is() -> None:
    for path in (DIGITS, None):
        model = ir.load(path) if path else model_of(tensors())
        before = ir.serde.serialize_model(model).SerializeToString(deterministic=True)
        held = {name: value.const_value for name, value in model.graph.initializers.items()}
        plans = {compiler.compile(model).data for _ in range(2)}
        assert len(plans) == 1
        assert ir.serde.serialize_model(model).SerializeToString(deterministic=True) == before
        assert all(held[name] is value.const_value for name, value in model.graph.initializers.items())


def test_large_weights_are_not_copied() -> None:
    model = model_of(tensors())
    loaded = load_model(model).model
    for name in ("w", "b"):
        here, there = (each.graph.initializers[name].const_value for each in (model, loaded))
        shares = np.shares_memory(here.numpy(), there.numpy())
        assert shares == (name == "w"), "b is small"
        assert here is not there


def test_the_hash_depends_on_every_weight() -> None:
    hashes = [load_model(model_of(tensors())).sha256 for _ in range(2)]
    for name in ("w", "b"):
        changed = weights()
        changed[name].flat[-1] += 1
        hashes.append(load_model(model_of({key: ir.tensor(array, name=key) for key, array in changed.items()})).sha256)
    assert len(hashes) - len(set(hashes)) == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "float16"])
def test_weights_of_other_dtypes(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.arange(-2000, 2000).reshape(40, 100).clip(-8, 7).astype(kind)
    text = (
        '<ir_version: 11, opset_import: ["": 23]> m (float x) => (float[40, 100] y) { c = Cast<to=1>(w) y = Add(c, x) }'
    )
    model = model_of({"w": ir.tensor(array, dtype=ir.DataType.from_numpy(kind), name="w")}, text)
    found = compiler.load(compiler.compile(model)).run({"x": np.float32(1)})["y"]
    np.testing.assert_array_equal(found, array.astype(np.float32) + 1)


def test_weights_in_files(tmp_path: Path) -> None:
    expected = outputs(model_of(tensors()))
    ir.save(model_of(tensors()), tmp_path / "m.onnx", external_data="m.data", size_threshold_bytes=0)
    model = ir.load(tmp_path / "m.onnx")
    assert isinstance(model.graph.initializers["w"].const_value, ir.ExternalTensor)
    np.testing.assert_array_equal(outputs(model), expected)


def failing(*_: object) -> np.ndarray:
    raise OSError("the disk is gone")


class Broken(ir.Tensor):
    numpy = tobytes = failing


def in_two_folders(tmp_path: Path) -> ir.Model:
    loaded = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ir.save(model_of(tensors()), tmp_path / name / "m.onnx", external_data="m.data", size_threshold_bytes=0)
        loaded.append(ir.load(tmp_path / name / "m.onnx"))
    loaded[0].graph.initializers["b"].const_value = loaded[1].graph.initializers["b"].const_value
    return loaded[0]


def outside(tmp_path: Path) -> ir.Model:
    in_two_folders(tmp_path)
    external = ir.ExternalTensor(
        "../two/m.data", 0, 6400, ir.DataType.FLOAT, shape=ir.Shape([40, 40]), name="w", base_dir=tmp_path / "one"
    )
    return model_of({**tensors(), "w": external})


WRONG: dict[str, tuple[Callable[[Path], ir.Model], str, str]] = {
    "unreadable": (
        lambda _: model_of({**tensors(), "w": Broken(weights()["w"])}),
        "CC0101",
        "the weight 'w': the disk is gone",
    ),
    "two folders": (in_two_folders, "CC0103", "the weights of the model are in several folders"),
    "outside": (outside, "CC0103", "which is outside the model's folder"),
    "no weight": (lambda _: model_of({"w": tensors()["w"]}), "CC0106", "'b'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_models(name: str, tmp_path: Path) -> None:
    build, code, message = WRONG[name]
    with pytest.raises(compiler.CompileError, match=message) as caught:
        compiler.compile(build(tmp_path))
    assert {each.code for each in caught.value.diagnostics} == {code}


def test_objects_of_pytorch(quick_exports: None) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)).eval()
    x = torch.from_numpy(np.random.default_rng(1).random((3, 40), np.float32))
    exported = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("n")},))
    before = str(exported)
    program = torch.onnx.export(exported, dynamo=True, verbose=False, optimize=False)
    with torch.no_grad():
        expected = module(x).numpy()
    for source in (exported, program, program.model):
        np.testing.assert_allclose(outputs(source), expected, rtol=1e-5, atol=1e-6)
    assert str(exported) == before
    session = compiler.load(compiler.compile(exported))
    assert session(np.ones((5, 40), np.float32)).shape == (5, 3)


def test_a_program_that_pytorch_cannot_translate(quick_exports: None) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Airy(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.special.airy_ai(x)

    exported = torch.export.export(Airy(), (torch.ones(3),))
    with pytest.raises(compiler.ExportError, match=r"cannot export the ExportedProgram.*airy_ai"):
        compiler.compile(exported)
