"""The choice of an exporter: the older one where the present one refuses a module, what both say, and the check."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from tests.exports.nets import Counting  # noqa: E402
from tests.layers.layer import f32  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_exports")
nn = torch.nn
HERE = "tests/exports/test_exporters.py"


class Branch(nn.Module):
    """Decides by a value of the input."""

    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        return -x


class Repeated(nn.Module):
    """Two modules. The second branches on a value, and both branches give the same result."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 4), Same())

    def forward(self, x: Any, *, scale: Any, more: dict[str, Any]) -> dict[str, Any]:
        y = self.encoder(x) * scale
        return {"hidden": y, "pair": (y + more["a"], x)}


class Same(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1 if bool((x > 100).all()) else 1 + x


def exported(module: Any, args: tuple[Any, ...], path: Path, **options: Any) -> list[str]:
    """What `compiler.export` warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        compiler.export(module, args, path, **options)
    return [str(each.message) for each in caught if each.category is ExportWarning]


def test_auto_takes_the_older_exporter_and_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    given = {"scale": f32(4), "more": {"a": f32(4)}}
    dynamic = {"x": {0: "batch"}}
    module = Repeated().eval()
    reason, kept = exported(module, (f32(3, 4),), path, kwargs=given, dynamic=dynamic)
    line = Same.forward.__code__.co_firstlineno + 1
    assert re.search(
        rf"the TorchScript exporter wrote the model, because the present exporter refuses it: \w+: Could not guard on "
        rf"data-dependent expression .*\(encoder\.1 : Same, tests/exports/test_exporters\.py:{line} in Same\.forward\)",
        reason,
    )
    assert f"the model keeps what Python decided for these arguments at {HERE}:{line}" in kept
    assert capfd.readouterr().out == ""
    graph = onnx.load(path).graph
    assert [value.name for value in graph.input] == ["x", "scale", "more_a"]
    assert [value.name for value in graph.output] == ["hidden", "pair_0", "pair_1"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert {each.name for each in graph.initializer} >= {"encoder.0.bias"}
    assert not [node.name for node in graph.node if "recorded_module" in node.name]
    text = path.read_bytes()
    assert not any(place in text for place in (b"/home/", b"/root/", b"/work/", b"/usr/"))
    assert module.training is False


def test_a_recorded_model_has_origins(tmp_path: Path) -> None:
    given = {"scale": f32(4), "more": {"a": f32(4)}}
    options = {"exporter": "torchscript", "check": False}
    path = compiler.export(Repeated(), (f32(3, 4),), tmp_path / "m.onnx", kwargs=given, **options)
    origins = [str(node) for node in compiler.compile(path, compiler.Options(optimize=False)).document["origins"]]
    line = Same.forward.__code__.co_firstlineno + 1
    assert any("encoder.1" in each and f"test_exporters.py:{line}" in each for each in origins), origins


def test_the_check_finds_a_branch_that_the_model_keeps(tmp_path: Path) -> None:
    given = torch.tensor([3.0, 2.0, -4.0])
    line = Branch.forward.__code__.co_firstlineno + 1
    with pytest.warns(ExportWarning, match="TorchScript"), pytest.raises(compiler.ExportError) as raised:
        compiler.export(Branch(), (given,), tmp_path / "m.onnx", locate=True)
    said = str(raised.value)
    assert re.search(r"m\.onnx does not compute what Branch computes with other values: output 'output' differs", said)
    assert f"note: the model keeps what Python decided for these arguments at {HERE}:{line}" in said
    assert "help: the module takes another way through its Python code with these arguments after " in said
    assert "help: a branch in the code depends on the value of a tensor: write torch.where or torch.cond" in said


def test_dynamo_alone_names_place_and_cure(tmp_path: Path) -> None:
    line = Branch.forward.__code__.co_firstlineno + 1
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(nn.Sequential(nn.ReLU(), Branch()), (f32(3),), tmp_path / "m.onnx", exporter="dynamo")
    reason = raised.value.reason
    assert reason is not None
    assert (reason.module, reason.line) == ("1 : Branch", f"tests/exports/test_exporters.py:{line} in Branch.forward")
    assert "torch.where or torch.cond instead of `if`" in reason.cure
    assert str(raised.value).endswith(f"help: {reason.cure}")
    assert not list(tmp_path.iterdir())


class Sized(nn.Module):
    def forward(self, x: Any, count: Any) -> Any:
        return x.new_zeros(int(count)) + x.sum() if int(count) > 2 else x


class Airy(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.special.airy_ai(x)


class Turned(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.view_as_real(torch.linalg.eig(x)[0])


class Fixed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(4, -1) * torch.ones(4, 1) if x.shape[0] == 4 else x


BOTH = {
    "an operator": (
        Airy(),
        (f32(3),),
        r"PyTorch cannot export Airy: it does not translate aten\.special_airy_ai to ONNX \(Airy, "
        r"tests/exports/test_exporters\.py:\d+ in \w*\.?forward\)\n  the TorchScript exporter: .*airy_ai.*\n  "
        r"help: write it with other operators, or give its ONNX function with "
        r"custom_translation_table=\{torch\.ops\.aten\.special_airy_ai\.default: …\}",
    ),
    "a layer that resizes a tensor": (
        nn.Sequential(nn.ReLU(), nn.CrossMapLRN2d(3)),
        (f32(1, 4, 3, 3),),
        r"the storage of a tensor on .* \(1 : CrossMapLRN2d.*\)\n  the TorchScript exporter: .*\n  help: the code "
        r"gives a tensor other memory .* such as torch\.nn\.CrossMapLRN2d$",
    ),
    "complex numbers": (Turned(), (f32(3, 3),), r"aten\.linalg_eig.*\n  the TorchScript exporter: "),
}


@pytest.mark.parametrize("name", BOTH)
def test_where_both_exporters_fail_the_error_names_place_and_cure(name: str, tmp_path: Path) -> None:
    module, given, said = BOTH[name]
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(module, given, tmp_path / "m.onnx")
    assert re.search(said, str(raised.value), re.DOTALL), str(raised.value)
    assert raised.value.__cause__ is not None
    assert not list(tmp_path.iterdir())


class Summed(nn.Module):
    """Operators that the older exporter lacks, or writes with types that ONNX does not allow."""

    def forward(self, x: Any, i: Any) -> Any:
        around = {"prepend": x[:, :1] - 1, "append": x[:, :2]}
        differences = torch.diff(x), torch.diff(i, 2, dim=0), torch.diff(x, **around)
        return *differences, (x > 0).cumsum(1), i.int().cumsum(0), i.cumsum(0, dtype=torch.float32), x.cumsum(-1)


@pytest.mark.parametrize("opset", [None, 13])
def test_the_older_exporter_has_more_functions(opset: int | None, tmp_path: Path) -> None:
    given = f32(4, 5), torch.arange(20).reshape(4, 5) ** 2
    dynamic = {name: {0: "n"} for name in ("x", "i")}
    assert not exported(Summed(), given, tmp_path / "m.onnx", dynamic=dynamic, exporter="torchscript", opset=opset)


class Changed(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.diff(x > 0)


def test_a_reason_of_the_older_exporter_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(Changed(), (f32(3, 4),), tmp_path / "m.onnx", exporter="torchscript")
    reason = raised.value.reason
    assert reason is not None and reason.said.endswith("ONNX export of operator aten::diff, of booleans.")
    assert capfd.readouterr().out == ""  # PyTorch would print its graph


def test_a_size_that_depends_on_a_value_names_its_cure(tmp_path: Path) -> None:
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(Sized(), (f32(3), torch.tensor(4)), tmp_path / "m.onnx", exporter="dynamo")
    assert "depends on the value of a tensor" in str(raised.value) or "torch.cond" in str(raised.value)


def test_an_unknown_exporter_is_refused(tmp_path: Path) -> None:
    said = "exporter: expected one of 'auto', 'dynamo', 'torchscript', found 'onnx'"
    with pytest.raises(ValueError, match=re.escape(said)):
        compiler.export(nn.ReLU(), (f32(3),), tmp_path / "m.onnx", exporter="onnx")  # type: ignore[arg-type]


def test_the_older_exporter_writes_old_opsets(tmp_path: Path) -> None:
    path = compiler.export(nn.Linear(3, 2), (f32(4, 3),), tmp_path / "m.onnx", exporter="torchscript", opset=11)
    assert [each.version for each in onnx.load(path).opset_import] == [11]
    with pytest.raises(
        ValueError, match=re.escape("opset 21: choose one from 9 to 20, the newest that the TorchScript")
    ):
        compiler.export(nn.Linear(3, 2), (f32(4, 3),), path, exporter="torchscript", opset=21)
    with pytest.raises(compiler.ExportError, match="cannot export Branch"):  # no older exporter writes this opset
        compiler.export(Branch(), (f32(3),), path, opset=23)


def test_a_recording_leaves_the_module_and_its_arguments_as_they_are(tmp_path: Path) -> None:
    module, given = nn.Sequential(Counting(), nn.Dropout()), f32(3)
    before, state = given.clone(), torch.get_rng_state()
    compiler.export(module, (given,), tmp_path / "m.onnx", exporter="torchscript", check=False)
    assert torch.equal(given, before)
    assert module[0].count.tolist() == [0] and module[0].seen == []
    assert [part.training for part in module.modules()] == [True, True, True]
    assert torch.equal(torch.get_rng_state(), state)
