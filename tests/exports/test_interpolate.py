"""PyTorch's `interpolate` by the nearest element, over many sizes: each index is PyTorch's or onnxruntime's.

PyTorch multiplies a position by a factor in float32, and onnxruntime divides it by one. Where the exact coordinate is
an integer, rounding may choose the element before.
"""

import numpy as np
import onnxruntime
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import compiler  # noqa: E402
from tests.lower.test_resize_nearest import resizes  # noqa: E402


class Resized(torch.nn.Module):
    """The last axis of `x` gets the size of `like`."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x, like):
        return torch.nn.functional.interpolate(x, size=(1, like.shape[0]), mode=self.mode)


@pytest.mark.parametrize(("mode", "most"), [("nearest", 20), ("nearest-exact", 0)])
def test_every_index_is_that_of_pytorch_or_onnxruntime(mode, most, tmp_path):
    """At most `most` indices are not PyTorch's."""
    module, path = Resized(mode), tmp_path / "resized.onnx"
    dynamic = {"x": {3: "old"}, "like": {0: "new"}}
    compiler.export(module, (torch.ones(1, 1, 1, 5), torch.ones(11)), path, dynamic, outputs=["y"])
    session = compiler.load(compiler.compile(path))
    other = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    differing = compared = 0
    for old, new in resizes():
        x, like = torch.arange(old, dtype=torch.float32).reshape(1, 1, 1, old), torch.ones(new)
        ours, pytorch = session.run({"x": x, "like": like})["y"].ravel(), module(x, like).numpy().ravel()
        theirs = other.run(None, {"x": x.numpy(), "like": like.numpy()})[0].ravel()
        assert ((ours == pytorch) | (ours == theirs)).all(), (old, new)
        differing, compared = differing + np.count_nonzero(ours != pytorch), compared + new
    assert differing <= most
    assert compared > 100_000
