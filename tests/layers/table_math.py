"""Arithmetic, reductions, comparisons, sorting and transforms."""

from __future__ import annotations

import torch

from tests.layers.layer import bools, f16, f32, f64, function, ints, positive, translates_no

X, Y = f32(3, 4, 5), f32(4, 5)
I1, I2 = ints(3, 4) - 5, ints(3, 4).flip(0) % 4 + 1


def spectrogram(x: torch.Tensor) -> torch.Tensor:
    spectrum = torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True)
    return torch.view_as_real(spectrum)


LAYERS = [
    function("add, sub, mul, div", lambda x, y: (x + y) * (x - y) / (y.abs() + 1), X, Y),
    function("add, alpha", lambda x, y: torch.add(x, y, alpha=0.5), X, Y),
    function(
        "addcmul, addcdiv",
        lambda x, y: torch.addcmul(x, y, y, value=2) + torch.addcdiv(x, y, y.abs() + 1),
        X,
        Y,
        unexportable=translates_no("torchscript", "aten::addcdiv"),
    ),
    function("lerp", lambda x, y: torch.lerp(x, y, 0.3), X, Y),
    function(
        "div, rounded",
        lambda x, y: (torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")),
        X,
        Y,
    ),
    function(
        "floor_divide of integers",
        lambda i, j: i // j,
        I1,
        I2,
        misexported={"torchscript": "it rounds some quotients up"},
    ),
    function("remainder, fmod", lambda x, y: (torch.remainder(x, y), torch.fmod(x, y)), X, Y),
    function("remainder, fmod of integers", lambda i, j: (i % j, torch.fmod(i, j)), I1, I2),
    function("pow", lambda x, y: x**y, positive(3, 4, 5), Y),
    function("square, cube, inverse root", lambda x: (x**2, x**3, x**-0.5), positive(3, 4, 5)),
    function("power of a number", lambda x: 2.0**x, X),
    function("exp", torch.exp, X),
    function("exp2", torch.exp2, X, unexportable=translates_no("torchscript", "aten::exp2")),
    function("expm1", torch.expm1, X, unexportable=translates_no("torchscript", "aten::expm1")),
    function("log, log2, log10, log1p", lambda x: (x.log(), x.log2(), x.log10(), x.log1p()), positive(3, 4, 5)),
    function("sqrt, rsqrt, reciprocal", lambda x: (x.sqrt(), x.rsqrt(), x.reciprocal()), positive(3, 4, 5)),
    function("sin, cos, tan", lambda x: (x.sin(), x.cos(), x.tan()), X),
    function("asin, acos, atan", lambda x: (x.asin(), x.acos(), x.atan()), torch.tanh(X)),
    function("tanh", torch.tanh, X),
    function("sinh, cosh", lambda x: (x.sinh(), x.cosh()), X, unexportable=translates_no("torchscript", "aten::sinh")),
    function(
        "asinh, acosh, atanh",
        lambda x: (x.asinh(), (x.abs() + 1.5).acosh(), (x / 9).atanh()),
        X,
        unexportable=translates_no("torchscript", "aten::asinh"),
    ),
    function("atan2", torch.atan2, X, Y),
    function(
        "hypot",
        torch.hypot,
        X,
        Y,
        ours="translation",
        unexportable={"dynamo": "it does not translate aten.hypot", "torchscript": "it does not translate aten::hypot"},
    ),
    function("erf", torch.erf, X),
    function("erfc", torch.erfc, X, unexportable=translates_no("torchscript", "aten::erfc")),
    function("logit", lambda x: torch.logit(x, 1e-3), torch.sigmoid(X)),
    function("abs, neg, sign", lambda x: (x.abs(), -x, x.sign()), X),
    function("floor, ceil", lambda x: (x.floor(), x.ceil()), X * 3),
    function(
        "trunc, frac", lambda x: (x.trunc(), x.frac()), X * 3, unexportable=translates_no("torchscript", "aten::trunc")
    ),
    function("round, half to even", torch.round, torch.arange(-4.0, 4.0, 0.5)),
    function("round to decimals", lambda x: torch.round(x, decimals=2), X),
    function("clamp", lambda x: x.clamp(-0.5, 1.0), X),
    function("clamp, one bound", lambda x: (x.clamp(min=0.2), x.clamp(max=0.3)), X),
    function("clamp between tensors", lambda x, y: torch.clamp(x, y - 1, y + 0.5), X, Y),
    function("clamp of integers", lambda i: i.clamp(-2, 3), I1),
    function("maximum, minimum", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), X, Y),
    function(
        "nan_to_num",
        lambda x: torch.nan_to_num(x, 1.0, 2.0, -3.0),
        torch.tensor([1.0, float("nan"), float("inf"), -float("inf")]),
    ),
    function(
        "isnan, isinf, isfinite",
        lambda x: (x.isnan(), x.isinf(), x.isfinite()),
        torch.tensor([1.0, float("nan"), float("inf"), -float("inf")]),
    ),
    function("sum", lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True)), X),
    function("mean", lambda x: (x.mean(), x.mean(1), x.mean((0, 2), keepdim=True)), X),
    function("prod", lambda x: (x.prod(), x.prod(1)), X),
    function("var", lambda x: (x.var(), x.var(1), x.var(1, correction=0)), X),
    function("std", lambda x: (x.std(), x.std((1, 2), keepdim=True)), X),
    function("var_mean", lambda x: torch.var_mean(x, 1), X),
    function("norm", lambda x: (x.norm(), x.norm(dim=1), x.norm(p=1, dim=(0, 1)), x.norm(p=float("inf"), dim=1)), X),
    function("norm, p=3", lambda x: x.norm(p=3, dim=1), X),
    function("logsumexp", lambda x: (x.logsumexp(1), x.logsumexp((0, 2), keepdim=True)), X),
    function("max, min of all", lambda x: (x.max(), x.min()), X),
    function("max, min of a dim", lambda x: (*x.max(1), *x.min(2, keepdim=True)), X),
    function("amax, amin", lambda x: (x.amax((0, 1)), x.amin(1, keepdim=True)), X),
    function("aminmax", lambda x: tuple(torch.aminmax(x, dim=1)), X),
    function("argmax, argmin", lambda x: (x.argmax(1), x.argmin(), x.argmax(-1, keepdim=True)), X),
    function(
        "median",
        lambda x: x.median(),
        f32(3, 5),
        ours="translation",
        unexportable={
            "dynamo": "it does not translate aten.median",
            "torchscript": "it does not translate aten::median",
        },
    ),
    function("any, all", lambda m: (m.any(), m.any(1), m.all(0)), bools(3, 4)),
    function(
        "count_nonzero",
        lambda m: torch.count_nonzero(m, 1),
        bools(3, 4),
        unexportable=translates_no("torchscript", "aten::count_nonzero"),
    ),
    function("cumsum", lambda x: x.cumsum(1), X),
    function("cumsum of integers", lambda i: i.cumsum(-1), I1),
    function(
        "cumprod",
        lambda x: x.cumprod(1),
        X,
        ours="translation",
        unexportable={
            "dynamo": "it does not translate aten.cumprod",
            "torchscript": "it does not translate aten::cumprod",
        },
    ),
    function("diff", lambda x: x.diff(dim=1), X, unexportable=translates_no("torchscript", "aten::diff")),
    function("topk", lambda x: x.topk(3), X),
    function("topk, smallest, of another dim", lambda x: x.topk(2, dim=1, largest=False), X),
    function("sort", lambda x: x.sort(1), X),
    function("sort, descending", lambda x: x.sort(-1, descending=True), X),
    function("argsort", lambda x: x.argsort(2), X),
    function("unique", lambda i: torch.unique(i), ints(12)),
    function(
        "bincount",
        lambda i: torch.bincount(i, minlength=10),
        ints(12),
        unexportable=translates_no("torchscript", "aten::bincount"),
    ),
    function("bucketize", torch.bucketize, X, torch.tensor([-1.0, 0.0, 0.5, 2.0])),
    function(
        "searchsorted, right",
        lambda s, x: torch.searchsorted(s, x, right=True),
        torch.tensor([-1.0, 0.0, 0.5, 2.0]),
        X,
        ours="translation",
        unexportable={
            "dynamo": "it does not translate aten.searchsorted",
            "torchscript": "it does not translate aten::searchsorted",
        },
    ),
    function("histc", lambda x: torch.histc(x, 4, -2, 2), X, unexportable=translates_no("torchscript", "aten::histc")),
    function("cross", lambda x, y: torch.linalg.cross(x, y, dim=-1), f32(4, 3), f32(4, 3).flip(0)),
    function("comparisons", lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), I1, I2),
    function("logical operations", lambda a, b: (a & b, a | b, a ^ b, ~a), bools(3, 4), bools(3, 4).flip(0)),
    function(
        "bitwise operations",
        lambda i, j: (i & j, i | j, i ^ j, ~i),
        I1,
        I2,
        unexportable={"torchscript": "it supports aten::bitwise_or only for booleans"},
    ),
    function("bitwise and", lambda i, j: i & j, I1, I2),
    function(
        "shifts",
        lambda i, j: (i << j, (i + 5) >> j),
        I1,
        I2,
        ours="translation",
        unexportable=translates_no("dynamo", "aten.__lshift__"),
    ),
    function("isclose", torch.isclose, X, X + 1e-6, unexportable=translates_no("torchscript", "aten::isclose")),
    function(
        "casts", lambda x: (x.int(), x.long(), x.bool(), x.double(), x.half(), x.to(torch.uint8)), positive(3, 4) * 9
    ),
    function("mixed dtypes", lambda x, i, m: x * i + m, f32(3, 4), I1, bools(3, 4)),
    function("type promotion of integers", lambda i: (i / 2, i * 0.5, i.int() + i), I1),
    function("half precision", lambda x: (x * x + 1.5).sum(-1).exp() / 9, f16(3, 4), tolerance=2e-3),  # f16 has 11 bits
    function("double precision", lambda x: (x * x + 1.5).sum(-1).sqrt(), f64(3, 4), tolerance=1e-14),
    function("bfloat16", lambda x: (x.bfloat16() * 1.5 + 1).float(), f32(3, 4), tolerance=1e-2),  # it has 8 bits
    function("stft", spectrogram, f32(2, 40), unexportable={"torchscript": "it does not support complex numbers"}),
    function(
        "fft.rfft",
        lambda x: torch.view_as_real(torch.fft.rfft(x)),
        f32(2, 16),
        unexportable=translates_no("torchscript", "aten::fft_rfft"),
    ),
    function(
        "fft.fft, ifft",
        lambda x: torch.fft.ifft(torch.fft.fft(x)).real,
        f32(2, 16),
        unexportable=translates_no("torchscript", "aten::fft_fft"),
    ),
    function(
        "fft.irfft",
        lambda x: torch.fft.irfft(torch.view_as_complex(x)),
        f32(2, 9, 2),
        unexportable=translates_no("torchscript", "aten::view_as_complex"),
    ),
    function("hann_window", lambda x: x * torch.hann_window(5), X),
    function(
        "hamming_window",
        lambda x: x * torch.hamming_window(5),
        X,
        misexported={"dynamo": "it uses the coefficient 25/46 instead of 0.54"},
        ours="translation",
    ),
    function("cosine_similarity", torch.cosine_similarity, X, X.flip(1)),
    function("softmax of another dtype", lambda x: torch.softmax(x, 1, dtype=torch.float64), X),
    function("mse_loss", torch.nn.functional.mse_loss, X, X.flip(1)),
    function("cross_entropy", torch.nn.functional.cross_entropy, f32(6, 4), ints(6, below=4)),
    function(
        "binary_cross_entropy_with_logits",
        torch.nn.functional.binary_cross_entropy_with_logits,
        X,
        torch.sigmoid(X.flip(1)),
    ),
]
