"""PyTorch on the same GPU, if it is installed."""

from __future__ import annotations

import importlib
from typing import Any

from gpu.results import unavailable


def torch_on(device: str) -> Any:
    """PyTorch, with the device as its current one.

    Raises:
        NotRun, LeftOut: PyTorch is not installed, or does not find the GPU.
    """
    if not device.startswith("cuda"):
        raise unavailable(device, f"PyTorch has no device {device!r}")
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        raise unavailable(device, f"PyTorch cannot be imported ({type(error).__name__})") from None
    if not torch.cuda.is_available():
        raise unavailable(device, "PyTorch finds no GPU")
    torch.cuda.set_device(device if ":" in device else "cuda:0")
    return torch


def allow_tf32(torch: Any, is_allowed: bool) -> None:
    """Sets whether products and convolutions of `float32` may use TF32."""
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    torch.backends.cudnn.allow_tf32 = is_allowed
