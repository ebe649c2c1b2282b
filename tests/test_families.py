"""The models of `models/families`: the recipes, their ledger, and the export of some of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

import compiler
import compiler.zoo
from compiler.zoo.baseline import read_baseline
from compiler.zoo.facts_file import read_facts
from compiler.zoo.index import read_index
from models.families import __main__ as exporter
from models.families import catalog, recipe
from models.families.exporting import export, files
from models.families.recipe import Recipe, call, floats, mask, tokens

SLICE, FACTS = catalog.HERE / "slice.txt", catalog.HERE / "facts.toml"
SMALL = Recipe(
    "torch_linear",
    call("torch.nn.Linear", 4, 3),
    {"input": floats("batch", 4)},
    ({"batch": 2}, {"batch": 3}),
    ("tiny",),
)
BROKEN = Recipe("torch_broken", call("torch.nn.Linear", 4, 3), {"input": floats("batch", 5)}, SMALL.sizes)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(exporter.main, ["--jobs", "1", *arguments])


def test_there_are_hundreds_of_recipes() -> None:
    recipes = catalog.recipes()
    assert len(recipes) >= 400
    libraries = [each.library for each in recipes.values()]
    least = {"timm": 120, "transformers": 150, "torchvision": 35, "diffusers": 10}
    assert {name: libraries.count(name) >= count for name, count in least.items()} == dict.fromkeys(least, True)
    assert all(each.tags and each.tensors for each in recipes.values())
    assert len({each.key for each in recipes.values()}) == len(recipes)


def test_the_ledger_names_recipes_and_reasons() -> None:
    ledger = catalog.unexportable()
    assert set(ledger) <= set(catalog.recipes())
    assert all(ledger.values())


def test_a_change_of_the_code_exports_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = SMALL.key
    monkeypatch.setattr(recipe, "_code", lambda: "other code")
    assert SMALL.key != before


def test_a_call_is_its_text_and_its_result() -> None:
    nested = call("fractions.Fraction", call("math.gcd", 12, 18), denominator=9)
    assert str(nested) == "fractions.Fraction(math.gcd(12, 18), denominator=9)"
    assert nested.result() == Fraction(2, 3)


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(exporter, "recipes", lambda: {each.name: each for each in (SMALL, BROKEN)})


def expect(monkeypatch: pytest.MonkeyPatch, **ledger: str) -> None:
    monkeypatch.setattr(exporter, "unexportable", lambda: ledger)


@pytest.mark.usefixtures("recipes")
def test_models_are_exported_once_and_equal_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(monkeypatch, torch_broken="its matrices do not fit")
    first = run("--folder", str(tmp_path))
    assert first.exit_code == 0, first.output
    [entry] = json.loads((tmp_path / "INDEX.json").read_text())
    assert entry["source"] == "torch.nn.Linear(4, 3)" and entry["tags"] == ["torch", "tiny"]
    model, *cases = files(SMALL, tmp_path)
    assert [np.load(case)["input"].shape for case in cases] == [(2, 4), (3, 4)]
    before = model.stat().st_mtime_ns
    assert "1/1 torch_broken" in run("--folder", str(tmp_path)).output
    assert model.stat().st_mtime_ns == before
    assert [each.name for each in read_index(tmp_path)] == ["torch_linear"]
    assert all(outcome.ok for outcome in compiler.zoo.run(tmp_path))


def test_the_older_exporter_traces_a_network_to_an_old_opset(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    given = {"query": floats(3, "batch", 8), "key": floats(5, "batch", 8), "value": floats(5, "batch", 8)}
    network = call("torch.nn.MultiheadAttention", 8, 2)
    arguments = {**given, "need_weights": True}
    traced = Recipe("torch_traced", network, arguments, SMALL.sizes, exporter="torchscript", opset=11)
    assert traced.key != replace(traced, opset=12).key
    export(traced, tmp_path)
    model, *cases = files(traced, tmp_path)
    found = onnx.load(model)
    assert [each.version for each in found.opset_import] == [11]
    assert [each.name for each in found.graph.input] == [*given]
    assert found.graph.input[0].type.tensor_type.shape.dim[1].dim_param == "batch"
    assert len(found.graph.output) == 2, "the attention and its weights"
    with np.load(cases[1]) as arrays:
        assert compiler.verify(str(model), inputs=dict(arrays)).equal


def deciding(decide: Callable[[Any], Any]) -> Any:
    """A module whose result depends on a decision of Python about its input."""
    from torch import nn

    class Deciding(nn.Module):  # type: ignore[misc]
        def forward(self, input: Any) -> Any:
            return decide(input)

    return Deciding()


def flattening() -> Any:
    return deciding(lambda x: x.reshape(int(x.shape[0]), 4))


def signed() -> Any:
    return deciding(lambda x: x if x[0, 3] > 0.4 else -x)


def test_a_recorded_model_must_be_right_for_both_sets_of_inputs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    softmax = call("torch.nn.Softmax", 1)
    kept = Recipe("torch_kept", softmax, {"input": floats("batch", 4)}, SMALL.sizes, exporter="torchscript")
    export(kept, tmp_path)
    flattened = replace(kept, name="torch_flattened", network=call(f"{__name__}.flattening"))
    with pytest.raises(compiler.ExportError, match="torch_flattened with inputs 2: "):
        export(flattened, tmp_path)
    assert not files(flattened, tmp_path)[0].exists()
    signed = replace(kept, name="torch_signed", network=call(f"{__name__}.signed"))
    with pytest.raises(compiler.ExportError, match=r"differs from the network, \d.* × as much as allowed"):
        export(signed, tmp_path)


def test_traced_networks_have_their_opset_in_their_names() -> None:
    recipes = catalog.recipes()
    traced = {name: each for name, each in recipes.items() if each.opset is not None}
    assert len(traced) >= 10 and {each.opset for each in traced.values()} == {11, 12, 13, 14}
    assert all(name.endswith(f"_opset{each.opset}") and "traced" in each.tags for name, each in traced.items())
    assert {each.exporter for each in traced.values()} == {"torchscript"}
    assert {name.rpartition("_")[0] for name in traced} <= set(recipes), "the same networks, from the present exporter"


@pytest.mark.usefixtures("recipes")
def test_an_unexpected_failure_and_an_unexpected_success_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(monkeypatch, torch_linear="nobody has tried it")
    found = run("--folder", str(tmp_path))
    assert found.exit_code == 1
    assert "✗ torch_linear is exported now: remove its line" in found.output
    assert "✗ torch_broken: " in found.output


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    found = run("nothing", "--folder", str(tmp_path))
    assert found.exit_code == 2 and "there is no model nothing" in found.output


def test_inputs_have_the_kinds_that_recipes_state() -> None:
    pytest.importorskip("torch")
    from models.families.exporting import values

    given = {
        "ids": tokens(9, "batch", 50),
        "image": tokens(9, 2, 5, first=(9, 9)),
        "mask": mask("batch", 50),
        "x": floats(2, 50),
    }
    kinds = Recipe("torch_kinds", SMALL.network, given, ({"batch": 40}, {"batch": 4}))
    found = {name: tensor.numpy() for name, tensor in values(kinds, kinds.sizes[0], 0).items()}
    assert found["ids"].shape == (40, 50) and (found["ids"].min(), found["ids"].max()) == (3, 8)
    assert (found["image"][:, :2] == 9).all() and found["image"][:, 2:].max() < 9
    assert found["mask"][:, 0].all() and not found["mask"].all()
    assert (np.diff(found["mask"], axis=1) <= 0).all()
    assert found["x"].std() > 0.5


def test_the_slice_has_facts_and_acceptable_models() -> None:
    names = SLICE.read_text().split()
    assert names == sorted(names) and set(names) <= set(catalog.recipes())
    assert not set(names) & {*catalog.unexportable(), *read_baseline(catalog.BASELINE)}
    known = read_facts(FACTS)
    assert set(known.models) == set(names)
    assert all(set(by_shapes) == {"pinned", "unpinned"} for by_shapes in known.models.values())
    assert {facts.status for each in known.models.values() for facts in each.values()} <= {"equal", "random"}


def test_every_known_difference_has_a_reason() -> None:
    known = read_baseline(catalog.BASELINE)
    assert set(known) <= set(catalog.recipes()) - set(catalog.unexportable())
    assert not [name for name, each in known.items() if "to be done" in each.reason or len(each.reason) < 20]


def test_a_network_of_the_project_is_exported_again_if_its_file_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    own = catalog.recipes()["models_voice_activity"]
    before = own.key, SMALL.key
    monkeypatch.setattr(recipe, "file_of", lambda module: Path(__file__))
    assert own.key != before[0] and SMALL.key == before[1]
