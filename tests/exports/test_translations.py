"""The ONNX functions for operators that PyTorch's exporter lacks: export, compilation, run, equal to PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("transformers.integrations.moe", reason="needs transformers")  # it registers an operator

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from compiler.frontend.translations import NAMES  # noqa: E402
from tests.layers.layer import Function, bools, f32, ints  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_exports")
F = torch.nn.functional
INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Case:
    """A function whose export needs the translation of an operator. `dims` names sizes of the first tensor."""

    operator: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    dims: dict[int, str] = field(default_factory=dict)


EXTREME = torch.tensor([3e30, -4e30, 0.0, INF, -INF, NAN, 1e-30, -0.0, 3.0, 1e38])
BESIDE = torch.tensor([4e30, 3e30, 0.0, NAN, 2.0, 1.0, 1e-30, 5.0, -4.0, 2e38])
COUNTS = torch.tensor([0, 1, 7, 8, 31, 32, 63, 64, 200, -1])
NUMBERS = torch.tensor([1, -1, 5, -5, 127, -128, 2**31 - 1, -(2**31), 2**62 + 1, -(2**63)])
SORTED = torch.tensor([[-2.0, 0.0, 0.0, 1.5], [-1.0, -1.0, 2.0, 9.0]])
SOUGHT = torch.tensor([[0.0, -3.0, NAN], [-1.0, 9.0, 10.0]])
SAMPLES = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(5))
ENDS = torch.tensor([3, 3, 7], dtype=torch.int32)
MASK = torch.tensor([[True, True, False], [False, False, False], [True, False, True]])
POINTS = f32(2, 5, 3), f32(2, 4, 3)
QUERIES = f32(2, 3, 2, 5, 4), f32(2, 3, 2, 6, 4), f32(2, 3, 2, 6, 3)
ATTENTION = "aten::scaled_dot_product_attention"


def fractional(x: Any, samples: Any) -> Any:
    return F.fractional_max_pool2d(x, (2, 3), output_size=(3, 4), return_indices=True, _random_samples=samples)


def grouped(rows: Any, weight: Any, ends: Any) -> Any:
    return torch.ops.transformers.grouped_mm_fallback(rows, weight, ends)


class Projected(torch.nn.Module):
    """An LSTM whose hidden states are projected."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(3, 4, proj_size=2, **how)

    def forward(self, x: Any, *state: Any) -> Any:
        found, (hidden, cell) = self.layer(x, state or None)
        return found, hidden, cell


