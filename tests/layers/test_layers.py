"""Every layer of the tables, by both exporters: export, compilation, run and comparison; the page of the tables.

Plans run on the processor, and on the stand-in for a GPU where that can be built.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import compiler
from compiler.accuracy.exported import ExportWarning
from tests.standin import device

nn = pytest.importorskip("torch.nn", reason="needs PyTorch")

from tests.layers import page, run  # noqa: E402
from tests.layers.layer import EXPORTERS, Exporter, Layer  # noqa: E402
from tests.layers.tables import FAMILIES  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_exports")

LAYERS = [layer for layers in FAMILIES.values() for layer in layers]


class Model(nn.Module):
    """A model that has the layer as its encoder."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, *inputs: Any) -> Any:
        return self.encoder(*inputs)


@pytest.fixture
def devices(request: pytest.FixtureRequest) -> list[str]:
    """The devices that plans run on here."""
    if device.reason() is not None:
        return ["cpu"]
    request.getfixturevalue("standin")
    return ["cpu", "cuda"]


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_layer(layer: Layer, exporter: Exporter, devices: list[str]) -> None:
    module = run.module_of(layer)
    if exporter in layer.unexportable:
        with pytest.raises(run.Unexportable):
            run.exported(layer, module, exporter)
            pytest.fail(f"{exporter} exports it: take its line out of `unexportable`")
    elif exporter in layer.refused:
        check_refused(layer, exporter)
    elif exporter in layer.misexported:
        check_misexported(layer, module, exporter)
    else:
        for label, model in run.exported(layer, module, exporter).items():
            run.check(layer, model, module, label, devices)


REFUSED = [layer for layer in LAYERS if layer.unexportable.get("dynamo") or layer.ours]
BY_TORCHSCRIPT = "the TorchScript exporter wrote the model, because the present exporter refuses it: "


@pytest.mark.parametrize("layer", REFUSED, ids=lambda layer: layer.name)
def test_export_of_layers_that_the_compiler_adds(layer: Layer, tmp_path: Path) -> None:
    """`compiler.export` translates more operators, or takes the older exporter, and compares the model with PyTorch."""
    path, module = tmp_path / "m.onnx", run.module_of(layer)
    if not layer.ours:
        with pytest.raises(compiler.ExportError, match=r"\n  the TorchScript exporter: "):
            compiler.export(module, layer.inputs, path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        compiler.export(module, layer.inputs, path, check=False)
    said = [str(each.message) for each in caught if each.category is ExportWarning]
    assert any(BY_TORCHSCRIPT in each for each in said) == (layer.ours == "torchscript"), said
    if layer.name != "FractionalMaxPool2d":  # whose windows are random
        run.check(layer, path.read_bytes(), module, "compiler.export")


def check_refused(layer: Layer, exporter: Exporter) -> None:
    """Checks that the diagnostics have the code, and name the module."""
    for label, model in run.exported(layer, Model(run.module_of(layer)).eval(), exporter).items():
        with pytest.raises(compiler.CompileError) as caught:
            compiler.compile(model)
        assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {layer.refused[exporter]}, label
        assert "encoder" in str(caught.value), label


def check_misexported(layer: Layer, module: nn.Module, exporter: Exporter) -> None:
    """Checks that the plan's results equal onnxruntime's, and that PyTorch's differ."""
    for label, model in run.exported(layer, module, exporter).items():
        reference = run.OnnxRuntime(model)
        run.check(layer, model, reference, label)
        with pytest.raises(AssertionError):
            run.assert_all_close(run.outputs(reference, layer.inputs), run.outputs(module, layer.inputs), layer, label)
            pytest.fail(f"{exporter} exports what PyTorch computes: take its line out of `misexported`")


def test_names_are_unique() -> None:
    names = [layer.name for layer in LAYERS]
    assert len(names) == len(set(names))


def test_page_is_fresh() -> None:
    for path, text in page.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} differs: run `make generate`"
        assert len(text.splitlines()) <= 400
