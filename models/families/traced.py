"""Networks of the other families once more, exported by PyTorch's older exporter with older opsets.

Its files differ from those of the present exporter: shapes are computed with `Shape`, `Gather` and `Concat`, constants
are nodes, and layers that later opsets have, such as LayerNormalization and Gelu, are chains of simple operators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from models.families.recipe import Call, Recipe, mask

__all__ = ["recipes"]

OPSETS = {
    "transformers_bert": 11,
    "transformers_distilbert": 13,
    "transformers_deberta": 12,
    "transformers_gpt2": 13,
    "transformers_gpt2_step": 13,
    "transformers_llama": 14,
    "transformers_t5": 13,
    "transformers_wav2vec2": 14,
    "transformers_clip": 14,
    "transformers_segformer": 12,
    "transformers_detr": 12,
    "timm_resnet10t": 11,
    "timm_lcnet_035": 13,
    "timm_vit_tiny_patch16_224": 14,
    "timm_fastvit_t8": 13,
    "torchvision_mobilenet_v3_small": 11,
    "torchvision_swin_t": 12,
    "torchvision_deeplabv3_mobilenet_v3_large": 11,
    "models_voice_activity": 13,
    "models_dtln_samples": 11,
    "diffusers_unet_2d": 14,
}
"""The opset of each network. In 2020 to 2023, the exporter wrote opsets from 11 to 14 by default, or with optimum."""

MASKED = ("transformers_gpt2", "transformers_llama")
"""The decoders that get a mask. Without one, they look for joined texts with `diff`, which the exporter lacks."""


def recipes(others: Iterable[Recipe]) -> list[Recipe]:
    """One recipe for each of these networks."""
    known = {recipe.name: recipe for recipe in others}
    return [_recipe(known[name], opset) for name, opset in OPSETS.items()]


def _recipe(recipe: Recipe, opset: int) -> Recipe:
    name, tags = f"{recipe.name}_opset{opset}", (*recipe.tags, "traced")
    masks = {"attention_mask": mask("batch", "length")} if recipe.name in MASKED else {}
    given = {**recipe.arguments, **masks}
    traced = replace(recipe, name=name, network=_eager(recipe.network), arguments=given, tags=tags)
    return replace(traced, exporter="torchscript", opset=opset)


def _eager(network: Call) -> Call:
    """The network of transformers without the fused attention, which the exporter translates to opset 14 and later."""
    if not network.function.startswith("models.families.tiny."):
        positional = tuple(_eager(each) if isinstance(each, Call) else each for each in network.positional)
        return replace(network, positional=positional)
    return replace(network, named={**network.named, "attn_implementation": "eager"})
