"""The groups of models: well-known architectures, and small models like those that run for each frame of a camera."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["GROUPS", "Group", "all_names", "file_of", "group_of", "module_of"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Group:
    """Models that are timed together: the package of their modules, the folder of their exports, and their names.

    With `optimize`, PyTorch optimizes the exports. Otherwise, an export contains nodes that only compute constants,
    which some other runtimes compute in every run. They would take a large part of a small model's time.
    """

    package: str
    exports: Path
    names: tuple[str, ...]
    optimize: bool = False


GROUPS = {
    "known": Group(
        "models",
        Path("build/models"),
        (
            "resnet18",
            "resnet50",
            "mobilenet_v3",
            "efficientnet_b0",
            "convnext_tiny",
            "vit_small",
            "bert_base",
            "gpt2_prefill",
            "gpt2_decode",
            "whisper_tiny_encoder",
            "dac_decoder",
            "hifigan",
            "unet",
        ),
    ),
    "small": Group(
        "models.small",
        Path("build/small"),
        (
            "crn_denoiser",
            "dtln_spectrum",
            "dtln_samples",
            "voice_activity",
            "conv_tasnet",
            "ds_cnn",
            "tc_resnet8",
            "blazeface",
            "ssd_faces",
            "hand_gestures",
            "pointnet",
            "enet",
            "espnet_v2",
            "context_aggregation",
            "anchor_super_resolution",
            "crnn",
        ),
        optimize=True,
    ),
}


def all_names() -> list[str]:
    """The names of the models of all groups."""
    return [name for group in GROUPS.values() for name in group.names]


def group_of(name: str) -> Group:
    """The group of a model."""
    return next(group for group in GROUPS.values() if name in group.names)


def module_of(name: str) -> str:
    """The Python module of a model."""
    return f"{group_of(name).package}.{name}"


def file_of(module: str) -> Path:
    """The file of a module of this folder: `models.small.enet` → `small/enet.py`."""
    return HERE.joinpath(*module.split(".")[1:]).with_suffix(".py")
