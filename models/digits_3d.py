"""The digits network's sibling for clips: it looks at time with 3-D convolutions, which a plan cannot execute.

`python models/digits_3d.py` writes `digits_3d.onnx` beside this file; `candlec check models/digits_3d.onnx` names every
layer that is in the way, with its line here. The weights are seeded and not trained.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

import compiler

FOLDER = Path(__file__).parent


class Block3D(nn.Module):
    """A 3-D convolution, batch normalization and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)))


class DigitClips(nn.Module):
    """`clip [N, 1, T, 8, 8]` → `logits [N, 10]`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(Block3D(1, 8), nn.MaxPool3d(2), Block3D(8, 16))
        self.classify = nn.Linear(16, 10)

    def forward(self, clip: torch.Tensor) -> torch.Tensor:
        features = self.encoder(clip)
        return self.classify(features.mean((2, 3, 4)))


def main() -> None:
    """Build and export."""
    torch.manual_seed(0)
    clip = torch.rand(2, 1, 4, 8, 8)
    dynamic = {"clip": {0: "batch"}}
    path = FOLDER / "digits_3d.onnx"
    compiler.export(DigitClips(), (clip,), path, dynamic, outputs=("logits",), check=False)  # no plan has 3-D layers


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    from models import digits_3d  # so that the file says models.digits_3d.DigitClips, not __main__.DigitClips

    digits_3d.main()
