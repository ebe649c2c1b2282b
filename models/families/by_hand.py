"""The networks for sound that this project has written by hand, after published ones."""

from __future__ import annotations

from models.families.recipe import Argument, Recipe, call, floats

__all__ = ["recipes"]

ONE = dict[str, int](), dict[str, int]()
"""The sizes of networks whose inputs have one shape."""


def recipes() -> list[Recipe]:
    """One recipe for each network."""
    state = {"hidden": floats(2, 1, 128), "cell": floats(2, 1, 128)}
    heard = {"hidden": floats(1, "batch", 128), "cell": floats(1, "batch", 128)}
    frames = {"batch": 1, "frames": 12}, {"batch": 2, "frames": 17}
    batches = {"batch": 2}, {"batch": 3}
    words = floats("batch", 1, 49, 10)
    return [
        _recipe("voice_activity", "small.voice_activity.Detector", {"samples": floats("batch", 576), **heard}, batches),
        _recipe("dtln_samples", "small.dtln_samples.Samples", {"samples": floats(1, 512, 1), **state}, ONE),
        _recipe("dtln_spectrum", "small.dtln_spectrum.Spectrum", {"magnitudes": floats(1, 1, 257), **state}, ONE),
        _recipe("conv_tasnet", "small.conv_tasnet.Separator", {"mixture": floats(1, 1, 4000)}, ONE),
        _recipe("tc_resnet8", "small.tc_resnet8.Spotter", {"coefficients": floats("batch", 40, 101)}, batches),
        _recipe("ds_cnn", "small.ds_cnn.Spotter", {"coefficients": words}, batches),
        _recipe("hifigan", "hifigan.Generator", {"mel": floats("batch", 80, "frames")}, frames),
        _recipe("dac_decoder", "dac_decoder.Decoder", {"z": floats("batch", 1024, "frames")}, frames),
        _recipe("audio_vae_encoder", "families.audio_vae.Encoder", {"audio": floats("batch", 1, 480)}, batches),
        _recipe("audio_vae_decoder", "families.audio_vae.Decoder", {"z": floats("batch", 8, "frames")}, frames),
        _recipe("grouped_denoiser", "families.denoiser.Denoiser", {"spectrum": floats("batch", 2, 12, 65)}, batches),
    ]


def _recipe(
    name: str, network: str, given: dict[str, Argument], sizes: tuple[dict[str, int], dict[str, int]]
) -> Recipe:
    return Recipe(f"models_{name}", call(f"models.{network}"), given, sizes, ("audio",))
