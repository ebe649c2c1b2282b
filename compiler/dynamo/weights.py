"""Tensors that are constants of a plan. A plan fits a run if these tensors are as they were when it was compiled."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["Watched", "can_watch"]


def can_watch(value: Any) -> bool:
    """Whether PyTorch counts the changes of a tensor. It does not count those of tensors of inference mode."""
    return isinstance(value, torch.Tensor) and not value.is_inference() and not value.is_neg()


class Watched:
    """The state of a tensor at one time.

    PyTorch counts changes in place (`Tensor._version`), also changes through views and `load_state_dict`. An assignment
    to `data` gives the tensor other memory. PyTorch does not count changes through `data` itself
    (`tensor.data.add_(1)`) or through a NumPy array of the same memory. Such changes stay unnoticed.
    """

    def __init__(self, tensor: torch.Tensor, ended: Callable[[], None]) -> None:
        """Watch a tensor. The function `ended` is called when the tensor no longer exists."""
        self._tensor = weakref.ref(tensor, lambda _: ended())
        self._memory = tensor.detach()  # so that no other tensor gets this address
        self._address = tensor.data_ptr()
        self._version = tensor._version

    def watches(self, tensor: Any) -> bool:
        """Whether this is the tensor, changed or not."""
        return self._tensor() is tensor

    def is_unchanged(self, tensor: torch.Tensor) -> bool:
        """Whether this is the tensor, with the same elements."""
        if not self.watches(tensor):
            return False
        # The guards of dynamo check the shape and the strides.
        return bool(tensor._version == self._version and tensor.data_ptr() == self._address)