BIAS = torch.where(MASK, f32(3, 3), -INF)
ROWS = f32(2, 4, 3, 4)
FLASH, flash = (
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
)
POOLINGS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("no divisor", {"kernel_size": 3, "padding": 1, "count_include_pad": False}, (2, 3, 7, 8)),
    ("a divisor", {"kernel_size": (3, 2), "divisor_override": 5}, (2, 3, 7, 8)),
    ("a divisor, padding", {"kernel_size": 3, "stride": 2, "padding": 1, "divisor_override": 2}, (2, 3, 7, 8)),
    (
        "a divisor, ceil_mode",
        {"kernel_size": 3, "stride": (2, 4), "padding": 1, "ceil_mode": True, "divisor_override": 7},
        (2, 3, 8, 9),
    ),
    (
        "a divisor, ceil_mode, a window after the edge",
        {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True, "divisor_override": 7},
        (3, 7, 8),
    ),
]
WINDOWS: list[tuple[str, Any]] = [
    ("", lambda x: (x * torch.hamming_window(5), torch.hamming_window(1) + x[:1])),
    (".periodic", lambda x: x * torch.hamming_window(5, False)),
    (".periodic_alpha", lambda x: x * torch.hamming_window(5, True, 0.5, dtype=torch.float64)),
    (".periodic_alpha_beta", lambda x: x * torch.hamming_window(5, False, 0.6, 0.3)),
]
PROJECTED: list[tuple[str, dict[str, Any], tuple[Any, ...], dict[int, str]]] = [
    ("projected", {}, (), {0: "time", 1: "batch"}),
    ("projected, with state", {}, (f32(1, 2, 2), f32(1, 2, 4)), {}),
    ("projected, 2 layers, bidirectional", {"num_layers": 2, "bidirectional": True}, (), {}),
    ("projected, batch_first, no bias", {"batch_first": True, "bias": False}, (), {}),
]
LOCAL_RESPONSE = "candle_compiler::local_response_norm"
CASES = {
    "hypot": Case("aten::hypot", torch.hypot, (EXTREME, BESIDE), {0: "n"}),
    "hypot, double precision, broadcast": Case("aten::hypot", torch.hypot, (f32(3, 1).double(), f32(4).double())),
    "left shift": Case("aten::__lshift__.Tensor", lambda x, n: x << n, (NUMBERS, COUNTS)),
    "right shift": Case("aten::__rshift__.Tensor", lambda x, n: x >> n, (NUMBERS, COUNTS)),
    "left shift of int32": Case("aten::__lshift__.Tensor", lambda x, n: x << n, (NUMBERS.int(), COUNTS.int())),
    "right shift of int32": Case("aten::__rshift__.Tensor", lambda x, n: x >> n, (NUMBERS.int(), COUNTS.int())),
    "left shift of uint8": Case(
        "aten::bitwise_left_shift.Tensor", torch.bitwise_left_shift, (NUMBERS.to(torch.uint8), COUNTS.to(torch.uint8))
    ),
    "right shift of uint8": Case(
        "aten::bitwise_right_shift.Tensor", torch.bitwise_right_shift, (NUMBERS.to(torch.uint8), COUNTS.to(torch.uint8))
    ),
    **{
        f"local_response_norm, size {size}, {len(shape)} axes": Case(
            LOCAL_RESPONSE, lambda x, size=size: F.local_response_norm(x, size, 0.1, k=2.0), (f32(*shape),), {0: "n"}
        )
        for size, shape in ((3, (2, 5, 4, 3)), (4, (2, 5, 4, 3)), (3, (2, 5, 4)), (2, (2, 5, 4)), (3, (2, 5, 2, 3, 2)))
    },
    "rrelu": Case("aten::rrelu", lambda x: F.rrelu(x, 0.1, 0.4), (f32(3, 4),), {0: "n"}),
    "_is_all_true": Case(
        "aten::_is_all_true", lambda x: (torch.ops.aten._is_all_true(x > -9), torch.ops.aten._is_all_true(x > 0)),
        (f32(3, 4),), {0: "n"},
    ),
    "_is_any_true": Case(
        "aten::_is_any_true", lambda x: (torch.ops.aten._is_any_true(x > 9), torch.ops.aten._is_any_true(x > 0)),
        (f32(3, 4),),
    ),
    **{
        f"avg_pool2d, {label}": Case(
            "aten::avg_pool2d", lambda x, how=how: F.avg_pool2d(x, **how), (f32(*shape),), {0: "n"}
        )
        for label, how, shape in POOLINGS
    },
    **{
        f"hamming_window{overload}": Case(f"aten::hamming_window{overload}", function, (f32(5),))
        for overload, function in WINDOWS
    },
    **{
        f"lstm, {label}": Case(
            "aten::lstm.input", Projected(**how), (f32(5, 2, 3), *states), dims
        )
        for label, how, states, dims in PROJECTED
    },
    "squeeze": Case("aten::squeeze.dim", lambda x: (x.squeeze(1), x.squeeze(-2)), (f32(3, 1, 4),), {0: "n"}),
    "squeeze of an axis of another size": Case(
        "aten::squeeze.dim", lambda x: (x.squeeze(0), x.squeeze(1), x.squeeze(-1)), (f32(3, 2, 4),), {0: "n"}
    ),
    "squeeze of a number": Case("aten::squeeze.dim", lambda x: x.squeeze(0) + 1, (torch.tensor(3.0),)),
    "median": Case("aten::median", torch.median, (f32(3, 5),), {0: "n"}),
    "median of an even number": Case("aten::median", torch.median, (f32(3, 4),)),
    "median with NaN": Case("aten::median", torch.median, (EXTREME,)),
    "median of integers": Case("aten::median", torch.median, (ints(3, 4),)),
    "median of a dim": Case("aten::median.dim", lambda x: tuple(x.median(1)), (f32(3, 5, 2),), {1: "n"}),
    "median of a dim, kept, with NaN": Case(
        "aten::median.dim", lambda x: tuple(x.median(-1, keepdim=True)), (torch.stack([EXTREME, EXTREME.nan_to_num()]),)
    ),
    "median of a number": Case("aten::median.dim", lambda x: tuple(x.median(0)), (torch.tensor(3.0),)),
    "cumprod": Case("aten::cumprod", lambda x: x.cumprod(1), (f32(3, 4, 2),), {1: "n"}),
    "cumprod of integers": Case("aten::cumprod", lambda x: x.int().cumprod(-1), (ints(2, 5) + 1,)),
    "cumprod, another dtype": Case("aten::cumprod", lambda x: x.cumprod(0, dtype=torch.float64), (f32(5),)),
    "cumprod, in order": Case("aten::cumprod", lambda x: x.cumprod(0), (torch.tensor([1e-30, 1e30, 1e30, 1e-3]),)),
    "searchsorted": Case("aten::searchsorted.Tensor", torch.searchsorted, (SORTED, SOUGHT)),
    "searchsorted, right": Case(
        "aten::searchsorted.Tensor", lambda s, x: torch.searchsorted(s, x, right=True, out_int32=True), (SORTED, SOUGHT)
    ),
    "searchsorted, one row": Case(
        "aten::searchsorted.Tensor", lambda s, x: torch.searchsorted(s, x, side="right"), (SORTED[0], f32(2, 3, 4))
    ),
    "searchsorted, sorter": Case(
        "aten::searchsorted.Tensor",
        lambda s, x: torch.searchsorted(s, x, sorter=s.argsort(-1)),
        (SORTED.flip(-1), SOUGHT),
    ),
    "searchsorted of a number": Case("aten::searchsorted.Scalar", lambda s: torch.searchsorted(s, 0.0), (SORTED[0],)),
    "nonzero_static": Case("aten::nonzero_static", lambda x: torch.nonzero_static(x, size=5), (bools(3, 4),)),
    "nonzero_static, with a fill": Case(
        "aten::nonzero_static", lambda x: torch.nonzero_static(x, size=20, fill_value=7), (bools(3, 4),)
    ),
    "masked_select": Case("aten::masked_select", torch.masked_select, (f32(3, 4), bools(3, 4)), {}),
    "masked_select, broadcast": Case("aten::masked_select", torch.masked_select, (f32(3, 1), bools(2, 1, 4))),
    **{
        f"cdist, p={p}": Case("aten::_cdist_forward", lambda a, b, p=p: torch.cdist(a, b, p), POINTS)
        for p in (0.0, 1.0, 2.0, 3.5, INF)
    },
    "cdist of large sets": Case(
        "aten::_cdist_forward",
        lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"),
        (f32(40, 3), f32(30, 3)),
        {0: "n"},
    ),
    "_adaptive_avg_pool3d": Case(
        "aten::_adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 5, 3)), (f32(2, 3, 4, 7, 3),), {0: "n"}
    ),
    "fractional_max_pool2d": Case("aten::fractional_max_pool2d", fractional, (f32(2, 3, 8, 9), SAMPLES)),
    "fractional_max_pool2d of an image": Case("aten::fractional_max_pool2d", fractional, (f32(3, 8, 9), SAMPLES[:1])),
    "grouped_mm_fallback": Case(
        "transformers::grouped_mm_fallback", grouped, (f32(7, 4), f32(3, 4, 5), ENDS)
    ),
    "grouped_mm_fallback, rows without a group": Case(
        "transformers::grouped_mm_fallback", grouped, (f32(9, 4), f32(3, 4, 5), ENDS)
    ),
    **{
        f"attention, 4 dims, mask of {kind} that leaves no key, {label}": Case(
            ATTENTION, lambda x, y, m, g=g: F.scaled_dot_product_attention(x, y, y, m, enable_gqa=g), (x, y, mask)
        )
        for kind, mask in (("bools", MASK), ("floats", BIAS))
        for label, x, y, g in (("plain", ROWS, ROWS, False), ("few heads", ROWS, ROWS[:, :2], True))
    },
    "flash attention, mask that leaves no key": Case(
        FLASH, lambda x, m: flash(x, x, x, attn_mask=m, scale=0.3)[0], (ROWS, BIAS), {0: "n"}
    ),
    "flash attention, few heads": Case(FLASH, lambda x, y: flash(x, y, y)[0], (ROWS, ROWS[:, :2])),
    "flash attention, causal": Case(FLASH, lambda x: flash(x, x, x, is_causal=True)[0], (ROWS,)),
    "attention, negative scale": Case(
        ATTENTION, lambda x, m: F.scaled_dot_product_attention(x, x, x, m, scale=-0.3), (ROWS, BIAS)
    ),
    "attention, 5 dims": Case(
        ATTENTION, F.scaled_dot_product_attention, QUERIES
    ),
    "attention, 3 dims, mask of bools": Case(
        ATTENTION, lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask), (f32(2, 3, 4), MASK)
    ),
    "attention, 3 dims, mask of floats": Case(
        ATTENTION, lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask, scale=0.3), (f32(2, 3, 4), f32(3, 3))
    ),
    "attention, 5 dims, causal": Case(
        ATTENTION, lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (f32(1, 2, 2, 5, 4),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_translation(name: str, tmp_path: Path) -> None:
    """`compiler.export` compares the plan with PyTorch, and warns if it cannot. For all results, plans are exact."""
    case = CASES[name]
    dims = {"inputs": ({**case.dims}, *({} for _ in case.args[1:]))} if case.dims else None
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        compiler.export(
            Function(case.function), case.args, tmp_path / "m.onnx", exporter="dynamo",
            dynamic_shapes=shared(dims, case.args),
        )  # fmt: skip


def shared(dims: dict[str, Any] | None, args: tuple[Any, ...]) -> Any:
    """The same name for the dims of other arguments with the same shape."""
    if dims is None:
        return None
    first, *_ = dims["inputs"]
    return {"inputs": tuple(dict(first) if each.shape == args[0].shape else {} for each in args)}


def test_every_translation_has_a_case() -> None:
    assert {case.operator for case in CASES.values()} == set(NAMES)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", ["cumprod", "median of a dim", "grouped_mm_fallback", "searchsorted"])
def test_plans_without_optimization_are_equal_too(name: str, optimize: bool, tmp_path: Path) -> None:
    case = CASES[name]
    path = compiler.export(Function(case.function), case.args, tmp_path / "m.onnx", check=False)
    session = compiler.load(compiler.compile(path, compiler.Options(optimize=optimize)))
    found = session(*case.args, as_="torch")
    wanted = case.function(*case.args)
    pairs = zip(*((each if isinstance(each, tuple) else (each,)) for each in (found, wanted)), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def test_a_translation_refuses_what_it_cannot_say(tmp_path: Path) -> None:
    def noisy(x: Any) -> Any:
        return torch.ops.aten.rrelu(x, 0.1, 0.3, True)

    with pytest.raises(compiler.ExportError, match=r"aten\.rrelu.*in training mode, rrelu draws its slopes at random"):
        compiler.export(Function(noisy), (f32(3),), tmp_path / "m.onnx", exporter="dynamo")


def test_a_program_may_give_its_own_translation(tmp_path: Path) -> None:
    from onnxscript import opset18 as op

    def airy(self: Any) -> Any:
        return op.Neg(self)

    module, table = Function(torch.special.airy_ai), {torch.ops.aten.special_airy_ai.default: airy}
    path = compiler.export(module, (f32(3),), tmp_path / "m.onnx", custom_translation_table=table, check=False)
    found = compiler.load(compiler.compile(path))(f32(3), as_="torch")
    assert torch.equal(found, -f32(3))
    with pytest.raises(
        TypeError, match="custom_translation_table: expected a dict of functions by operator, found list"
    ):
        compiler.export(module, (f32(3),), tmp_path / "m.onnx", custom_translation_table=[airy])  # type: ignore[arg-type]


def test_arguments_of_torch_export_that_mean_nothing_here(tmp_path: Path) -> None:
    for options, said in (
        (
            {"strict": True},
            r"strict: leave it out, because PyTorch's exporter tries both modes; or .*\(…, strict=True\)",
        ),
        ({"preserve_module_call_signature": ("a",)}, "preserve_module_call_signature: leave it out, .* no modules"),
        ({"prefer_deferred_runtime_asserts_over_guards": True}, "_guards: leave it out, .* no assertions"),
    ):
        with pytest.raises(ValueError, match=said):
            compiler.export(Function(torch.neg), (f32(3),), tmp_path / "m.onnx", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
