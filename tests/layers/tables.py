"""Every line, by family, in the order of the page."""

from __future__ import annotations

from tests.layers import (
    table_activation,
    table_attention,
    table_control,
    table_conv,
    table_linear,
    table_math,
    table_norm,
    table_pooling,
    table_recurrent,
    table_resize,
    table_tensors,
    table_volumes,
    table_weight_norm,
)
from tests.layers.layer import Layer

FAMILIES: dict[str, list[Layer]] = {
    "Linear": table_linear.LAYERS,
    "Convolution": table_conv.LAYERS,
    "Weight normalization": table_weight_norm.LAYERS,
    "Normalization": table_norm.LAYERS,
    "Activation": table_activation.LAYERS,
    "Pooling and padding": table_pooling.LAYERS,
    "Upsampling and sampling": table_resize.LAYERS,
    "Recurrent layers and embeddings": table_recurrent.LAYERS,
    "Attention and transformers": table_attention.LAYERS,
    "Indexing and rearranging": table_tensors.LAYERS,
    "Mathematics": table_math.LAYERS,
    "Control flow": table_control.LAYERS,
    "Three-dimensional layers": table_volumes.LAYERS,
}
