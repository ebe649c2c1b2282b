"""Networks whose own `forward` does not take or return plain tensors, in a module that does."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

__all__ = ["Detector", "Flow", "Patches", "Step"]


class Detector(nn.Module):
    """A detector of torchvision: `image [3, height, width]` → the values that it finds, such as boxes and scores."""

    def __init__(self, name: str, **stated: Any) -> None:
        super().__init__()
        from torchvision.models import detection

        self.network = getattr(detection, name)(weights=None, weights_backbone=None, num_classes=4, **stated)
        if name.startswith("ssd"):  # with random weights, most scores would be 1, and equal scores have no order
            for layer in self.network.head.classification_head.module_list:
                layer.weight.data *= 1e-3

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        [found] = self.network([image])
        return tuple(found.values())


class Flow(nn.Module):
    """A network of torchvision for optical flow: two images → the last estimate `[batch, 2, height, width]`."""

    def __init__(self, name: str, num_flow_updates: int) -> None:
        super().__init__()
        from torchvision.models import optical_flow

        self.network, self.updates = getattr(optical_flow, name)(), num_flow_updates

    def forward(self, image1: torch.Tensor, image2: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network(image1, image2, num_flow_updates=self.updates)[-1]
        return found


class Patches(nn.Module):
    """A reader of texts with one image: tokens, the image's patches, and the places of tokens → logits.

    `grid` counts the frames, rows and columns of patches.
    """

    def __init__(self, network: Any, grid: tuple[int, int, int]) -> None:
        super().__init__()
        self.network, self.grid = network, grid

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        image = {"pixel_values": pixel_values, "image_grid_thw": torch.tensor([self.grid])}
        found = self.network(input_ids=input_ids, position_ids=position_ids, use_cache=False, **image)
        logits: torch.Tensor = found.logits
        return logits


class Step(nn.Module):
    """A decoder of transformers with one layer: tokens, keys and values → logits, longer keys and values."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        cache = DynamicCache([(key, value)])
        found = self.network(input_ids=input_ids, past_key_values=cache, use_cache=True)
        [layer] = found.past_key_values.layers
        return found.logits, layer.keys, layer.values
