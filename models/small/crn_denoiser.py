"""One frame of a convolutional recurrent denoiser (Tan and Wang 2018, https://doi.org/10.21437/Interspeech.2018-1405).

The encoder reads the present and the previous frame of each layer, an LSTM carries its state from frame to frame, and
the decoder has skip connections. A quarter as wide as the published one. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.weights import noise, seeded

TOLERANCE = 1e-5
WIDTHS, BINS = (16, 32, 48, 64, 64), (161, 80, 39, 19, 9, 4)
OUTPUTS = ("mask", "next_hidden", "next_cell", *(f"next_previous_{layer}" for layer in range(1, len(WIDTHS))))
FEATURES = WIDTHS[-1] * BINS[-1]


class Encoder(nn.Module):
    """The present and the previous frame `[1, C, 1, F]` → a frame of about half as many bins."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, (2, 3), (1, 2))
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, frame: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
        return F.elu(self.norm(self.convolution(torch.cat([previous, frame], 2))))


class Decoder(nn.Module):
    """A frame and the encoder's frame of the same size → a frame of `bins` bins."""

    def __init__(self, inputs: int, outputs: int, read: int, bins: int) -> None:
        super().__init__()
        padding = (0, bins - 2 * read - 1)
        self.convolution = nn.ConvTranspose2d(2 * inputs, outputs, (1, 3), (1, 2), output_padding=padding)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, frame: torch.Tensor, skipped: torch.Tensor) -> torch.Tensor:
        return self.norm(self.convolution(torch.cat([frame, skipped], 1)))


class Denoiser(nn.Module):
    """`frame [1, 1, 1, 161]` and the states → `mask` of the same shape, and the states for the next frame.

    The state `previous_0` of the first layer is the frame itself, which is no output.
    """

    def __init__(self) -> None:
        super().__init__()
        inputs = (1, *WIDTHS[:-1])
        self.encoders = nn.ModuleList(Encoder(*pair) for pair in zip(inputs, WIDTHS, strict=True))
        self.lstm = nn.LSTM(FEATURES, FEATURES, batch_first=True)
        sizes = zip(WIDTHS, inputs, BINS[1:], BINS[:-1], strict=True)
        self.decoders = nn.ModuleList(Decoder(*each) for each in reversed(list(sizes)))

    def forward(
        self, frame: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor, *previous: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        frames = [frame]
        for encoder, past in zip(self.encoders, previous, strict=True):
            frames.append(encoder(frames[-1], past))
        flat, (hidden, cell) = self.lstm(frames[-1].reshape(1, 1, FEATURES), (hidden, cell))
        x = flat.reshape(frames[-1].shape)
        for index, decoder in enumerate(self.decoders):
            x = decoder(F.elu(x) if index else x, frames[-1 - index])
        return F.softplus(x), hidden, cell, *frames[1:-1]


def build() -> Denoiser:
    return seeded(Denoiser, inputs())


def inputs() -> dict[str, torch.Tensor]:
    states = {"hidden": noise(1, 1, FEATURES), "cell": noise(1, 1, FEATURES)}
    shapes = zip((1, *WIDTHS), BINS[:-1], strict=False)
    previous = {f"previous_{layer}": noise(1, width, 1, bins) for layer, (width, bins) in enumerate(shapes)}
    return {"frame": noise(1, 1, 1, BINS[0]), **states, **previous}
