"""The exporter: symbolic dims, names of outputs, and traces that do not reveal the machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

import compiler
from compiler.frontend.source_lines import relative_trace

ROOT = Path("/home/ann/project")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/home/ann/project/nets/unet.py", "nets/unet.py"),
        ("/home/ann/other/unet.py", "unet.py"),
        ("/home/ann/project/.venv/lib/python3.12/site-packages/torch/nn/x.py", "site-packages/torch/nn/x.py"),
        ("/usr/lib/python3.12/functools.py", "python3.12/functools.py"),
        ("<string>", "<string>"),
        ("nets/unet.py", "nets/unet.py"),
    ],
)
def test_file_names_become_relative(name: str, expected: str) -> None:
    trace = f'  File "{name}", line 3, in forward\n    return self.conv(x)\n'
    assert relative_trace(trace, ROOT) == f'  File "{expected}", line 3, in forward\n    return self.conv(x)\n'


@pytest.fixture
def linear() -> Any:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    return torch.nn.Linear(3, 2)


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(*shape)


def test_export_names_dims_and_outputs(linear: Any, tmp_path: Path) -> None:
    path = compiler.export(
        linear, (zeros(4, 3),), tmp_path / "m.onnx", dynamic={"input": {0: "batch"}}, outputs=["scores"]
    )
    graph = onnx.load(path).graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [output.name for output in graph.output] == ["scores"]


def test_export_tells_nothing_and_leaves_the_module_as_it_is(
    linear: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    import torch

    module = torch.nn.Sequential(linear, torch.nn.Dropout(), torch.nn.Dropout().eval())
    compiler.export(module, (zeros(4, 3),), tmp_path / "m.onnx")
    assert [part.training for part in module.modules()] == [True, True, True, False]
    assert [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node if node.op_type == "Dropout"] == []
    assert capfd.readouterr() == ("", "")
    # Files of other tests that nobody has closed may be noticed now.
    assert not [each for each in recwarn if each.category is not ResourceWarning]


class Pair(NamedTuple):
    """Two tensors under their names."""

    first: Any
    second: Any


def test_dims_vary_beside_a_namedtuple(linear: Any, tmp_path: Path) -> None:
    import torch

    class Sum(torch.nn.Module):
        def forward(self, x: Any, pair: Pair) -> Any:
            return x + pair.first + pair.second

    given = (zeros(4, 3), Pair(zeros(3), zeros(1)))
    path = compiler.export(Sum(), given, tmp_path / "m.onnx", dynamic={"x": {0: "batch"}})
    inputs = [each.type.tensor_type.shape.dim for each in onnx.load(path).graph.input]
    shapes = [[dim.dim_param or dim.dim_value for dim in dims] for dims in inputs]
    assert shapes == [["batch", 3], [3], [1]]


def test_dims_of_one_argument_may_vary_beside_others_that_do_not(linear: Any, tmp_path: Path) -> None:
    import torch

    class Sum(torch.nn.Module):
        def forward(self, x: Any, more: list[Any], scale: int = 1) -> Any:
            return x + (more[0] + more[1]) * scale

    given = (zeros(4, 3), [zeros(1, 3), zeros(1, 3)], 2)
    path = compiler.export(Sum(), given, tmp_path / "m.onnx", dynamic={"x": {-2: "batch size"}})
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["batch size", 3]


def test_arguments_by_name(linear: Any, tmp_path: Path) -> None:
    import torch

    class Scaled(torch.nn.Module):
        def forward(self, x: Any, scale: Any = None, *, tables: dict[str, Any], **more: Any) -> Any:
            return x * scale + tables["a"] - more["shift"]

    kwargs = {"tables": {"a": zeros(3)}, "scale": zeros(4, 1), "shift": zeros(1)}
    path = compiler.export(
        Scaled(), (zeros(4, 3),), tmp_path / "m.onnx", dynamic={"x": {0: "n"}, "scale": {0: "n"}}, kwargs=kwargs
    )
    session = compiler.load(compiler.compile(path))
    assert sorted(info.name for info in session.inputs) == ["scale", "shift", "tables_a", "x"]
    given = {"x": np.ones((2, 3)), "scale": [[2], [3]], "tables_a": [1, 2, 3], "shift": [4]}
    (found,) = session.run({name: np.float32(value) for name, value in given.items()}).values()
    assert found.tolist() == [[-1, 0, 1], [0, 1, 2]]


def test_an_output_that_is_an_input_has_its_own_name(linear: Any, tmp_path: Path) -> None:
    import torch

    class Same(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x, x * 2, x

    path = compiler.export(Same(), (zeros(2),), tmp_path / "m.onnx", outputs=("a", "mul", "c"))
    graph = onnx.load(path).graph
    assert [value.name for value in graph.input] == ["x"]
    outputs = compiler.load(compiler.compile(path)).run({"x": np.float32([1, 2])})
    assert {name: value.tolist() for name, value in outputs.items()} == {"a": [1, 2], "mul": [2, 4], "c": [1, 2]}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"outputs": ("a", "b")}, ValueError, "outputs: expected a name for each output (linear), found 2 names"),
        ({"outputs": "scores"}, TypeError, "outputs: expected a list of names, found 'scores'"),
        ({"outputs": ["input"]}, ValueError, "an input or another output has the name 'input' too"),
        ({"kwargs": [1]}, TypeError, "kwargs: expected a dict of arguments by name, found list"),
        ({"kwargs": {"y": 1}}, TypeError, "args and kwargs: Linear.forward does not accept them: got an unexpected"),
        ({"opset": 99}, ValueError, "opset 99: choose one from 18 to "),
        ({"opset": 17}, ValueError, "opset 17: choose one from 18 to "),
        ({"dynamic": [0]}, TypeError, 'dynamic: expected a dict, as {"x": {0: "batch"}}, found list'),
        (
            {"dynamic": {"x": {0: "batch"}}},
            ValueError,
            "dynamic: the module has no argument 'x'; its arguments are input",
        ),
        ({"dynamic": {"input": {7: "batch"}}}, ValueError, "dynamic: 'input' has 2 dims, but no dim 7"),
        ({"dynamic": {"input": {0: 4}}}, TypeError, "dynamic: 'input': dim 0: expected a name, found 4"),
        ({"dynamic": {"input": ["batch"]}}, TypeError, "dynamic: 'input': expected a dict"),
        ({"dynamic": {"input": {0: "n", 1: "n"}}}, ValueError, "the dims 'n' have different sizes in args, 4 and 3"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, Any], error: type[Exception], said: str, linear: Any, tmp_path: Path
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        compiler.export(linear, (zeros(4, 3),), tmp_path / "m.onnx", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "args", "said"),
    [
        ("class", ((4, 3),), "module: expected a torch.nn.Module, found the class Linear"),
        ("name", ((4, 3),), "module: expected a torch.nn.Module, found str"),
        ("module", (4, 3), "args: expected a tuple of the module's arguments, as (x,), found Tensor"),
        ("module", ((4, 3), (4, 3)), "args: Linear.forward does not accept them: too many positional arguments"),
    ],
)
def test_wrong_arguments_are_refused(kind: str, args: tuple[Any, ...], said: str, linear: Any, tmp_path: Path) -> None:
    module = {"class": type(linear), "name": "linear", "module": linear}[kind]
    given = tuple(zeros(*shape) for shape in args) if isinstance(args[0], tuple) else zeros(*args)
    with pytest.raises(TypeError, match=re.escape(said)):
        compiler.export(module, given, tmp_path / "m.onnx")


def test_a_refusal_of_pytorch_is_one_line_and_its_cure(linear: Any, tmp_path: Path) -> None:
    import torch

    class Branch(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(Branch(), (zeros(3),), tmp_path / "m.onnx", exporter="dynamo")
    said, help_ = str(raised.value).splitlines()
    assert re.match(
        r"PyTorch cannot export Branch: \w+: Could not guard on data-dependent .*"
        r"\(Branch, tests/test_export\.py:\d+ in Branch\.forward\)$",
        said,
    )
    assert help_.startswith("  help: a branch in the code depends on the value of a tensor")


def test_an_opset_that_the_exporter_cannot_write_is_refused(linear: Any, tmp_path: Path) -> None:
    from onnxscript import version_converter

    newest = version_converter._version_converter.SUPPORTED_MAX_ONNX_OPSET
    path = compiler.export(linear, (zeros(4, 3),), tmp_path / "m.onnx", opset=newest)
    assert onnx.load(path).opset_import[0].version == newest
    if newest == onnx.defs.onnx_opset_version():
        pytest.skip("the exporter writes every opset that onnx knows")
    with pytest.raises(compiler.ExportError, match=f"cannot write Linear in opset {newest + 1}"):
        compiler.export(linear, (zeros(4, 3),), tmp_path / "n.onnx", opset=newest + 1)
    assert not (tmp_path / "n.onnx").exists()


def test_without_pytorch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "candle-compiler[export]"')):
        compiler.export(None, (), tmp_path / "m.onnx")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["digits", "digits_3d"])
def test_committed_models_name_no_machine(name: str) -> None:
    data = (Path(__file__).parent.parent / f"models/{name}.onnx").read_bytes()
    assert f'File "models/{name}.py"'.encode() in data
    assert not any(place in data for place in (b"/home/", b"/root/", b"/work/", b"/usr/"))
