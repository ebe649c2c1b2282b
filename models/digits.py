"""A small network that reads handwritten digits: it says which digit a noisy picture shows, and cleans the picture.

`python models/digits.py` trains it on scikit-learn's digits (1,797 pictures of 8×8 gray levels, a minute on two cores)
and writes `digits.onnx` and `digits.npz`, noisy pictures it has not seen, beside this file. Training is seeded.

The layers are those that audio and vision models are exported with: weight-normalized convolutions, Snake activations,
batch normalization, attention and a nearest upsampling.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
WIDTH = 48
NOISE = 0.2


class Snake(nn.Module):
    """`x + sin²(αx) / α`, with an `α` for each channel (https://arxiv.org/abs/2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.sin(self.alpha * x) ** 2 / self.alpha


class Block(nn.Sequential):
    """A weight-normalized 3×3 convolution, batch normalization and Snake."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__(
            weight_norm(nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)),
            nn.BatchNorm2d(outputs),
            Snake(outputs),
        )


class Attention(nn.Module):
    """Every position of a feature map looks at every other: `x + W softmax(QKᵀ/√d) V`."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, channels, height, width = x.shape
        tokens = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(tokens).unflatten(2, (3, self.heads, channels // self.heads)).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(2, 3) / (channels // self.heads) ** 0.5, dim=-1)
        mixed = self.out((scores @ v).transpose(1, 2).flatten(2))
        return x + mixed.transpose(1, 2).unflatten(2, (height, width))


class Digits(nn.Module):
    """`picture [N, 1, 8, 8]` → `logits [N, 10]`, `clean [N, 1, 8, 8]`."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Block(1, WIDTH)
        self.down = Block(WIDTH, WIDTH, stride=2)
        self.attention = Attention(WIDTH, heads=4)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), Block(WIDTH, WIDTH))
        self.join = Block(WIDTH, WIDTH)
        self.clean = nn.Conv2d(WIDTH, 1, 3, padding=1)
        self.classify = nn.Linear(WIDTH, 10)

    def forward(self, picture: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fine = self.stem(picture)
        coarse = self.attention(self.down(fine))
        logits = self.classify(coarse.mean((2, 3)))
        return logits, torch.sigmoid(self.clean(self.join(self.up(coarse) + fine)))


def pictures() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training and test pictures `[N, 1, 8, 8]` in 0…1, and their digits `[N]`."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data, digit = load_digits(return_X_y=True)
    picture = (data / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    split = train_test_split(picture, digit, test_size=0.2, random_state=0, stratify=digit)
    train, test, train_digit, test_digit = (torch.from_numpy(part) for part in split)
    return train, train_digit, test, test_digit


def batches(picture: torch.Tensor, digit: torch.Tensor, epochs: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Shuffled batches of 64, `epochs` times over."""
    for _ in range(epochs):
        for chosen in torch.randperm(len(picture)).split(64):
            yield picture[chosen], digit[chosen]


def add_noise(picture: torch.Tensor) -> torch.Tensor:
    """Pictures with Gaussian noise on them."""
    return picture + NOISE * torch.randn_like(picture)


def train(epochs: int = 40) -> Digits:
    """A trained network, in evaluation mode; prints how well it does on pictures it has not seen."""
    torch.manual_seed(0)
    picture, digit, unseen, unseen_digit = pictures()
    network = Digits()
    steps = epochs * -(-len(picture) // 64)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    for clean, label in batches(picture, digit, epochs):
        logits, cleaned = network(add_noise(clean))
        loss = nn.functional.cross_entropy(logits, label) + 4 * nn.functional.mse_loss(cleaned, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    with torch.no_grad():
        logits, cleaned = network(add_noise(unseen))
    accuracy = (logits.argmax(1) == unseen_digit).float().mean()
    print(f"accuracy {accuracy:.1%}, error of the cleaned picture {(cleaned - unseen).abs().mean():.3f} of 1")
    return network


def main() -> None:
    """Train, export, and keep a few inputs."""
    network = train()
    _, _, unseen, unseen_digit = pictures()
    noisy = add_noise(unseen)[:8]
    np.savez_compressed(FOLDER / "digits.npz", picture=noisy.numpy())
    np.savez_compressed(FOLDER / "digits.labels.npz", digit=unseen_digit[:8].numpy(), clean=unseen[:8].numpy())
    dynamic, outputs = {"picture": {0: "batch"}}, ("logits", "clean")
    compiler.export(network, (noisy,), FOLDER / "digits.onnx", dynamic=dynamic, outputs=outputs)


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    from models import digits  # so that the file says models.digits.Digits, not __main__.Digits

    digits.main()
