"""Runs of a PyTorch module, with results as NumPy arrays."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from compiler.frontend.module_state import evaluating, unchanged

if TYPE_CHECKING:
    import torch

__all__ = ["Call", "array", "leaves"]

_BITS = {1: "uint8", 2: "int16"}
"""PyTorch's integers of the same width as the floats that NumPy lacks."""


@dataclass(frozen=True)
class Call:
    """A module with the arguments of a call."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def inputs(self, names: Sequence[str | None]) -> dict[str, Any]:
        """The arguments by the names of the model's inputs, one name for each leaf of the arguments.

        Raises:
            ValueError: there are more or fewer leaves than names.
        """
        pairs = zip(leaves((self.args, self.kwargs)), names, strict=True)
        return {name: array(value) for value, name in pairs if name is not None}

    def run(self, *, seed: int = 0, plain: bool = False) -> list[Any]:
        """The results in order, without `None`. The module and the arguments stay as they are.

        `seed` is the seed of PyTorch's random numbers during the run on the CPU.

        With `plain`, PyTorch uses one thread, and its own kernels instead of oneDNN's. Its results may be rounded in
        another way.
        """
        import torch

        with ExitStack() as stack:
            stack.enter_context(unchanged(self.module))
            stack.enter_context(evaluating(self.module))
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.default_generator.manual_seed(seed)
            if plain:
                stack.enter_context(_plainly())
            args, kwargs = _copy((self.args, self.kwargs))
            found = leaves(self.module(*args, **kwargs))
            return [array(value).copy() for value in found if value is not None]


def leaves(values: Any) -> list[Any]:
    """The tensors and numbers in tuples, lists, dicts, and classes that PyTorch knows as such."""
    from torch.utils._pytree import tree_leaves

    return list(tree_leaves(values))


def array(value: Any) -> np.ndarray[Any, Any]:
    """A tensor as an array. A complex number becomes its two parts, as in ONNX."""
    import torch

    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    name = str(tensor.dtype).removeprefix("torch.")
    if name.startswith(("bfloat16", "float8_")):
        bits = tensor.contiguous().view(getattr(torch, _BITS[tensor.element_size()])).numpy()
        return np.asarray(bits.view(getattr(ml_dtypes, name)))
    return np.asarray(tensor.numpy())


def _copy(values: Any) -> Any:
    """A copy that shares no tensor with the original."""
    import torch
    from torch.utils._pytree import tree_map

    return tree_map(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.deepcopy(leaf), values
    )


@contextmanager
def _plainly() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of missing Intel GPUs
            with torch.backends.mkldnn.flags(enabled=False):
                yield
    finally:
        torch.set_num_threads(threads)
