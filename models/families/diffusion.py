"""The networks of diffusers: U-Nets and transformers that remove noise, and the autoencoders of their images."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Recipe, call, floats, tokens

__all__ = ["recipes"]

IMAGE = {"sample": floats("batch", 4, 16, 16), "timestep": floats("batch"), "return_dict": False}
TEXT = {"encoder_hidden_states": floats("batch", 6, 32)}
HIDDEN = {"hidden_states": floats("batch", 4, 16, 16), "timestep": floats("batch"), "return_dict": False}
WORDS = {**TEXT, "hidden_states": floats("batch", 16, 8), "timestep": floats("batch"), "return_dict": False}
PLACES = {"img_ids": floats(16, 3), "txt_ids": floats(6, 3)}
"""The places of the patches of an image and of words, which rotate the queries and keys."""
PICTURE = {"sample": floats("batch", 3, 32, 32), "return_dict": False}

SMALL = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}
READS_TEXT = {"cross_attention_dim": 32, "attention_head_dim": 4}
DOWN, UP = ("DownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "UpBlock2D")
HEADS = {"num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4, "num_layers": 2, "sample_size": 16}


def recipes() -> list[Recipe]:
    """One recipe for each architecture."""
    return [*_unets(), *_transformers(), *_autoencoders()]


def _recipe(name: str, arguments: dict[str, Any], network: str, **stated: Any) -> Recipe:
    sizes = {"batch": 2}, {"batch": 3}
    return Recipe(f"diffusers_{name}", call(f"diffusers.{network}", **stated), arguments, sizes, ("diffusion",))


def _unets() -> list[Recipe]:
    plain = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    sound = {"sample": floats("batch", 2, 64), "timestep": floats(1), "return_dict": False}
    blocks = {
        "down_block_types": ("DownBlock1DNoSkip", "DownBlock1D"),
        "up_block_types": ("UpBlock1D", "UpBlock1DNoSkip"),
        "block_out_channels": (16, 32),
    }
    control = {**IMAGE, **TEXT, "controlnet_cond": floats("batch", 3, 32, 32)}
    conditioning = {"conditioning_embedding_out_channels": (8, 16), "down_block_types": DOWN, **SMALL, **READS_TEXT}
    crossed = {"down_block_types": DOWN, "up_block_types": UP, "sample_size": 16, **SMALL, **READS_TEXT}
    channels = {"in_channels": 4, "out_channels": 4, "sample_size": 16, "attention_head_dim": 4}
    return [
        _recipe("unet_2d", IMAGE, "UNet2DModel", **channels, **SMALL, **plain),
        _recipe("unet_2d_condition", {**IMAGE, **TEXT}, "UNet2DConditionModel", **crossed),
        _recipe("controlnet", control, "ControlNetModel", **conditioning),
        _recipe("unet_1d", sound, "UNet1DModel", sample_size=64, extra_in_channels=32, **blocks),
    ]


def _transformers() -> list[Recipe]:
    reads = {"cross_attention_dim": 32, "caption_channels": 32}
    joint = {"joint_attention_dim": 32, "caption_projection_dim": 32, "pooled_projection_dim": 24}
    pooled = {"pooled_projections": floats("batch", 24)}
    sana = {"num_cross_attention_heads": 2, "cross_attention_head_dim": 16, "out_channels": 4, **reads}
    labels = {"class_labels": tokens(9, "batch")}
    guided = {"guidance": floats("batch"), **pooled, **PLACES}
    rotary = {"axes_dims_rope": (4, 6, 6), "num_single_layers": 2, "joint_attention_dim": 32}
    small = {"num_attention_heads": 2, "attention_head_dim": 16, "num_layers": 2, "in_channels": 8}
    flux = {"pooled_projection_dim": 24, "guidance_embeds": True}
    return [
        _recipe("dit", {**HIDDEN, **labels}, "DiTTransformer2DModel", **HEADS, num_embeds_ada_norm=10),
        _recipe("pixart", {**HIDDEN, **TEXT}, "PixArtTransformer2DModel", **HEADS, **reads),
        _recipe("flux", {**WORDS, **guided}, "FluxTransformer2DModel", **small, **rotary, **flux),
        _recipe("sd3", {**HIDDEN, **TEXT, **pooled}, "SD3Transformer2DModel", out_channels=4, **HEADS, **joint),
        _recipe("sana", {**HIDDEN, **TEXT}, "SanaTransformer2DModel", **HEADS, **sana),
    ]


def _autoencoders() -> list[Recipe]:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    tiny = {f"{side}_block_out_channels": (8, 8) for side in ("encoder", "decoder")}
    one = {"down_block_out_channels": (16,), "up_block_out_channels": (16,), "norm_num_groups": 8}
    deep = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {
            "block_types": ("ResBlock", "EfficientViTBlock"),
            "block_out_channels": (16, 32),
            "layers_per_block": (1, 1),
            "qkv_multiscales": ((), (5,)),
        }.items()
    }
    counts = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}
    return [
        _recipe("autoencoder_kl", PICTURE, "AutoencoderKL", **blocks, **SMALL),
        _recipe("autoencoder_vq", PICTURE, "VQModel", num_vq_embeddings=32, **blocks, **SMALL),
        _recipe("autoencoder_asymmetric_kl", PICTURE, "AsymmetricAutoencoderKL", **one),
        _recipe("autoencoder_tiny", PICTURE, "AutoencoderTiny", upsampling_scaling_factor=2, **tiny, **counts),
        _recipe("autoencoder_dc", PICTURE, "AutoencoderDC", latent_channels=8, attention_head_dim=8, **deep),
    ]
