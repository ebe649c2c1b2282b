"""The networks of diffusers: U-Nets and transformers that remove noise, and the autoencoders of their images."""

from __future__ import annotations

from models.families.recipe import Recipe, call, floats

__all__ = ["recipes"]

BATCH = {"batch": 2}, {"batch": 3}
DOWN, UP = ("DownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "UpBlock2D")
TEXT = floats("batch", 6, 32)


def recipes() -> list[Recipe]:
    """One recipe for each architecture."""
    return [*_unets(), *_transformers(), *_autoencoders()]


def _unets() -> list[Recipe]:
    small = {"sample_size": 16, "block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}
    text = {"cross_attention_dim": 32, "attention_head_dim": 4}
    crossed = {**small, **text, "down_block_types": DOWN, "up_block_types": UP}
    attended = {
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    }
    plain = {**small, **attended}
    image = {"sample": floats("batch", 4, 16, 16), "timestep": floats("batch"), "return_dict": False}
    return [
        Recipe(
            "diffusers_unet_2d",
            call("diffusers.UNet2DModel", in_channels=4, out_channels=4, attention_head_dim=4, **plain),
            image,
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_unet_2d_condition",
            call("diffusers.UNet2DConditionModel", **crossed),
            {**image, "encoder_hidden_states": TEXT},
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_controlnet",
            call("diffusers.ControlNetModel", block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8,
                 down_block_types=DOWN, cross_attention_dim=32, attention_head_dim=4,
                 conditioning_embedding_out_channels=(8, 16)),
            {**image, "encoder_hidden_states": TEXT, "controlnet_cond": floats("batch", 3, 32, 32)},
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_unet_1d",
            call("diffusers.UNet1DModel", sample_size=64, in_channels=2, out_channels=2, block_out_channels=(16, 32),
                 down_block_types=("DownBlock1DNoSkip", "DownBlock1D"), up_block_types=("UpBlock1D", "UpBlock1DNoSkip"),
                 extra_in_channels=16),
            {"sample": floats("batch", 2, 64), "timestep": floats(1), "return_dict": False},
            BATCH,
            ("diffusion", "audio"),
        ),
    ]  # fmt: skip


def _transformers() -> list[Recipe]:
    heads = {"num_attention_heads": 2, "attention_head_dim": 16}
    image = {"hidden_states": floats("batch", 4, 16, 16), "timestep": floats("batch"), "return_dict": False}
    return [
        Recipe(
            "diffusers_dit",
            call("diffusers.DiTTransformer2DModel", **heads, in_channels=4, num_layers=2, sample_size=16, patch_size=2,
                 num_embeds_ada_norm=10, norm_num_groups=8),
            {**image, "class_labels": floats()},
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_pixart",
            call("diffusers.PixArtTransformer2DModel", **heads, in_channels=4, out_channels=8, num_layers=2,
                 sample_size=16, patch_size=2, cross_attention_dim=32, caption_channels=32, norm_num_groups=8),
            {**image, "encoder_hidden_states": TEXT},
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_sd3",
            call("diffusers.SD3Transformer2DModel", **heads, in_channels=4, out_channels=4,
                 num_layers=2, sample_size=16, joint_attention_dim=32,
                 caption_projection_dim=32, pooled_projection_dim=24, pos_embed_max_size=16),
            {**image, "encoder_hidden_states": TEXT, "pooled_projections": floats("batch", 24)},
            BATCH,
            ("diffusion", "image"),
        ),
        Recipe(
            "diffusers_sana",
            call("diffusers.SanaTransformer2DModel", **heads, in_channels=4, out_channels=4,
                 num_layers=2, sample_size=16, num_cross_attention_heads=2, cross_attention_head_dim=16,
                 cross_attention_dim=32, caption_channels=32),
            {**image, "encoder_hidden_states": TEXT},
            BATCH,
            ("diffusion", "image"),
        ),
    ]  # fmt: skip


def _autoencoders() -> list[Recipe]:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    small = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
    image = {"sample": floats("batch", 3, 32, 32), "return_dict": False}
    networks = {
        "kl": call("diffusers.AutoencoderKL", **blocks, **small),
        "tiny": call("diffusers.AutoencoderTiny", encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8),
                     num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1), upsampling_scaling_factor=2),
        "vq": call("diffusers.VQModel", **blocks, **small, num_vq_embeddings=32),
        "asymmetric_kl": call("diffusers.AsymmetricAutoencoderKL", norm_num_groups=8,
                              down_block_types=("DownEncoderBlock2D",), down_block_out_channels=(16,),
                              up_block_types=("UpDecoderBlock2D",), up_block_out_channels=(16,)),
        "dc": call("diffusers.AutoencoderDC", latent_channels=8, attention_head_dim=8,
                   encoder_block_types=("ResBlock", "EfficientViTBlock"),
                   decoder_block_types=("ResBlock", "EfficientViTBlock"),
                   encoder_block_out_channels=(16, 32), decoder_block_out_channels=(16, 32),
                   encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1),
                   encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)), scaling_factor=0.4),
    }  # fmt: skip
    return [
        Recipe(f"diffusers_autoencoder_{name}", network, image, BATCH, ("diffusion", "autoencoder"))
        for name, network in networks.items()
    ]
