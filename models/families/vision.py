"""The networks of transformers for images, and for images with text."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Recipe, call, floats, mask, tokens

__all__ = ["recipes"]

BACKBONE = {"out_features": ["stage2", "stage3"]}
STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}
WINDOWS = {"num_attention_heads": None, "image_size": 32, "embed_dim": 16, "window_size": 4}
IMAGES: dict[str, dict[str, Any]] = {
    "beit": {},
    "bit": {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 16, "num_groups": 4},
    "convnext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "convnextv2": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "data2vec-vision": {},
    "deit": {},
    "dinov2": {},
    "dinov2_with_registers": {},
    "dinov3_convnext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
    "dinov3_vit": {},
    "focalnet": {"embed_dim": 16, "depths": [1, 1], "hidden_sizes": [16, 32], "focal_levels": [1, 1]},
    "glpn": STAGES,
    "hgnet_v2": {},
    "ijepa": {},
    "mobilenet_v1": {"depth_multiplier": 0.25, "image_size": 128},
    "mobilenet_v2": {"depth_multiplier": 0.35, "image_size": 128},
    "mobilevit": {
        "image_size": 64,
        "patch_size": 2,
        "hidden_sizes": [16, 24, 32],
        "neck_hidden_sizes": [8, 16, 24, 32, 48, 48, 64],
    },
    "mobilevitv2": {"image_size": 64, "patch_size": 2, "width_multiplier": 0.25},
    "poolformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "pvt": {**STAGES, "image_size": 64},
    "pvt_v2": {**STAGES, "image_size": 64},
    "regnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8, "groups_width": 8},
    "resnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8},
    "segformer": STAGES,
    "swiftformer": {"image_size": 64, "depths": [1, 1, 1, 1], "embed_dims": [8, 16, 16, 32]},
    "swin": {**WINDOWS, "patch_size": 4, "depths": [1, 2], "num_heads": [2, 4]},
    "swin2sr": {**WINDOWS, "patch_size": 1, "depths": [1], "num_heads": [2]},
    "swinv2": {**WINDOWS, "patch_size": 4, "depths": [1, 2], "num_heads": [2, 4]},
    "textnet": {},
    "timesformer": {"num_frames": 2},
    "videomae": {"num_frames": 2, "tubelet_size": 2},
    "vit": {},
    "vit_mae": {"mask_ratio": 0.0},
    "vit_msn": {},
    "vivit": {"num_frames": 2, "tubelet_size": [2, 8, 8]},
    "yolos": {"image_size": [32, 32], "num_detection_tokens": 5},
}
VIDEOS = ("timesformer", "videomae", "vivit")
TWO_TOWERS: dict[str, dict[str, Any]] = {
    kind: {"text_config": {"eos_token_id": 63}, "vision_config": {}}
    for kind in (
        "altclip",
        "blip",
        "chinese_clip",
        "clip",
        "clipseg",
        "groupvit",
        "metaclip_2",
        "owlvit",
        "owlv2",
        "siglip",
    )
}
SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 64,
    "max_position_embeddings": 16, "image_size": 32, "patch_size": 8, "projection_dim": 16, "project_dim": 16,
}  # fmt: skip
"""The sizes of both towers."""


def recipes() -> list[Recipe]:
    """One recipe for each model type."""
    return [
        *(_image(kind, stated) for kind, stated in IMAGES.items()),
        *(_two_towers(kind, stated) for kind, stated in TWO_TOWERS.items()),
        *_detectors(),
        *_readers(),
    ]


def _image(kind: str, stated: dict[str, Any]) -> Recipe:
    size = stated.get("image_size", 64 if "image_size" not in stated and "hidden_sizes" in stated else 32)
    size = size if isinstance(size, int) else size[0]
    frames = (2,) if kind in VIDEOS else ()
    given = {"pixel_values": floats("batch", *frames, 3, size, size)}
    tags = ("video",) if frames else ("image", "encoder")
    network = call("models.families.tiny.model", kind, **stated)
    return Recipe(f"transformers_{kind}", network, given, ({"batch": 2}, {"batch": 3}), tags)


def _two_towers(kind: str, stated: dict[str, Any]) -> Recipe:
    network = call("models.families.tiny.model", kind, **{key: {**SMALL, **value} for key, value in stated.items()})
    given = {
        "input_ids": tokens(63, "texts", 8),
        "pixel_values": floats("images", 3, 32, 32),
        "attention_mask": mask("texts", 8),
    }
    sizes = {"texts": 2, "images": 2}, {"texts": 3, "images": 3}
    return Recipe(f"transformers_{kind}", network, given, sizes, ("image", "text"))


def _detectors() -> list[Recipe]:
    backbone = call("models.families.tiny.config", "resnet", **IMAGES["resnet"], **BACKBONE)
    sizes = {"d_model": 32, "num_queries": 6, "use_timm_backbone": False, "use_pretrained_backbone": False}
    kinds = {
        "detr": {},
        "conditional_detr": {},
        "deformable_detr": {"num_feature_levels": 2},
        "table-transformer": {},
    }
    return [
        Recipe(
            f"transformers_{kind}",
            call("models.families.tiny.model", kind, backbone_config=backbone, backbone=None, **sizes, **more),
            {"pixel_values": floats("batch", 3, 64, 64), "pixel_mask": None},
            ({"batch": 2}, {"batch": 3}),
            ("image", "detection"),
        )
        for kind, more in kinds.items()
    ]


def _readers() -> list[Recipe]:
    """TrOCR: an encoder of images, and a decoder that reads it."""
    decoder = {"is_decoder": True, "add_cross_attention": True, "hidden_size": 32}
    found = []
    for kind in ("vit", "deit", "beit"):
        whole = call(
            "models.families.tiny.pair",
            call("models.families.tiny.config", kind),
            call("models.families.tiny.config", "trocr", **decoder),
        )
        given = {"pixel_values": floats("batch", 3, 32, 32), "decoder_input_ids": tokens(64, "batch", "written")}
        sizes = {"batch": 2, "written": 5}, {"batch": 3, "written": 7}
        recipe = Recipe(f"transformers_trocr_{kind}", whole, {**given, "use_cache": False}, sizes, ("image", "text"))
        found.append(recipe)
    return found
