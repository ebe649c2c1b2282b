"""Architectures that PyTorch's exporter refuses: the exporter that writes each, and the check of the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers", reason="needs transformers")

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from compiler.frontend.export_request import Exporter  # noqa: E402
from models.families import tiny  # noqa: E402

pytestmark = [pytest.mark.usefixtures("quick_exports"), pytest.mark.slow]
TOKENS = torch.tensor([[5, 9, 3, 7, 11, 4, 8, 6], [4, 4, 9, 21, 30, 3, 12, 17]])


def sound(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def mixtral() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(tiny.config("mixtral"))


def codec(kind: str, **sizes: Any) -> Any:
    return tiny.model(kind, num_filters=4, codebook_size=32, upsampling_ratios=[4, 2], **sizes)


@dataclass(frozen=True)
class Case:
    """A network with arguments by name, and the exporter that writes it.

    `asked` is the argument `exporter`. The present exporter takes long until it refuses Mimi.
    """

    build: Callable[[], Any]
    kwargs: dict[str, Any]
    dims: dict[str, dict[int, str]]
    exporter: Exporter
    asked: Exporter = "auto"


CASES = {
    "Mixtral": Case(
        mixtral, {"input_ids": TOKENS, "use_cache": False}, {"input_ids": {0: "batch", 1: "length"}}, "dynamo"
    ),
    "EnCodec": Case(
        lambda: codec("encodec", hidden_size=16), {"input_values": sound(2, 1, 640)}, {"input_values": {0: "batch"}},
        "torchscript",
    ),
    "Mimi": Case(
        lambda: codec("mimi", upsample_groups=32, num_hidden_layers=1, num_quantizers=2),
        {"input_values": sound(2, 1, 640)}, {"input_values": {0: "batch"}}, "torchscript", asked="torchscript",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_architecture_is_exported_and_equal(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    module = case.build()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        compiler.export(module, (), tmp_path / "m.onnx", case.dims or None, kwargs=case.kwargs, exporter=case.asked)
    said = [str(each.message) for each in caught if each.category is ExportWarning]
    assert not [each for each in said if "not checked" in each], said
    is_second = case.asked == "auto" and case.exporter == "torchscript"
    assert any("the TorchScript exporter wrote" in each for each in said) == is_second, said
