"""Convolutions of many shapes beside cuDNN: the form that the plan chose, and both times on the device."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import compiler
from gpu import files
from gpu.page import table
from gpu.process import Setting
from gpu.report import Part
from gpu.results import NotRun, Result
from gpu.torch_cuda import allow_tf32, torch_on
from gpu.trace import KERNEL, Event, microseconds, of, traced

RUNS = 3
FAR = 1e-3
"""How far from cuDNN's result ours may be, as a part of the largest element; cuDNN may take Winograd's forms."""


@dataclass(frozen=True)
class Shape:
    """Images `[batch, channels, size, size]`, or lines where `is_line`, and as many `outputs` channels."""

    batch: int
    channels: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    is_transposed: bool = False
    is_line: bool = False

    @property
    def name(self) -> str:
        """As the page shows it."""
        kind = "transposed " if self.is_transposed else ""
        line = "" if self.is_line else "²"
        parts = [f"{kind}{self.batch}×{self.channels}→{self.outputs} {self.size}{line} k{self.kernel}"]
        parts += [f"s{self.stride}"] * (self.stride > 1) + [f"g{self.groups}"] * (self.groups > 1)
        return " ".join(parts + [f"d{self.dilation}"] * (self.dilation > 1))

    @property
    def axes(self) -> int:
        """How many axes an image has."""
        return 1 if self.is_line else 2

    @property
    def input(self) -> tuple[int, ...]:
        """The shape of the images."""
        return (self.batch, self.channels, *[self.size] * self.axes)

    @property
    def weights(self) -> tuple[int, ...]:
        """The shape of the weights."""
        first, second = (self.channels, self.outputs) if self.is_transposed else (self.outputs, self.channels)
        return (first, second // self.groups, *[self.kernel] * self.axes)

    @property
    def padding(self) -> int:
        """Zeros at each end of an axis."""
        whole = self.dilation * (self.kernel - 1)
        return (self.kernel - self.stride) // 2 if self.is_transposed else whole // 2

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of ONNX's operator."""
        axes = self.axes
        return {
            "group": self.groups,
            "strides": [self.stride] * axes,
            "dilations": [self.dilation] * axes,
            "pads": [self.padding] * 2 * axes,
        }

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        pixels = self.size if self.is_transposed else -(-self.size // self.stride)
        return 2 * self.batch * math.prod([pixels] * self.axes) * math.prod(self.weights)


def _resnet(batch: int) -> list[Shape]:
    """Layers of ResNet-50."""
    sizes = ((64, 56), (128, 28), (256, 14), (512, 7))
    layers = [Shape(batch, 3, 64, 224, 7, 2)]
    for width, size in sizes:
        layers += [Shape(batch, 4 * width, width, size, 1), Shape(batch, width, width, size, 3)]
        layers += [Shape(batch, width, 4 * width, size, 1)]
    return [*layers, Shape(batch, 256, 256, 28, 3, 2), Shape(batch, 512, 1024, 28, 1, 2)]


SHAPES = [
    *_resnet(1),
    *_resnet(32),
    *(Shape(batch, width, width, size, 3) for batch in (1, 8) for width, size in ((32, 256), (64, 128), (128, 64))),
    *(Shape(batch, 16, 16, 320, 3) for batch in (1, 8)),
    *(Shape(batch, 64, 32, 128, 2, 2, is_transposed=True) for batch in (1, 8)),
    *(Shape(batch, 512, 256, 32, 16, 8, is_transposed=True, is_line=True) for batch in (1, 32)),
    *(Shape(batch, 64, 64, 4096, size, is_line=True) for batch in (1, 32) for size in (3, 11)),
    *(Shape(batch, 32, 32, 8192, 7, dilation=5, is_line=True) for batch in (1, 32)),
    *(Shape(batch, 96, 96, 56, 3, groups=96) for batch in (1, 32)),
    *(Shape(batch, 128, 128, 56, 3, groups=32) for batch in (1, 32)),
    *(Shape(batch, 3, 8, 640, 3, 2) for batch in (1, 8)),
]
"""Layers of networks for pictures and sound, with few and many images."""

TABLE = table(
    {
        "form": "form",
        "ours, µs": "ours",
        "cuDNN f32, µs": "cudnn_f32",
        "cuDNN TF32, µs": "cudnn_tf32",
        "÷ cuDNN f32": lambda result: result["ours"] / result["cudnn_f32"],
        "TFLOP/s": "teraflops",
    }
)


def lines(part: Part) -> Iterator[str]:
    """The table, and for each form the geometric mean of our time as a part of cuDNN's in float32."""
    yield from TABLE(part)
    ratios: dict[str, list[float]] = defaultdict(list)
    for result in part.results.values():
        if result.get("cudnn_f32"):
            ratios[", ".join(result["form"])].append(math.log(result["ours"] / result["cudnn_f32"]))
    for form, logs in sorted(ratios.items()):
        yield f"- {form}: {math.exp(sum(logs) / len(logs)):.2f} of cuDNN's time, {len(logs)} shapes"


def names(setting: Setting) -> list[str]:
    """The shapes."""
    return [name for name in (shape.name for shape in SHAPES) if name in files.names(setting.bundle, "convolutions")]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Microseconds of a convolution on the device, ours and cuDNN's in float32 and in TF32."""
    torch = torch_on(setting.device)
    shape = next(each for each in SHAPES if each.name == name)
    model = files.read(setting.bundle, "convolutions", name)
    session = compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1)
    case = inputs(shape)
    found = of(traced(torch, partial(session.run, case), RUNS), KERNEL)
    if not found:
        raise NotRun("PyTorch's profiler recorded no kernel")
    ours = microseconds(found) / RUNS
    yield {"form": form_of(found), "ours": ours, "teraflops": shape.operations / ours / 1e6}
    run = cudnn(torch, shape, case)
    for mode in ("f32", "tf32"):
        allow_tf32(torch, mode == "tf32")
        yield {f"cudnn_{mode}": microseconds(of(traced(torch, run, RUNS), KERNEL)) / RUNS}
    allow_tf32(torch, False)
    expected, got = run().cpu().numpy(), next(iter(session.run(case).values()))
    off = float(np.abs(got - expected).max() / np.abs(expected).max())
    yield {"apart": off} | ({"verdict": "different", "note": f"{off:.2g} from cuDNN's"} if off > FAR else {})


def inputs(shape: Shape) -> dict[str, Any]:
    """Images and weights of normal noise."""
    generator = np.random.default_rng(0)
    shapes = {"x": shape.input, "w": shape.weights}
    return {name: generator.standard_normal(each, np.float32) for name, each in shapes.items()}


def form_of(found: list[Event]) -> list[str]:
    """The kernels of a convolution, by name."""
    return list(dict.fromkeys(event.name[:40] for event in found))


def cudnn(torch: Any, shape: Shape, case: dict[str, Any]) -> Any:
    """The same convolution in PyTorch, with the fastest of cuDNN's algorithms."""
    torch.backends.cudnn.benchmark = True
    kind = f"conv_transpose{shape.axes}d" if shape.is_transposed else f"conv{shape.axes}d"
    function = getattr(torch.nn.functional, kind)
    x, w = (torch.from_numpy(case[name]).cuda() for name in ("x", "w"))
    options = {"stride": shape.stride, "padding": shape.padding, "groups": shape.groups, "dilation": shape.dilation}
    return partial(function, x, w, **options)
