"""Activations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.layer import f16, f32, function, layer, translates_no

X = f32(3, 4, 5) * 3


class Snake(nn.Module):
    """`x + sin²(αx) / α`, with an α for each channel, as in vocoders."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.rand(1, channels, 1) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.sin(self.alpha * x).pow(2) / (self.alpha + 1e-9)


class LogProb(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer.log_prob(x)


LAYERS = [
    layer("ReLU", nn.ReLU, X),
    layer("ReLU6", nn.ReLU6, X),
    layer("LeakyReLU", lambda: nn.LeakyReLU(0.2), X),
    layer("RReLU", nn.RReLU, X, ours="translation", unexportable=translates_no("dynamo", "aten.rrelu")),
    layer("PReLU", lambda: nn.PReLU(4), X),
    layer("PReLU, one slope", nn.PReLU, X),
    layer("ELU", lambda: nn.ELU(0.7), X),
    layer("SELU", nn.SELU, X),
    layer("CELU", lambda: nn.CELU(0.7), X),
    layer("GELU", nn.GELU, X),
    layer("GELU, tanh", lambda: nn.GELU("tanh"), X),
    layer("GELU, opset 18", nn.GELU, X, opset=18),
    layer("GELU, half precision", nn.GELU, f16(3, 4, 5), tolerance=2e-3),  # f16 has 11 bits
    function("GELU, hand-written", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)), X),
    function("GELU by the logistic function", lambda x: x * torch.sigmoid(1.702 * x), X),
    layer("GLU", nn.GLU, f32(3, 4, 6)),
    function("SwiGLU", lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], f32(3, 4, 6)),
    layer("SiLU", nn.SiLU, X),
    layer("SiLU, opset 24", nn.SiLU, X, opset=24, unexportable={"torchscript": "its newest opset is 20"}),
    layer("Mish", nn.Mish, X),
    layer("Sigmoid", nn.Sigmoid, X),
    layer("LogSigmoid", nn.LogSigmoid, X),
    layer("Hardsigmoid", nn.Hardsigmoid, X),
    layer("Hardswish", nn.Hardswish, X),
    layer("Hardtanh", lambda: nn.Hardtanh(-0.5, 1.5), X),
    layer("Hardshrink", lambda: nn.Hardshrink(0.7), X),
    layer("Softshrink", lambda: nn.Softshrink(0.7), X),
    layer("Tanh", nn.Tanh, X),
    layer("Tanhshrink", nn.Tanhshrink, X),
    layer("Softsign", nn.Softsign, X),
    layer("Softplus", nn.Softplus, X),
    layer(
        "Softplus, beta and threshold",
        lambda: nn.Softplus(2.0, 1.5),
        X,
        misexported={"torchscript": "it ignores the threshold"},
    ),
    layer(
        "Threshold",
        lambda: nn.Threshold(0.3, -7.0),
        X,
        unexportable={"torchscript": "it supports only a threshold and a value of zero"},
    ),
    layer("Softmax", lambda: nn.Softmax(-1), X),
    layer("Softmax over channels", lambda: nn.Softmax(1), X),
    layer("Softmax2d", nn.Softmax2d, f32(2, 4, 3, 5)),
    layer("Softmin", lambda: nn.Softmin(1), X),
    layer("LogSoftmax", lambda: nn.LogSoftmax(-1), X),
    layer("Softmax of infinite scores", lambda: nn.Softmax(-1), X.masked_fill(X > 2, float("-inf"))),
    layer("AdaptiveLogSoftmaxWithLoss, log_prob", LogProb, f32(5, 16)),
    layer("Snake", lambda: Snake(4), X),
    layer(
        "Dropout, Dropout1d, AlphaDropout", lambda: nn.Sequential(nn.Dropout(), nn.Dropout1d(), nn.AlphaDropout()), X
    ),
    function(
        "gumbel_softmax, noise as an input",
        lambda x, u: F.softmax((x - torch.log(-torch.log(u))) / 0.7, -1),
        X,
        torch.sigmoid(X),
    ),
]
