"""Results of `torch.compile(backend="candle")` equal those of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.dynamo.checking import EXACT, FLOAT, candle, check, compiled, count_graphs, torch
from tests.exports.test_faults import FAULTS

nn = torch.nn


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 5)
        self.body[1].running_mean.uniform_(-1, 1)
        self.body[1].running_var.uniform_(0.5, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
        self.pairs, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, words: Any, mask: Any) -> Any:
        x = self.words(words)
        heads = [part.unflatten(-1, (2, 8)).transpose(1, 2) for part in self.pairs(x).chunk(3, dim=-1)]
        seen = nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask[:, None, None])
        return self.norm(x + self.out(seen.transpose(1, 2).flatten(2))), words.shape[1] + 1


def statistics(x: Any, y: Any) -> dict[str, Any]:
    largest, places = x.topk(3, dim=-1)
    return {"largest": largest, "places": places, "both": [torch.where(x > y, x, -y), (x * y).cumsum(0), x.argmax()]}


def several(x: Any) -> tuple[Any, ...]:
    first, second = (x + 1).chunk(2, dim=1)
    return first, None, 3, first * second, x.shape[0], (x * 2).t()


def made_of_nothing(x: Any) -> Any:
    return torch.arange(6, dtype=torch.float32).reshape(2, 3) * 2, torch.tensor([1.5, 2.5]), x + 1


CASES: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "convolutions": (Convolutions, lambda: (torch.randn(2, 3, 8, 8),)),
    "convolutions of channels last": (
        Convolutions,
        lambda: (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),),
    ),
    "an encoder": (Encoder, lambda: (torch.randint(50, (2, 7)), torch.arange(14).reshape(2, 7) < 11)),
    "statistics": (lambda: statistics, lambda: (torch.randn(6, 5), torch.randn(6, 5))),
    "results of many kinds": (lambda: several, lambda: (torch.randn(4, 6),)),
    "normalization of instances": (lambda: nn.InstanceNorm2d(3, affine=True), lambda: (torch.randn(2, 3, 4, 5) + 1,)),
    "constants": (lambda: made_of_nothing, lambda: (torch.randn(3),)),
    "einsum": (
        lambda: lambda x, y: torch.einsum("bij,bjk->bki", x, y),
        lambda: (torch.randn(2, 3, 4), torch.randn(2, 4, 5)),
    ),
    "no elements": (lambda: lambda x: x * 2 + 1, lambda: (torch.zeros(0, 4),)),
    "numbers of no dims": (lambda: lambda x, y: (x * y, x.reshape(1)), lambda: (torch.tensor(3.0), torch.tensor(4.0))),
}


@pytest.mark.parametrize("name", CASES)
def test_results_equal_those_of_pytorch(name: str) -> None:
    build, inputs = CASES[name]
    function, given = build(), inputs()
    if isinstance(function, nn.Module):
        function.eval()
    expected = function(*given)
    run = compiled(function)
    check(run(*given), expected)
    check(run(*given), expected)  # the second run compiles nothing
    with torch.inference_mode():
        check(run(*given), expected)


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in FAULTS))
def test_what_exporters_translate_wrongly(name: str) -> None:
    function, given = next(case for fault, case in FAULTS.items() if fault[0] == name)
    check(compiled(function)(*given), function(*given))


def attended(x: Any, mask: Any) -> Any:
    return nn.functional.scaled_dot_product_attention(x, x, x, mask)


@pytest.mark.parametrize("is_boolean", [True, False])
@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (2, 3, 4), (2, 2, 2, 3, 4)], ids=len)
def test_attention_to_no_key(shape: tuple[int, ...], is_boolean: bool) -> None:
    """PyTorch's own kernels and its decomposition give zeros."""
    mask = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
    given = torch.randn(shape), mask if is_boolean else torch.where(mask, torch.randn(3, 3), -torch.inf)
    found = compiled(attended)(*given)
    check(found, attended(*given))
    assert not found[..., 1, :].any()


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x & y, x == y) if dtype == torch.bool else (x * y, x + 1, x < y)

    given = [torch.randint(0, 2 if dtype == torch.bool else 5, (40, 50)).to(dtype) for _ in range(2)]
    check(compiled(function)(*given), function(*given), EXACT)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[::2, 1::3],
    "expanded": lambda x: x[:1].expand(7, -1),
    "reversed": lambda x: x.flip(0)[1:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_of_any_layout(layout: str) -> None:
    given = LAYOUTS[layout](torch.randn(40, 50))
    check(compiled(lambda x: x.exp() - 1)(given), given.exp() - 1)


def test_sizes_vary() -> None:
    graphs, backend = count_graphs()
    encoder = Encoder()
    run = torch.compile(encoder, backend=backend, fullgraph=True, options={"fallback": False})
    for shape in [(2, 5), (3, 5), (4, 7), (5, 9), (1, 1)]:
        given = torch.randint(50, shape), torch.ones(shape, dtype=torch.bool)
        check(run(*given), encoder(*given))
    assert len(graphs) <= 4, "fixed sizes, a batch that varies, both that vary, and both 1"


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_fused_layer_of_transformers(norm_first: bool, activation: str) -> None:
    """PyTorch computes a whole layer with one operator, which its exporter does not translate.

    Two layers have every kind of mask, and the others have both masks at once.
    """
    layer = nn.TransformerEncoderLayer(16, 2, 32, activation=activation, batch_first=True, norm_first=norm_first)
    layer.eval()
    nn.init.normal_(layer.self_attn.in_proj_bias)
    run, x = compiled(layer), torch.randn(3, 5, 16)
    upper, padding = torch.ones(5, 5, dtype=torch.bool).triu(1), torch.arange(15).reshape(3, 5) % 5 > 3
    given = [{}, {"src_mask": upper}, {"src_key_padding_mask": padding}]
    both = {"src_mask": upper, "src_key_padding_mask": padding}
    for masks in [*given, both] if norm_first == (activation == "gelu") else [both]:
        check(run(x, **masks), layer(x, **masks))


def test_numbers_as_arguments() -> None:
    def function(x: Any, count: int, scale: float, name: str) -> Any:
        return (x * count + scale)[:count] if name == "part" else x

    run = compiled(function)
    for count, scale, name in [(2, 0.5, "part"), (3, 0.5, "part"), (5, 0.5, "part"), (5, 1.5, "part"), (2, 1.0, "")]:
        given = torch.randn(6, 4)
        check(run(given, count, scale, name), function(given, count, scale, name))


def test_arguments_by_name_and_in_structures() -> None:
    def function(pair: Any, *, table: dict[str, Any], scale: Any = None) -> Any:
        found = {"sum": pair[0] + table["x"], "rest": [pair[1]]}
        return found if scale is None else {**found, "scaled": table["x"] * scale}

    run, tensors = compiled(function), [torch.randn(3) for _ in range(4)]
    for more in ({}, {"scale": tensors[3]}):
        given = {"table": {"x": tensors[2]}, **more}
        check(run((tensors[0], tensors[1]), **given), function((tensors[0], tensors[1]), **given))


def test_graphs_around_a_break() -> None:
    graphs, backend = count_graphs()
    printed: list[str] = []

    def function(x: Any) -> Any:
        y = x * 2
        printed.append(str(float(y.sum())))  # dynamo cannot trace it
        return y.relu() + x

    run = torch.compile(function, backend=backend, options={"fallback": False})
    given = torch.randn(4, 5)
    expected = function(given)
    check(run(given), expected)
    assert len(graphs) == 2
    assert printed[0] == pytest.approx(float(printed[1]), abs=1e-5) or printed[0] == printed[1]


def test_a_graph_without_operators() -> None:
    given = torch.randn(3)
    assert compiled(lambda x: x)(given) is given
    found = compiled(lambda x: (x, x.view(1, 3)))(given)
    assert found[0] is given
    assert found[1].data_ptr() == given.data_ptr()


def test_parts_of_a_module() -> None:
    module = Convolutions().eval()
    given = torch.randn(2, 3, 8, 8)
    expected = module(given)
    module.body.compile(backend=candle, fullgraph=True, options={"fallback": False})
    check(module(given), expected, FLOAT)


def test_steps_name_the_lines_of_python() -> None:
    def function(x: Any, indices: Any) -> Any:
        return x[indices] * 2

    import compiler

    with pytest.raises(compiler.RunError, match=r"test_results\.py:\d+"):
        compiled(function)(torch.randn(4), torch.tensor([7]))
