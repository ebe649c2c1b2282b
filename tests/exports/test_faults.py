"""The faults of PyTorch's exporters on the pages of layers: the check finds each, and names its module and line.

`compiler.export` has its own translations in place of those that are wrong, so these tests give it PyTorch's again.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("onnxscript", reason="needs onnxscript")

from onnxscript.function_libs.torch_lib.ops import core, nn  # noqa: E402

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from compiler.frontend.export_request import Exporter  # noqa: E402
from tests.exports.nets import Inside, Net  # noqa: E402
from tests.layers.layer import f32  # noqa: E402
from tests.layers.tables import FAMILIES  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_exports")
F = torch.nn.functional


MASK = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
INDEX = torch.tensor([0, 2, 0])
INTEGERS = torch.tensor([-7, 7, 8])


def pooled(x: Any) -> Any:
    return F.avg_pool2d(x, 3, divisor_override=5)


def attended(x: Any, mask: Any) -> Any:
    return F.scaled_dot_product_attention(x, x, x, mask)


def windowed(x: Any) -> Any:
    return x * torch.hamming_window(5)


def distances(x: Any) -> Any:
    return torch.cdist(x, x - 0.3, p=1)


def softened(x: Any) -> Any:
    return F.softplus(x, 2.0, 1.5)


def added(x: Any) -> Any:
    return x.index_put((INDEX,), torch.ones(3, 4), accumulate=True)


def divided(x: Any, integers: Any) -> Any:
    return x.sum() + integers // 3


FAULTS: dict[tuple[str, Exporter], tuple[Any, tuple[Any, ...]]] = {
    ("AvgPool2d, divisor_override", "dynamo"): (pooled, (f32(1, 2, 6, 6),)),
    ("AvgPool2d, divisor_override", "torchscript"): (pooled, (f32(1, 2, 6, 6),)),
    ("scaled_dot_product_attention, mask of bools, fully masked rows", "dynamo"): (attended, (f32(1, 1, 3, 4), MASK)),
    ("hamming_window", "dynamo"): (windowed, (f32(3, 5),)),
    ("cdist, p=1", "torchscript"): (distances, (f32(2, 5, 3),)),
    ("Softplus, beta and threshold", "torchscript"): (softened, (f32(3, 4) * 3,)),
    ("index_put, accumulate", "torchscript"): (added, (f32(3, 4),)),
    ("floor_divide of integers", "torchscript"): (divided, (f32(3), INTEGERS)),
}


OF_PYTORCH = {
    torch.ops.aten.avg_pool2d.default: nn.aten_avg_pool2d,
    torch.ops.aten.scaled_dot_product_attention.default: nn.aten_scaled_dot_product_attention,
    torch.ops.aten.hamming_window.default: core.aten_hamming_window,
}


def test_these_are_all_faults_of_the_page() -> None:
    layers = [layer for family in FAMILIES.values() for layer in family]
    listed = {(layer.name, exporter) for layer in layers for exporter in layer.misexported}
    assert set(FAULTS) == listed and len(FAULTS) == 8


@pytest.mark.parametrize("fault", FAULTS, ids=" by ".join)
def test_a_fault_is_found_and_located(fault: tuple[str, Exporter], tmp_path: Path) -> None:
    function, given = FAULTS[fault]
    options = {"outputs": ("doubled", "y"), "exporter": fault[1], "custom_translation_table": OF_PYTORCH}
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(Net(function), given, tmp_path / "m.onnx", **options)
    said = str(raised.value)
    assert re.search(
        r"m\.onnx does not compute what Net computes: output 'y' differs by \S+ at \[[\d, ]+\], allowed ", said
    )
    assert "doubled" not in said
    assert said.endswith("help: export with --locate (locate=True), which names the first module that differs")
    with pytest.raises(compiler.ExportError) as raised:
        compiler.export(Net(function), given, tmp_path / "m.onnx", locate=True, **options)
    file, code = ("nets", Inside.forward) if fault[1] == "dynamo" else ("test_faults", function)
    place = rf"tests/exports/{file}\.py:{code.__code__.co_firstlineno + 1} in [\w.]+, in "
    expected = rf"the first module that differs is fault : Inside, {place}"
    assert re.search(expected, str(raised.value))
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("fault", [each for each in FAULTS if each[1] == "dynamo"], ids=" by ".join)
def test_translations_in_place_of_faults(fault: tuple[str, Exporter], tmp_path: Path) -> None:
    function, given = FAULTS[fault]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        compiler.export(Net(function), given, tmp_path / "m.onnx", exporter="dynamo")
    program = torch.export.export(Net(function), given)
    found = compiler.load(compiler.compile(program))(*given, as_="torch")
    torch.testing.assert_close(found, Net(function)(*given), rtol=1e-5, atol=1e-5)
