"""The networks that are timed beside PyTorch. They need only PyTorch, here and on the machine with the GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from gpu.drawn import Drawn
from models import hifigan, unet

HEADS, LENGTH, VOCABULARY = 12, 128, 30522
LAYERS, WIDTH = 12, 768


class Bottleneck(nn.Module):
    """A block of ResNet-50: convolutions 1×1, 3×3 and 1×1, and a residual connection (He et al. 2015)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        sizes = ((inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1))
        layers: list[nn.Module] = []
        for before, after, size, step in sizes:
            layers += [nn.Conv2d(before, after, size, step, size // 2, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        beside = [nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)]
        self.beside = nn.Sequential(*(beside if inputs != 4 * width else []))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.layers(x) + self.beside(x))


def resnet50() -> nn.Module:
    """`x [N, 3, 224, 224]` → `[N, 1000]`."""
    blocks: list[nn.Module] = []
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            blocks.append(Bottleneck(inputs, width, stride if index == 0 else 1))
            inputs = 4 * width
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Attention(nn.Module):
    """Attention with several heads; `past` is a cache of keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.given, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, past: tuple[torch.Tensor, ...] = ()) -> tuple[torch.Tensor, list[torch.Tensor]]:
        batch, length, width = x.shape
        parts = self.given(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        if past:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        found = F.scaled_dot_product_attention(query, key, value)
        return self.last(found.transpose(1, 2).reshape(batch, length, width)), [key, value]


class Layer(nn.Module):
    """Attention and two products, each with a residual connection, with the norms before or after them."""

    def __init__(self, width: int, heads: int, is_before: bool) -> None:
        super().__init__()
        self.is_before = is_before
        self.attention = Attention(width, heads)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.products = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, past: tuple[torch.Tensor, ...] = ()) -> tuple[torch.Tensor, list[torch.Tensor]]:
        first, second = self.norms
        if self.is_before:
            found, cache = self.attention(first(x), past)
            x = x + found
            return x + self.products(second(x)), cache
        found, cache = self.attention(x, past)
        x = first(x + found)
        return second(x + self.products(x)), cache


class Encoder(nn.Module):
    """BERT-base without its mask: `tokens [N, 128]` → `[N, 128, 768]` (Devlin et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) / 10)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH, HEADS, False) for _ in range(LAYERS))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.tokens(tokens) + self.places)
        for layer in self.layers:
            x, _ = layer(x)
        return x


class Vision(nn.Module):
    """ViT-S with patches of 16×16: `x [N, 3, 224, 224]` → `[N, 1000]` (Dosovitskiy et al. 2020)."""

    def __init__(self, width: int = 384, heads: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.places = nn.Parameter(torch.randn(196, width) / 10)
        self.layers = nn.ModuleList(Layer(width, heads, True) for _ in range(LAYERS))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x, _ = layer(x)
        return self.last(self.norm(x).mean(1))


class Decoder(nn.Module):
    """GPT-2 small writing one token after 128: the token and the cache → logits and the longer cache."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50257, WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH, HEADS, True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, token: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, longer = self.tokens(token), []
        for index, layer in enumerate(self.layers):
            x, cache = layer(x, past[2 * index : 2 * index + 2])
            longer += cache
        return F.linear(self.norm(x), self.tokens.weight), *longer


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet50": resnet50,
    "bert_base": Encoder,
    "vit_small": Vision,
    "unet": unet.UNet,
    "hifigan": hifigan.Generator,
    "gpt2_decode": Decoder,
}


def build(name: str) -> nn.Module:
    """A network in evaluation mode. The weights are the same in every call."""
    torch.manual_seed(0)
    return NETWORKS[name]().eval()


def inputs(name: str, batch: int) -> list[Drawn]:
    """The inputs of a network."""
    cache = (batch, HEADS, LENGTH, WIDTH // HEADS)
    given: dict[str, list[Drawn]] = {
        "resnet50": [("x", (batch, 3, 224, 224), 0)],
        "bert_base": [("tokens", (batch, LENGTH), VOCABULARY)],
        "vit_small": [("x", (batch, 3, 224, 224), 0)],
        "unet": [("x", (batch, 3, unet.SIZE, unet.SIZE), 0)],
        "hifigan": [("mel", (batch, hifigan.MELS, hifigan.FRAMES), 0)],
        "gpt2_decode": [("token", (batch, 1), 50257), *((f"past_{i}", cache, 0) for i in range(2 * LAYERS))],
    }
    return given[name]
