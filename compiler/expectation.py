"""The commands of a plan's run on a GPU, found without one, and the least time by the GPU's published limits.

A lower bound of the time, not a measurement: each step takes as long as its arithmetic or its memory traffic at the
GPU's peak, whichever is longer, and copies to and from the host run at the peak of the bus. Launches and waits are
counted; their cost is not published.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler import _runtime
from compiler.symbols import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.plan import Plan

__all__ = ["GPUS", "GpuLimits", "GpuStep", "Product", "expected_steps"]


@dataclass(frozen=True)
class GpuLimits:
    """The peaks of a GPU: operations a second by precision, bytes a second of its memory and, one way, of its bus.

    Peaks are of dense arithmetic: without sparsity, and without TF32 for `float32`.
    """

    name: str
    float64: float
    float32: float
    float16: float
    memory: float
    bus: float
    source: str

    def seconds(self, step: GpuStep) -> float:
        """The least time of a step: arithmetic or memory, and copies to and from the host."""
        peak = {"f64": self.float64, "f16": self.float16, "bf16": self.float16}.get(step.precision, self.float32)
        device = 0.0 if step.host is not None else max(step.operations / peak, step.bytes / self.memory)
        return device + (step.uploaded + step.downloaded) / self.bus


GPUS = (
    GpuLimits("H100 SXM", 33.5e12, 66.9e12, 989.4e12, 3.35e12, 64e9, "NVIDIA, H100 Tensor Core GPU Architecture"),
    GpuLimits("H200 SXM", 33.5e12, 66.9e12, 989.4e12, 4.8e12, 64e9, "NVIDIA, H200 Tensor Core GPU Datasheet"),
    GpuLimits("RTX 4090", 1.29e12, 82.6e12, 165.2e12, 1.008e12, 32e9, "NVIDIA, Ada GPU Architecture, appendix A"),
)
"""The GPUs that times are given for. Products of 16 bits add up in `float32`, on tensor cores."""


@dataclass(frozen=True)
class Product:
    """Calls of the library: `[m, k] · [k, n]`, `batch` times each, of elements of a `kind`."""

    kind: str
    m: int
    n: int
    k: int
    batch: int
    calls: int

    def __str__(self) -> str:
        batch = f"{self.batch} × " if self.batch > 1 else ""
        return f"cuBLAS {batch}{self.m}×{self.k}×{self.n} {self.kind}"


@dataclass(frozen=True)
class GpuStep:
    """The commands of a step in one run.

    `kernels` counts the launches of each, as `module/kernel`; `layout` is that of the first output. `operations` and
    `bytes` are those of its op's formula: 0 where that is not known. `host` is why it runs on the host, `None` for a
    step of the GPU.
    """

    index: int
    op: str
    origin: str
    depth: int
    added: bool
    layout: str | None
    host: str | None
    calls: int
    kernels: Mapping[str, int]
    products: list[Product]
    uploaded: int
    downloaded: int
    waits: int
    operations: int
    bytes: int

    @property
    def launches(self) -> int:
        """Kernels and calls of the library."""
        return sum(self.kernels.values()) + sum(product.calls for product in self.products)

    @property
    def precision(self) -> str:
        """The type that it computes in: that of its products, or of its kernels' names; empty for none."""
        kinds = [product.kind for product in self.products] or [name.rpartition("_")[2] for name in self.kernels]
        known = [kind.partition("_")[0] for kind in kinds if kind.partition("_")[0] in _PRECISIONS]
        return min(known, key=_PRECISIONS.index, default="")


_PRECISIONS = ("f64", "f32", "bf16", "f16")
"""From the one that takes longest."""


def expected_steps(plan: Plan, inputs: Mapping[str, Any]) -> list[GpuStep]:
    """The commands of a run of the plan on these inputs, by step; no GPU is needed.

    The host's steps run. What they read from the GPU is zeros.

    Raises:
        InputError: an input does not fit what the plan declares.
        RunError: a step of the host cannot take zeros.
    """
    steps = json.loads(_runtime.Session.dry_run(plan.data).commands(dict(inputs)))
    return [_step(step) for step in steps]


def _step(data: dict[str, Any]) -> GpuStep:
    products = [Product(**product) for product in data.pop("products")]
    work = data.pop("work") or {"operations": 0, "bytes": 0}
    data["origin"] = shown(data["origin"])
    return GpuStep(**data, products=products, operations=work["operations"], bytes=work["bytes"])
