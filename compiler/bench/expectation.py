"""The commands of a plan's run on a GPU, from a dry run, and an estimate of the time from the GPU's published limits.

In the estimate, each step takes as long as its arithmetic or its memory traffic at the GPU's peak, whichever is longer,
and copies to and from the host run at the peak of the bus. Launches and waits are only counted, because no source
gives their cost.

The estimate assumes that every tensor crosses the GPU's memory once in each step that reads or writes it. A small
tensor may stay in the L2 cache between two steps, which can then take less time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compiler import _runtime
from compiler.ir.symbols import shown
from compiler.runtime.custom import functions
from compiler.runtime.failures import failures, own_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.plan import Plan

__all__ = ["GPUS", "GpuForm", "GpuLimits", "GpuStep", "Product", "expected_steps"]


@dataclass(frozen=True)
class GpuLimits:
    """The peaks of a GPU: operations per second by precision, bytes per second of its memory and, one way, of its bus.

    The peaks of arithmetic are for dense matrices, and for `float32` without TF32. cuBLAS may multiply `float64` on
    tensor cores, at the rate of `float64_products`; kernels compute at the rate of `float64`.
    """

    name: str
    float64: float
    float64_products: float
    float32: float
    float16: float
    memory: float
    bus: float
    source: str

    def seconds(self, step: GpuStep) -> float:
        """The estimated time of a step: arithmetic or memory, and copies to and from the host."""
        device = 0.0 if step.host is not None else max(step.operations / self.peak(step), step.bytes / self.memory)
        return device + (step.uploaded + step.downloaded) / self.bus

    @property
    def codes(self) -> float:
        """Operations per second on 8-bit codes: `__dp4a` multiplies and adds four pairs of codes in one instruction.

        No source gives the rate of this instruction. The estimate assumes the rate of `float32` instructions,
        which multiply and add one pair each.
        """
        return 4 * self.float32

    def peak(self, step: GpuStep) -> float:
        """The peak of the fastest arithmetic of a step. Integers other than codes count as `float32`."""
        float64 = self.float64_products if step.products else self.float64
        peaks = {"f64": float64, "f16": self.float16, "bf16": self.float16, "codes": self.codes}
        return max((peaks.get(kind, self.float32) for kind in step.arithmetic), default=self.float32)


_HOPPER = 33.5e12, 66.9e12, 66.9e12, 989.4e12
"""The peaks of `float64`, its products on tensor cores, `float32` and 16 bits. The datasheet rounds them to 34, 67, 67
and 989."""
_ADA = 1.29e12, 1.29e12, 82.6e12, 165.2e12
"""The same peaks. Products of `float64` are no faster than other arithmetic."""
GPUS = (
    GpuLimits("H100 SXM", *_HOPPER, 3.35e12, 64e9, "NVIDIA, H100 Tensor Core GPU Architecture"),
    GpuLimits("H200 SXM", *_HOPPER, 4.8e12, 64e9, "NVIDIA, H200 Tensor Core GPU Datasheet"),
    GpuLimits("RTX 4090", *_ADA, 1.008e12, 32e9, "NVIDIA, Ada GPU Architecture, appendix A"),
)
"""The GPUs with expected times. Products of 16 bits accumulate in `float32`, on tensor cores."""


@dataclass(frozen=True)
class Product:
    """Calls of cuBLAS, each of `batch` products `[m, k] · [k, n]` with elements of type `kind`."""

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
class GpuForm:
    """A form of a step that the runtime compared, and its expected time on an H100 in microseconds.

    `chosen` marks the form in which the step runs. `limit` is the reason why the runtime does not choose a form,
    whatever its time; `None` if it may choose the form.
    """

    form: str
    microseconds: float
    chosen: bool
    limit: str | None


@dataclass(frozen=True)
class GpuStep:
    """The commands of a step in one run.

    `kernels` counts the launches of each kernel, named `module/kernel`. `layout` is the layout of the first output.
    `operations` and `bytes` come from the op's formula, and are 0 if it is unknown. `host` is the reason why the step
    runs on the host, and `None` for a step on the GPU. `alternatives` are the forms that the runtime compared in the
    step's first run, if the step has several.
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
    alternatives: list[GpuForm] = field(default_factory=list)

    @property
    def launches(self) -> int:
        """The number of kernel launches and cuBLAS calls."""
        return sum(self.kernels.values()) + sum(product.calls for product in self.products)

    @property
    def precision(self) -> str:
        """The type of its arithmetic, from its products or its kernels' names; empty for none."""
        return min(self.arithmetic & set(_PRECISIONS), key=_PRECISIONS.index, default="")

    @property
    def arithmetic(self) -> set[str]:
        """The floating types of its products, or of its kernels; `codes` for kernels that multiply 8-bit codes."""
        if self.products:
            return {product.kind.partition("_")[0] for product in self.products}
        of_codes = {"codes" for name in self.kernels if name.startswith(_OF_CODES)}
        return of_codes | {name.rpartition("_")[2] for name in self.kernels} & set(_PRECISIONS)


_PRECISIONS = ("f64", "f32", "bf16", "f16")
"""The precisions, slowest first."""
_OF_CODES = "qlinear/"
"""The module whose kernels use `__dp4a`."""


def expected_steps(plan: Plan, inputs: Mapping[str, Any]) -> list[GpuStep]:
    """The commands of a run of the plan on these inputs, by step; no GPU is needed.

    The host's steps run. They read zeros for values on the GPU.

    Raises:
        InputError: an input does not fit the plan's declaration.
        RunError: a step of the host cannot take zeros.
    """
    try:
        steps = json.loads(_runtime.Session.dry_run(plan.data, functions()).commands(dict(inputs)))
    except failures(_runtime) as error:
        raise own_error(_runtime, error) from None
    return [_step(step) for step in steps]


def _step(data: dict[str, Any]) -> GpuStep:
    products = [Product(**product) for product in data.pop("products")]
    work = data.pop("work") or {"operations": 0, "bytes": 0}
    alternatives = [GpuForm(**form) for form in data.pop("alternatives")]
    data["origin"] = shown(data["origin"])
    facts = {**data, "products": products, "alternatives": alternatives}
    return GpuStep(**facts, operations=work["operations"], bytes=work["bytes"])
