"""The peak speed of matrix products on the machine, measured with PyTorch's cuBLAS."""

from __future__ import annotations

import time
from collections.abc import Iterator

from gpu.page import table
from gpu.process import Setting
from gpu.results import Result
from gpu.torch_cuda import allow_tf32, torch_on

SIZE = 8192
KINDS = {"f32": ("float32", False), "TF32": ("float32", True), "f16": ("float16", False), "bf16": ("bfloat16", False)}
"""The type of both matrices, and whether TF32 is allowed."""
SECONDS = 0.5

lines = table({"TFLOP/s": "teraflops"})


def names(setting: Setting) -> list[str]:
    """The kinds of products."""
    return list(KINDS)


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """TFLOP/s of a product of random square matrices."""
    torch = torch_on(setting.device)
    kind, is_tf32 = KINDS[name]
    allow_tf32(torch, is_tf32)
    a, b = (torch.randn(SIZE, SIZE, device="cuda").to(getattr(torch, kind)) for _ in range(2))
    for _ in range(3):
        a @ b
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        for _ in range(3):
            a @ b
        torch.cuda.synchronize()
        count += 3
    yield {"teraflops": 2 * SIZE**3 * count / (time.perf_counter() - start) / 1e12, "size": SIZE}
