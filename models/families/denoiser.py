"""A denoiser of speech, by hand, in the style of GTCRN (Rong et al. 2024, doi:10.1109/ICASSP48485.2024.10448310).

Grouped convolutions over time see only the past, and a shuffle mixes their groups. A dual-path block reads each frame
in both directions of the bins, and each bin forward in time.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["Denoiser"]

WIDTH, BINS = 16, 33


class Block(nn.Module):
    """`[N, 16, T, 33]` → the same shape. Half of the channels pass a depthwise convolution over the past frames."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        half, self.past = WIDTH // 2, 2 * dilation
        self.first = nn.Sequential(nn.Conv2d(half, WIDTH, 1), nn.BatchNorm2d(WIDTH), nn.PReLU())
        self.depthwise = nn.Conv2d(WIDTH, WIDTH, 3, padding=(0, 1), dilation=(dilation, 1), groups=WIDTH)
        self.last = nn.Sequential(nn.BatchNorm2d(WIDTH), nn.PReLU(), nn.Conv2d(WIDTH, half, 1), nn.BatchNorm2d(half))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, changed = x.chunk(2, 1)
        padded = F.pad(self.first(changed), (0, 0, self.past, 0))
        both = torch.stack([kept, self.last(self.depthwise(padded))], 2)
        return both.flatten(1, 2)


class DualPath(nn.Module):
    """`[N, T, 33, 16]` → the same shape: a recurrent network over the bins, and one in two groups over time."""

    def __init__(self) -> None:
        super().__init__()
        self.bins = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.times = nn.ModuleList(nn.GRU(WIDTH // 2, WIDTH // 2, batch_first=True) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm((BINS, WIDTH)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, frames = x.shape[:2]
        found = self.bins(x.reshape(batch * frames, BINS, WIDTH))[0]
        x = x + self.norms[0](found.reshape(batch, frames, BINS, WIDTH))
        rows = x.transpose(1, 2).reshape(batch * BINS, frames, WIDTH)
        halves = [network(half)[0] for network, half in zip(self.times, rows.chunk(2, -1), strict=True)]
        found = torch.cat(halves, -1).reshape(batch, BINS, frames, WIDTH).transpose(1, 2)
        return x + self.norms[1](found)


class Denoiser(nn.Module):
    """`spectrum [N, 2, T, 65]`, real and imaginary parts → the cleaned spectrum of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(2, WIDTH, (1, 5), (1, 2), (0, 2))
        self.blocks = nn.ModuleList(Block(dilation) for dilation in (1, 2, 5))
        self.path = DualPath()
        self.decoder = nn.ConvTranspose2d(WIDTH, 2, (1, 5), (1, 2), (0, 2))

    def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
        x = y = F.relu(self.encoder(spectrum))
        for block in self.blocks:
            x = block(x)
        x = self.path(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        mask = torch.tanh(self.decoder(x + y))
        real, imaginary = spectrum.chunk(2, 1)
        a, b = mask.chunk(2, 1)
        return torch.cat([real * a - imaginary * b, real * b + imaginary * a], 1)
