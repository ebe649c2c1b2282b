"""The networks of transformers that read a text with images: each image token stands for a part of the image."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Call, Recipe, call, floats, tokens

__all__ = ["recipes"]

IMAGE = 63
"""The image token. Those of the text are smaller."""
TAGS = ("image", "text", "decoder")


ROTARY = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
"""The rotary embedding of three places: a frame, a row and a column."""
PATCHES: dict[str, dict[str, Any]] = {
    "qwen2_vl": {"embed_dim": 32},
    "qwen2_5_vl": {"out_hidden_size": 32, "intermediate_size": 48, "window_size": 16, "fullatt_block_indexes": [1]},
    "qwen3_vl": {
        "out_hidden_size": 32,
        "intermediate_size": 48,
        "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    },
}
"""The attributes of the part that reads patches."""


def recipes() -> list[Recipe]:
    """One recipe for each model type. The present exporter fixes the batch of LLaVA."""
    clip, siglip = _tiny("clip_vision_model"), _tiny("siglip_vision_model")
    intern, qwen2 = _tiny("internvl_vision", image_size=[32, 32], patch_size=[8, 8]), _tiny("qwen2")
    index = {"image_token_index": IMAGE}
    return [
        _recipe("llava", 16, clip, _tiny("llama"), 2, **index),
        _recipe("paligemma", 16, siglip, _tiny("gemma"), projection_dim=32, hidden_size=32, **index),
        _recipe("gemma3", 4, siglip, _tiny("gemma3_text"), mm_tokens_per_image=4, **index),
        _recipe("internvl", 4, intern, qwen2, image_token_id=IMAGE),
        *(_patches(kind, stated) for kind, stated in PATCHES.items()),
    ]  # fmt: skip


def _tiny(kind: str, **stated: Any) -> Call:
    return call("models.families.tiny.config", kind, **stated)


def _recipe(kind: str, read: int, vision: Call, text: Call, batch: int | str = "batch", **stated: Any) -> Recipe:
    """A network that reads each image as so many tokens."""
    network = call("models.families.tiny.seeing", kind, vision_config=vision, text_config=text, **stated)
    given = {
        "input_ids": tokens(IMAGE, batch, "length", first=(IMAGE,) * read),
        "pixel_values": floats(batch, 3, 32, 32),
        "use_cache": False,
    }
    sizes = {"batch": 2, "length": read + 5}, {"batch": 3, "length": read + 8}
    return Recipe(f"transformers_{kind}", network, given, sizes, TAGS)


def _patches(kind: str, stated: dict[str, Any]) -> Recipe:
    """A network that reads the patches of an image, with the place of each token. Four patches are one token."""
    vision = _tiny(f"{kind}_vision", depth=2, hidden_size=32, num_heads=4, **stated)
    text = _tiny(f"{kind}_text", rope_parameters=ROTARY)
    parts = {"vision_config": vision, "text_config": text, "image_token_id": IMAGE, "attn_implementation": "eager"}
    network = call("models.families.tiny.seeing", kind, **parts)
    given = {
        "input_ids": tokens(62, 1, "length", first=(IMAGE,) * 4),
        "pixel_values": floats(16, 3 * 2 * 8 * 8),
        "position_ids": tokens(16, 3, 1, "length"),
    }
    whole = call("models.families.wrapped.Patches", network, (1, 4, 4))
    sizes = {"length": 9}, {"length": 12}
    return Recipe(f"transformers_{kind}", whole, given, sizes, TAGS, exporter="torchscript")
