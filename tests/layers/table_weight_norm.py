"""Weights stored as direction and magnitude. Large ones are left to the compiler, because the exporters' own constant
folding has a limit of size."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from tests.layers.layer import Layer, f32, layer, translates_no

OLD, NEW = "weight_norm", "parametrizations.weight_norm"
NORMS: dict[str, Callable[..., nn.Module]] = {OLD: weight_norm, NEW: parametrizations.weight_norm}
DIMS = (0, 1, None)
MODULES = {
    "Conv1d": (lambda n: nn.Conv1d(n, n + 2, 3), lambda n: f32(2, n, 9), "Conv"),
    "Conv2d": (lambda n: nn.Conv2d(n, n + 2, 3), lambda n: f32(1, n, 5, 6), "Conv"),
    "ConvTranspose1d": (lambda n: nn.ConvTranspose1d(n, n + 2, 4, stride=2), lambda n: f32(2, n, 9), "ConvTranspose"),
    "ConvTranspose2d": (lambda n: nn.ConvTranspose2d(n, n + 2, 3), lambda n: f32(1, n, 4, 5), "ConvTranspose"),
    "Linear": (lambda n: nn.Linear(n, n + 2), lambda n: f32(3, n), "Gemm"),
}
"""How a module of so many channels is made, its input, and the only op that its plan may have."""
LARGE = {"Conv1d": 64, "Conv2d": 40, "ConvTranspose1d": 64, "ConvTranspose2d": 40, "Linear": 128}


def _normalized(norm: str, kind: str, dim: int | None, channels: int) -> Layer:
    build, given, op = MODULES[kind]
    size = "large" if channels == LARGE[kind] else "small"
    name = f"{norm}, {kind}, dim={dim}, {size}"
    return layer(name, lambda: NORMS[norm](build(channels), dim=dim), given(channels), steps=[op])


def _at_run_time(norm: str, kind: str, dim: int | None) -> Layer:
    build, given, _ = MODULES[kind]
    name = f"{norm}, {kind}, dim={dim}, weights as inputs"
    return layer(
        name,
        lambda: NORMS[norm](build(4), dim=dim),
        given(4),
        options={"export_params": False, "keep_initializers_as_inputs": True},
    )


LAYERS = [
    *(_normalized(norm, kind, dim, LARGE[kind]) for norm, kind, dim in itertools.product(NORMS, MODULES, DIMS)),
    *(_normalized(OLD, kind, dim, 4) for kind, dim in itertools.product(MODULES, (0, None))),
    *(_at_run_time(norm, kind, dim) for norm, kind in itertools.product(NORMS, ("Conv1d", "Linear")) for dim in DIMS),
    layer(
        "weight_norm, Conv2d, dim=0, opset 17",
        lambda: weight_norm(nn.Conv2d(40, 42, 3)),
        f32(1, 40, 5, 6),
        opset=17,
        steps=["Conv"],
    ),
    layer(
        "weight_norm twice, with ReLU between",
        lambda: nn.Sequential(weight_norm(nn.Conv1d(64, 66, 3)), nn.ReLU(), weight_norm(nn.Conv1d(66, 64, 3))),
        f32(1, 64, 12),
        steps=["Conv", "Conv"],
    ),
    layer("spectral_norm, Conv2d", lambda: spectral_norm(nn.Conv2d(40, 42, 3)), f32(1, 40, 5, 6), steps=["Conv"]),
    layer("spectral_norm, Linear", lambda: spectral_norm(nn.Linear(128, 130)), f32(3, 128), steps=["Gemm"]),
    layer(
        "parametrizations.spectral_norm, Linear",
        lambda: parametrizations.spectral_norm(nn.Linear(128, 130)),
        f32(3, 128),
        steps=["Gemm"],
        unexportable=translates_no("torchscript", "aten::vdot"),
    ),
]
