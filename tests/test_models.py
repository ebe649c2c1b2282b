"""The models of `models/`: the constants of each file, the results of the small models, and the reuse of exports."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner, Result

import compiler
from compiler.accuracy.compare import TOLERANCES
from compiler.zoo.index import read_index
from models import __main__ as exporter
from models import groups
from models.groups import GROUPS, Group, all_names, file_of, module_of

OTHERS = {"__main__", "groups", "weights", "digits", "digits_3d", "layers"}
TINY = '''"""A sum (https://example.org)."""
TOLERANCE = 1e-6
REASON = "it is exact"
'''


def run(*arguments: str) -> Result:
    return CliRunner().invoke(exporter.main, arguments)


@pytest.mark.parametrize("group", GROUPS)
def test_every_file_is_listed(group: str) -> None:
    folder = file_of(GROUPS[group].package).with_suffix("")
    assert {path.stem for path in folder.glob("*.py")} - OTHERS == set(GROUPS[group].names)


@pytest.mark.parametrize("name", all_names())
def test_every_model_states_its_source_and_tolerance(name: str) -> None:
    source = file_of(module_of(name))
    what, stated = exporter.described(source)
    assert what.endswith(".")
    assert stated["TOLERANCE"] == TOLERANCES["float32"] or stated["REASON"]
    cited = "".join(path.read_text().partition('"""\n\n')[0] for path in (source, *exporter.imported(source)))
    assert "https://" in cited


@pytest.mark.parametrize("name", all_names())
def test_inputs_are_the_same_every_time(name: str) -> None:
    pytest.importorskip("torchvision", reason="needs torchvision")
    pytest.importorskip("transformers", reason="needs transformers")
    module = importlib.import_module(module_of(name))
    first, second = module.inputs(), module.inputs()
    assert list(first) == list(second)
    for key, tensor in first.items():
        assert np.array_equal(tensor, second[key])


@pytest.mark.usefixtures("quick_exports")
@pytest.mark.parametrize("name", GROUPS["small"].names)
def test_small_models_compute_what_onnxruntime_does(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    assert run("--folder", str(tmp_path), name).exit_code == 0
    (entry,) = read_index(tmp_path)
    inputs = entry.inputs(entry.cases[0])
    report = compiler.verify(entry.path, inputs=inputs)
    assert report.equal, report.outputs
    assert [output.name for output in report.outputs] == list(importlib.import_module(module_of(name)).OUTPUTS)
    states = {output.name: output.shape for output in report.outputs if output.name.startswith("next_")}
    assert states == {f"next_{state}": inputs[state].shape for state in (key.removeprefix("next_") for key in states)}


def test_seeded_weights_are_the_same_every_time_and_no_constants() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from models.weights import noise, seeded

    def make() -> object:
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))

    given = {"x": 5 + noise(1, 3, 8, 8)}
    networks = [seeded(make, given) for _ in range(2)]
    states = [network.state_dict() for network in networks]
    for key, tensor in states[0].items():
        assert torch.equal(tensor, states[1][key]), key
        assert tensor.dim() == 0 or tensor.unique().numel() == tensor.numel(), key
    assert not networks[0].training
    assert networks[0](given["x"]).std() < 2


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources with one model, exported to `out`."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Sum(torch.nn.Module):
        def forward(self, x: object, y: object) -> object:
            return x + y

    module = ModuleType("models.tiny")
    module.build = Sum
    module.inputs = lambda: {"x": torch.ones(2), "y": torch.ones(2)}
    module.OUTPUTS = ("z",)
    monkeypatch.setitem(sys.modules, "models.tiny", module)
    monkeypatch.setattr(groups, "HERE", tmp_path)
    monkeypatch.setattr(exporter, "all_names", lambda: ["tiny"])
    monkeypatch.setitem(GROUPS, "known", Group("models", tmp_path / "unused", ("tiny",)))
    (tmp_path / "tiny.py").write_text(TINY)
    return tmp_path


def test_a_model_is_exported_once_until_its_file_changes(tiny: Path) -> None:
    folder = tiny / "out"
    assert run("--folder", str(folder)).exit_code == 0
    (entry,) = json.loads((folder / "INDEX.json").read_text())
    assert (entry["name"], entry["what"]) == ("tiny", "A sum (https://example.org).")
    assert [(each.tolerance, each.reason) for each in read_index(folder)] == [(1e-6, "it is exact")]
    model = folder / entry["file"]
    assert sorted(np.load(folder / entry["cases"][0])) == ["x", "y"]
    made = model.stat().st_mtime_ns
    assert run("--folder", str(folder)).exit_code == 0
    assert model.stat().st_mtime_ns == made
    (tiny / "tiny.py").write_text(TINY.replace("sum", "total"))
    assert run("--folder", str(folder)).exit_code == 0
    assert not model.exists()
    assert len(list(folder.glob("*.onnx"))) == 1


def test_a_package_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "models.resnet18", raising=False)
    pytest.importorskip("torchvision", reason="needs torchvision")
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    done = run("--folder", str(tmp_path), "resnet18")
    assert done.exit_code == 1
    assert (
        'resnet18 needs torchvision, which is not installed: run pip install "candle-compiler[models]"' in done.stderr
    )
    assert json.loads((tmp_path / "INDEX.json").read_text()) == []
