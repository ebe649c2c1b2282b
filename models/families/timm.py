"""The networks of timm for images: the smallest one of each family with at most 30 million weights."""

from __future__ import annotations

from models.families.recipe import Recipe, call, floats

__all__ = ["recipes"]

NAMES = (
    "caformer_s18", "convformer_s18", "convmixer_768_32", "convnext_zepto_rms", "convnextv2_atto",
    "cpubone_nano", "cs3darknet_focus_s", "csatv2", "cspdarknet53", "cspnext_tiny", "cspresnet50", "cspresnext50",
    "darknet17", "davit_tiny", "densenet121", "densenetblur121d", "dla46x_c", "dpn48b", "eca_nfnet_l0",
    "eca_resnext26ts", "eca_vovnet39b", "ecaresnet26t", "ecaresnext26t_32x4d", "edgenext_xx_small",
    "efficientnet_lite0", "efficientnetv2_rw_t", "efficientvim_m1", "efficientvit_b0", "ese_vovnet19b_slim_dw",
    "fasternet_t0", "fastvit_t8", "fbnetc_100", "fbnetv3_b", "focalnet_tiny_srf", "gc_efficientnetv2_rw_t",
    "gcresnet33ts", "gcresnext26ts", "gernet_s", "ghostnet_050", "ghostnetv3_050",
    "hardcorenas_b", "hgnet_tiny", "hgnetv2_b0", "hrnet_w18_small", "iformer_t", "inception_next_atto",
    "lambda_resnet26t", "lcnet_035", "lcnetv2_small", "legacy_seresnet18", "legacy_xception",
    "lowformer_b0", "mambaout_femto", "mixnet_s", "mnasnet_small", "mobilenet_edgetpu_100", "mobilenetv2_035",
    "mobilenetv3_small_050", "mobileone_s1", "mobilevit_xxs", "mobilevitv2_050", "nf_regnet_b0", "poolformer_s12",
    "poolformerv2_s12", "pvt_v2_b0", "rdnet_tiny", "regnetv_040", "regnetx_002", "regnety_002", "regnetz_005",
    "regnetz_b16", "repghostnet_050", "repvgg_a0", "repvit_m1", "res2next50", "resnest14d", "resnet10t",
    "resnet32ts", "resnetaa34d", "resnetblur18", "resnetv2_18", "resnext26ts", "resnext50_32x4d", "rexnet_100",
    "rexnetr_100", "sam2_hiera_tiny", "sedarknet21", "semnasnet_050", "seresnet18", "seresnet33ts",
    "seresnetaa50d", "seresnext26t_32x4d", "seresnext26ts", "shvit_s1", "skresnet18", "skresnext50_32x4d",
    "spnasnet_100", "starnet_s050", "tf_mixnet_s", "tf_mobilenetv3_small_075", "tiny_vit_5m_224", "tinynet_e",
    "vovnet39a", "xception41p",
)  # fmt: skip
"""The networks that accept images of any size."""
FIXED = {
    224: (
        "cait_xxs24_224", "coat_tiny", "coatnet_pico_rw_224", "coatnext_nano_rw_224", "convit_tiny",
        "deit_tiny_patch16_224", "efficientformer_l1", "efficientformerv2_s0", "efficientvit_m0",
        "eva02_tiny_patch14_224", "gcvit_xxtiny", "gmixer_12_224", "gmlp_ti16_224", "haloregnetz_b", "hiera_tiny_224",
        "levit_128s",
        "mixer_s16_224", "mvitv2_tiny", "nest_tiny", "pit_ti_224", "resmlp_12_224", "sequencer2d_s",
        "swiftformer_xs", "swin_tiny_patch4_window7_224", "swinv2_cr_tiny_224", "tnt_s_legacy_patch16_224",
        "twins_svt_small", "visformer_tiny", "vit_srelpos_small_patch16_224", "vit_tiny_patch16_224",
        "vit_tiny_r_s16_p8_224", "vitamin_small_224", "volo_d1_224", "xcit_nano_12_p8_224",
    ),
    240: (
        "crossvit_tiny_240", "flexivit_small",
    ),
    256: (
        "bat_resnext26ts", "halonet_h1", "sehalonet33ts",
        "botnet26t_256", "eca_botnext26ts_256", "halo2botnet50ts_256", "lamhalobotnet50ts_256", "maxvit_pico_rw_256",
        "maxxvit_rmlp_nano_rw_256", "maxxvitv2_nano_rw_256", "sebotnet33ts_256", "swinv2_tiny_window8_256",
        "vit_tiny_patch16_dinov3_qkvb",
    ),
}  # fmt: skip
"""The networks that accept images of one size, by this size."""


def recipes() -> list[Recipe]:
    """One recipe for each network."""
    fixed = [_recipe(name, image) for image, names in FIXED.items() for name in names]
    return [*(_recipe(name, 96) for name in NAMES), *fixed]


def _recipe(name: str, image: int) -> Recipe:
    network = call("timm.create_model", name, num_classes=10)
    sizes = {"batch": 2}, {"batch": 3}
    return Recipe(f"timm_{name}", network, {"x": floats("batch", 3, image, image)}, sizes, ("classification",))
