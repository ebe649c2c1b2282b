"""The networks of transformers for sound: encoders of waves and spectra, codecs, and vocoders."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Recipe, call, floats, tokens

__all__ = ["recipes"]

WAVES = {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 8}
KEPT = {"apply_spec_augment": False, "num_conv_pos_embedding_groups": 2}
ENCODERS: dict[str, dict[str, Any]] = {
    "data2vec-audio": {**WAVES, **KEPT},
    "hubert": {**WAVES, **KEPT},
    "sew": {**WAVES, **KEPT},
    "sew-d": {**WAVES, **KEPT},
    "unispeech": {**WAVES, **KEPT},
    "unispeech-sat": {**WAVES, **KEPT},
    "wav2vec2": {**WAVES, **KEPT},
    "wav2vec2-conformer": {**WAVES, **KEPT},
    "wavlm": {**WAVES, **KEPT},
}
WRITTEN = {"decoder_input_ids": tokens(64, "batch", "written"), "use_cache": False}
BATCH = {"batch": 2}, {"batch": 3}


def recipes() -> list[Recipe]:
    """One recipe for each model type."""
    return [
        *(_waves(kind, stated) for kind, stated in ENCODERS.items()),
        _spectrum("audio-spectrogram-transformer", {"num_mel_bins": 32, "max_length": 64}, "input_values", (64, 32)),
        _spectrum("wav2vec2-bert", {"feature_projection_input_dim": 32}, "input_features", (40, 32)),
        _whisper(),
        _speech_to_text(),
        _moonshine(),
        *_codecs(),
        *_vocoders(),
    ]


def _waves(kind: str, stated: dict[str, Any]) -> Recipe:
    network = call("models.families.tiny.model", kind, **stated)
    sizes = {"batch": 2, "samples": 800}, {"batch": 3, "samples": 1200}
    given = {"input_values": floats("batch", "samples")}
    return Recipe(f"transformers_{kind}", network, given, sizes, ("audio", "encoder"))


def _spectrum(kind: str, stated: dict[str, Any], name: str, shape: tuple[int, int]) -> Recipe:
    network = call("models.families.tiny.model", kind, **stated)
    return Recipe(f"transformers_{kind}", network, {name: floats("batch", *shape)}, BATCH, ("audio", "encoder"))


def _writer(kind: str, stated: dict[str, Any], name: str, rows: int, columns: int) -> Recipe:
    network = call("models.families.tiny.model", kind, d_model=32, **stated)
    given = {name: floats("batch", rows, columns), **WRITTEN}
    sizes = {"batch": 2, "written": 5}, {"batch": 3, "written": 7}
    return Recipe(f"transformers_{kind}", network, given, sizes, ("audio", "text"))


def _whisper() -> Recipe:
    stated = {"num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 32}
    return _writer("whisper", stated, "input_features", 16, 40)


def _speech_to_text() -> Recipe:
    stated = {"input_feat_per_channel": 16, "conv_channels": 32, "max_source_positions": 64, "max_target_positions": 32}
    return _writer("speech_to_text", stated, "input_features", 40, 16)


def _moonshine() -> Recipe:
    network = call("models.families.tiny.model", "moonshine")
    given = {"input_values": floats("batch", 2000), **WRITTEN}
    sizes = {"batch": 2, "written": 5}, {"batch": 3, "written": 7}
    return Recipe("transformers_moonshine", network, given, sizes, ("audio", "text"))


def _codecs() -> list[Recipe]:
    small = {
        "dac": {"encoder_hidden_size": 8, "decoder_hidden_size": 32, "n_codebooks": 2, "downsampling_ratios": [2, 4]},
        "encodec": {"num_filters": 4, "hidden_size": 16, "codebook_size": 32, "upsampling_ratios": [4, 2]},
        "mimi": {
            "upsample_groups": 32,
            "num_filters": 4,
            "codebook_size": 32,
            "upsampling_ratios": [4, 2],
            "num_quantizers": 4,
        },
    }
    return [
        Recipe(
            f"transformers_{kind}",
            call("models.families.tiny.model", kind, **stated),
            {"input_values": floats("batch", 1, 640)},
            BATCH,
            ("audio", "codec"),
            exporter="dynamo" if kind == "dac" else "torchscript",
        )
        for kind, stated in small.items()
    ]


def _vocoders() -> list[Recipe]:
    upsampling = {"upsample_initial_channel": 32, "upsample_rates": [4, 4], "upsample_kernel_sizes": [8, 8]}
    hifigan = {"model_in_dim": 16, **upsampling}
    silent = {"noise_scale": 0.0, "noise_scale_duration": 0.0}
    vits = {
        **silent,
        "flow_size": 32,
        "ffn_dim": 48,
        "spectrogram_bins": 17,
        "prior_encoder_num_wavenet_layers": 2,
        **upsampling,
    }
    return [
        Recipe(
            "transformers_speecht5_hifigan",
            call("transformers.SpeechT5HifiGan", call("transformers.SpeechT5HifiGanConfig", **hifigan)),
            {"spectrogram": floats("batch", "frames", 16)},
            ({"batch": 2, "frames": 12}, {"batch": 3, "frames": 17}),
            ("audio", "vocoder"),
        ),
        Recipe(
            "transformers_vits",
            call("models.families.tiny.model", "vits", **vits),
            {"input_ids": tokens(38, "batch", "length")},
            ({"batch": 2, "length": 8}, {"batch": 2, "length": 11}),
            ("audio", "vocoder"),
        ),
    ]
