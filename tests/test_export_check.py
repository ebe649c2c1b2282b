"""The check of exports: the faults of PyTorch's exporter are found, and the module stays as it is."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from compiler.accuracy.exported_arguments import open_dims, other_sizes, resized  # noqa: E402
from compiler.accuracy.module_runs import Call  # noqa: E402
from tests.exporter import shared_tables  # noqa: E402
from tests.exports.nets import Counting, Net  # noqa: E402

F = torch.nn.functional


def drawn(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def pooled(x: Any) -> Any:
    """The TorchScript exporter ignores the divisor."""
    return F.avg_pool2d(x, 3, divisor_override=5)


@pytest.fixture(autouse=True)
def fast_exports() -> Any:
    with shared_tables():
        yield


INDEX = torch.tensor([0, 2, 0])
OF_THE_OTHER_EXPORTER = {
    "Softplus, threshold": (lambda x: F.softplus(x, 2.0, 1.5), (drawn(3, 4),)),
    "index_put, accumulate": (lambda x: x.index_put((INDEX,), torch.ones(3, 4), accumulate=True), (drawn(3, 4),)),
    "floor_divide": (lambda x, i: x.sum() + (i // 3), (drawn(3), torch.tensor([-7, 7, 8]))),
}
"""The pages of layers list these faults for the TorchScript exporter alone."""


@pytest.mark.parametrize("name", OF_THE_OTHER_EXPORTER)
def test_faults_of_the_torchscript_exporter_do_not_occur(name: str, tmp_path: Path) -> None:
    function, given = OF_THE_OTHER_EXPORTER[name]
    exports_silently(Net(function), given, tmp_path)


def exports_silently(module: Any, given: tuple[Any, ...], folder: Path, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        assert compiler.export(module, given, folder / "m.onnx", **options).exists()


def test_no_check_writes_a_model_with_a_fault(tmp_path: Path) -> None:
    exports_silently(Net(pooled), (drawn(1, 2, 6, 6),), tmp_path, exporter="torchscript", check=False)


def test_a_random_module_is_not_checked(tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match="m.onnx: not checked: the module's outputs differ between two runs"):
        compiler.export(Net(lambda x: x + torch.rand(3)), (drawn(3),), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").exists()


def test_a_refused_model_is_not_checked(tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match="not checked: the compiler refuses the model: CC0301"):
        compiler.export(torch.nn.Conv3d(1, 1, 2), (drawn(1, 1, 3, 3, 3),), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").exists()


def test_the_module_and_its_arguments_stay_as_they_are(tmp_path: Path) -> None:
    module, given = torch.nn.Sequential(Counting(), torch.nn.Dropout()), drawn(3)
    before, state = given.clone(), torch.get_rng_state()
    module[1].eval()
    exports_silently(module, (given,), tmp_path)
    assert torch.equal(given, before)
    assert module[0].count.tolist() == [0]
    assert module[0].seen == []
    assert [part.training for part in module.modules()] == [True, True, False]
    assert torch.equal(torch.get_rng_state(), state)


class Constant(torch.nn.Module):
    """Gives the exporter another function than Python for batches above 4."""

    def forward(self, x: Any) -> Any:
        return x * 2 if torch.compiler.is_compiling() or x.shape[0] <= 4 else x * 3


def test_a_second_run_has_other_sizes(tmp_path: Path) -> None:
    exports_silently(torch.nn.Linear(3, 2), (drawn(4, 3),), tmp_path, dynamic={"input": {0: "batch"}})
    exports_silently(Constant(), (drawn(4, 3),), tmp_path)
    with pytest.raises(compiler.ExportError, match=r"Constant computes with batch=5: output '\w+' differs") as raised:
        compiler.export(Constant(), (drawn(4, 3),), tmp_path / "m.onnx", {"x": {0: "batch"}}, locate=True)
    assert "help: no value differs from PyTorch's graph: torch.export captured another function" in str(raised.value)


class Even(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        if not torch.compiler.is_compiling() and x.shape[0] != 4:
            raise ValueError("only 4 rows")
        return x * 2


def test_a_module_may_refuse_other_sizes(tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match="not checked with other sizes: the module fails: ValueError: only 4 rows"):
        compiler.export(Even(), (drawn(4, 3),), tmp_path / "m.onnx", {"x": {0: "rows"}})


def test_dims_that_the_model_fixes_keep_their_sizes() -> None:
    call = Call(torch.nn.Linear(3, 2), (drawn(4, 3),), {})
    declared = [compiler.TensorInfo("x", "float32", (4, "features"))]
    found = open_dims(call, {0: {0: "batch", 1: "features"}}, ["x"], declared)
    assert (found.sizes, found.fixed) == ({"features": 3}, ("batch",))


def test_other_arguments_keep_indices_valid() -> None:
    given = (drawn(4, 3), torch.tensor([3, 5, 5, 9]), torch.ones(4, dtype=torch.bool))
    call = Call(torch.nn.Bilinear(1, 1, 1), given[:2], {})  # two arguments
    dynamic = {0: {0: "n"}, 1: {0: "n"}}
    other = resized(call, dynamic, {"n": 7})
    assert [tuple(each.shape) for each in other.args] == [(7, 3), (7,)]
    assert set(other.args[1].tolist()) <= {3, 5, 9}
    assert set(other.args[0].flatten().tolist()) <= set(given[0].flatten().tolist())
    again = resized(call, dynamic, {"n": 7})
    assert all(torch.equal(one, two) for one, two in zip(other.args, again.args, strict=True))
    masks = resized(Call(torch.nn.ReLU(), given[2:], {}), {0: {0: "n"}}, {"n": 64}).args[0]
    assert set(masks.tolist()) == {True, False}


def test_sizes_to_try() -> None:
    assert [*other_sizes({"a": 3, "b": 3})] == [{"a": 4, "b": 5}, {"a": 4, "b": 4}, {"a": 6, "b": 6}, {"a": 2, "b": 2}]
    assert [*other_sizes({"a": 2})] == [{"a": 3}, {"a": 4}]
