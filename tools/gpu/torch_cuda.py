"""PyTorch on the same GPU, where it is there."""

from __future__ import annotations

import importlib
from typing import Any

from gpu.results import unavailable


def torch_on(device: str) -> Any:
    """PyTorch, with the device as its current one.

    Raises:
        NotRun, LeftOut: it is not here, or does not find the GPU.
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
    """Lets products and convolutions of `float32` use TF32, or not."""
    torch.backends.cuda.matmul.allow_tf32 = is_allowed
    torch.backends.cudnn.allow_tf32 = is_allowed
