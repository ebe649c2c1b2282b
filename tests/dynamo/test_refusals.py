"""PyTorch runs the graphs that the backend refuses, or the caller gets the reason."""

from __future__ import annotations

import importlib.metadata
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import compiler
from compiler.dynamo import FallbackWarning, RefusedGraph, backend
from compiler.dynamo.choices import Choices
from tests.dynamo.checking import EXACT, candle, check, compiled, torch

nn = torch.nn
VOLUME = nn.Conv3d(1, 2, 3)


def volumes(x: Any) -> Any:
    return VOLUME(x.expand(1, 1, 4, 4, 4)) + 1


def random(x: Any) -> Any:
    return x + torch.rand_like(x)


def complex_numbers(x: Any) -> Any:
    return torch.fft.fft(x).abs()


def strides(x: Any) -> Any:
    return (x.t() + 1).as_strided((2, 2), (1, 2)) * 2


def no_translation(x: Any) -> Any:
    return torch.special.airy_ai(x)


REFUSED: dict[str, tuple[Any, tuple[int, ...], type[Exception], str]] = {
    "volumes": (volumes, (4,), compiler.CompileError, r"CC0301.*3-D convolution"),
    "random": (random, (3,), RefusedGraph, "aten.rand_like.* draws random numbers"),
    "complex": (complex_numbers, (4,), RefusedGraph, "complex"),
    "strides": (strides, (4, 3), RefusedGraph, "as_strided"),
    "no translation": (no_translation, (4,), compiler.ExportError, "airy_ai"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_graphs(name: str) -> None:
    function, shape, error, message = REFUSED[name]
    given = torch.randn(shape)
    run = torch.compile(function, backend=candle)
    results = []
    with pytest.warns(FallbackWarning, match=f"(?s)PyTorch runs a graph, because .*{message}") as warned:
        for each in (function, run, run):
            torch.manual_seed(1)
            results.append(each(given))
    assert len(warned) == 1
    check(results[1:], results[:1] * 2, EXACT)
    torch._dynamo.reset()
    with pytest.raises(error, match=message):
        compiled(function, fullgraph=False)(given)


@pytest.mark.parametrize("name", REFUSED)
def test_in_a_full_graph_a_refusal_is_an_error(name: str) -> None:
    function, shape, error, message = REFUSED[name]
    given = torch.randn(shape)
    run = torch.compile(function, backend=candle, fullgraph=True)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            with pytest.raises(error, match=message):
                run(given)
    torch._dynamo.reset()
    allowed = torch.compile(function, backend=candle, fullgraph=True, options={"fallback": True})
    torch.manual_seed(1)
    with pytest.warns(FallbackWarning, match=message):
        found = allowed(given)
    torch.manual_seed(1)
    check(found, function(given), EXACT)


def test_the_error_of_a_full_graph_has_the_code_and_the_place() -> None:
    with pytest.raises(compiler.CompileError) as caught:
        torch.compile(volumes, backend=candle, fullgraph=True)(torch.randn(4))
    (found,) = caught.value.diagnostics
    assert found.code == "CC0301"
    assert "test_refusals.py" in str(found.origin)


def test_without_the_setting_of_dynamo_a_full_graph_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of PyTorch may have other names."""
    assert not backend._is_full_graph(), "dynamo compiles nothing now"
    monkeypatch.setattr(backend, "InstructionTranslator", object())
    with pytest.warns(FallbackWarning, match="airy_ai"):
        torch.compile(no_translation, backend=candle, fullgraph=True)(torch.ones(4))


def test_training_in_a_full_graph_is_an_error() -> None:
    layer, given = nn.Linear(3, 2), torch.randn(4, 3)
    with torch.enable_grad(), pytest.raises(RefusedGraph, match=r"need gradients, .*torch\.no_grad\(\)"):
        torch.compile(layer, backend=candle, fullgraph=True)(given)


def test_a_part_of_a_divided_module_falls_back() -> None:
    """Without `fullgraph=True`, each graph has its own answer, also those after a graph break."""

    def function(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return random(y)

    with pytest.warns(FallbackWarning, match="draws random numbers") as warned:
        torch.compile(function, backend=candle)(torch.ones(3))
    assert len(warned) == 1


def test_the_advice_is_of_use() -> None:
    """torch.compile has no argument `custom_translation_table`."""
    with pytest.warns(FallbackWarning, match=r"export the module with compiler\.export\(…, custom_translation_table="):
        torch.compile(no_translation, backend=candle)(torch.ones(4))


def test_training_is_refused() -> None:
    layer, given = nn.Linear(3, 2), torch.randn(4, 3)
    with torch.enable_grad():
        with pytest.warns(FallbackWarning, match=r"need gradients, .*torch\.no_grad\(\)") as warned:
            found = torch.compile(layer, backend=candle)(given)
        assert len(warned) == 1
        found.sum().backward()
        check(layer.weight.grad, given.sum(0).expand(2, 3).clone())
        torch._dynamo.reset()
        with pytest.raises(RefusedGraph, match="need gradients"):
            compiled(layer)(given)


def test_the_mode_of_gradients_chooses_the_graph() -> None:
    """Dynamo compiles again when the mode changes. Frozen parameters and results without gradients are no training."""
    layer, given = nn.Linear(3, 2), torch.randn(4, 3)
    run = torch.compile(layer, backend=candle)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        check(run(given), layer(given))
    with torch.enable_grad(), pytest.warns(FallbackWarning):
        assert run(given).requires_grad
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("error", FallbackWarning)
        places = torch.compile(lambda x: layer(x).argmax(1), backend=candle)
        check(places(given), layer(given).argmax(1))
        layer.requires_grad_(False)
        found = torch.compile(layer.forward, backend=candle)(given)
        assert not found.requires_grad


OPTIONS: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown": ({"fallbak": True}, ValueError, "no option 'fallbak': did you mean 'fallback'"),
    "far": ({"max_autotune": True}, ValueError, "no option 'max_autotune', but only 'fallback', 'freeze', 'threads'"),
    "a text": ({"fallback": "yes"}, TypeError, r"options\['fallback'\]: expected True or False, found str"),
    "no thread": ({"threads": 0}, ValueError, r"options\['threads'\]: expected a whole number from 1 to \d+, found 0"),
    "a list": (["fallback"], TypeError, "options: expected a dict of options by name, found list"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(name: str) -> None:
    options, error, message = OPTIONS[name]
    with pytest.raises(error, match=message):
        Choices.read(options)


def test_dynamo_reports_wrong_options() -> None:
    with pytest.raises(Exception, match="no option 'fallbak': did you mean 'fallback'"):
        torch.compile(lambda x: x + 1, backend=candle, options={"fallbak": True})(torch.ones(2))
    with pytest.raises(Exception, match='"candle" has no modes'):
        torch.compile(lambda x: x + 1, backend=candle, mode="max-autotune")(torch.ones(2))


def test_pytorch_finds_the_backend() -> None:
    """The installed package has an entry point: `make` installs it again after a change of pyproject.toml."""
    (point,) = (
        each for each in importlib.metadata.entry_points(group="torch_dynamo_backends") if each.name == "candle"
    )
    assert point.load() is candle
    assert "candle" in torch._dynamo.list_backends()
    check(torch.compile(lambda x: x * 2, backend="candle", fullgraph=True)(torch.ones(3)), torch.full((3,), 2.0))


def test_several_threads() -> None:
    layer = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)).eval()
    run = compiled(layer)
    given = [torch.randn(8, 16) for _ in range(16)]

    def call(x: Any) -> Any:
        with torch.no_grad():
            return [run(x) for _ in range(5)][-1]

    with torch.no_grad(), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, given))
        check(found, [layer(each) for each in given])
