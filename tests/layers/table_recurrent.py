"""Recurrent layers and embeddings."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.layers.layer import f16, f32, ints, layer

X = f32(5, 2, 3)
LENGTHS_AS_DATA = {"dynamo": "torch.export does not support sequence lengths as data"}
LENGTHS = torch.tensor([5, 3])


class Packed(nn.Module):
    """A recurrent layer over sequences of different lengths."""

    def __init__(self, kind: type[nn.RNNBase], bidirectional: bool = False) -> None:
        super().__init__()
        self.rnn = kind(3, 4, bidirectional=bidirectional)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        output, _ = self.rnn(pack_padded_sequence(x, lengths))
        return pad_packed_sequence(output)[0]


class Steps(nn.Module):
    """A cell, called once for each step."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for step in range(3):
            state = self.cell(x[step], state)
        return state


class LastOutput(nn.Module):
    """A classifier over the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


LAYERS = [
    layer("LSTM", lambda: nn.LSTM(3, 4), X),
    layer("LSTM, 2 layers, bidirectional", lambda: nn.LSTM(3, 4, 2, bidirectional=True), X),
    layer("LSTM, batch_first", lambda: nn.LSTM(3, 4, batch_first=True), f32(2, 5, 3)),
    layer("LSTM, no bias", lambda: nn.LSTM(3, 4, bias=False), X),
    layer("LSTM, with state", lambda: nn.LSTM(3, 4), X, (f32(1, 2, 4), f32(1, 2, 4).flip(1))),
    layer(
        "LSTM, proj_size",
        lambda: nn.LSTM(3, 4, proj_size=2),
        X,
        unexportable={"torchscript": "it does not support LSTM projections"},
        refused={"dynamo": "CC0210"},
        ours="translation",
        note="dynamo: it writes proj_size as hidden_size, so initial_c has a wrong shape; onnxruntime refuses it too",
    ),
    layer("LSTM, unbatched", lambda: nn.LSTM(3, 4), f32(5, 3)),
    layer("LSTM, half precision", lambda: nn.LSTM(3, 4).half(), f16(5, 2, 3), tolerance=4e-3),  # f16 has 11 bits
    layer(
        "LSTM, any batch",
        lambda: nn.LSTM(3, 4, bidirectional=True),
        X,
        dynamic=({1: "batch"},),
        again=(f32(5, 3, 3),),
    ),
    layer(
        "LSTM, packed sequences", lambda: Packed(nn.LSTM), X, LENGTHS, ours="torchscript", unexportable=LENGTHS_AS_DATA
    ),
    layer(
        "LSTM, packed, bidirectional",
        lambda: Packed(nn.LSTM, bidirectional=True),
        X,
        LENGTHS,
        ours="torchscript",
        unexportable=LENGTHS_AS_DATA,
    ),
    layer("LSTM, last step, Linear", LastOutput, f32(2, 5, 3)),
    layer("GRU", lambda: nn.GRU(3, 4), X),
    layer("GRU, 2 layers, bidirectional", lambda: nn.GRU(3, 4, 2, bidirectional=True), X),
    layer("GRU, batch_first, with state", lambda: nn.GRU(3, 4, batch_first=True), f32(2, 5, 3), f32(1, 2, 4)),
    layer(
        "GRU, packed sequences", lambda: Packed(nn.GRU), X, LENGTHS, ours="torchscript", unexportable=LENGTHS_AS_DATA
    ),
    layer("RNN", lambda: nn.RNN(3, 4), X),
    layer("RNN, ReLU, bidirectional", lambda: nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), X),
    layer("RNN, 2 layers, with state", lambda: nn.RNN(3, 4, 2), X, f32(2, 2, 4)),
    layer("LSTMCell", lambda: nn.LSTMCell(3, 4), f32(2, 3), (f32(2, 4), f32(2, 4).flip(0))),
    layer("GRUCell", lambda: nn.GRUCell(3, 4), f32(2, 3), f32(2, 4)),
    layer("RNNCell", lambda: nn.RNNCell(3, 4), f32(2, 3), f32(2, 4)),
    layer("GRUCell, unrolled", lambda: Steps(nn.GRUCell(3, 4)), X, f32(2, 4)),
    layer("Embedding", lambda: nn.Embedding(10, 4), ints(2, 5)),
    layer("Embedding, padding_idx", lambda: nn.Embedding(10, 4, padding_idx=3), ints(2, 5)),
    layer("Embedding, int32 indices", lambda: nn.Embedding(10, 4), ints(2, 5).int()),
    layer("Embedding, half precision", lambda: nn.Embedding(10, 4).half(), ints(2, 5)),
    layer("EmbeddingBag, mean", lambda: nn.EmbeddingBag(10, 4), ints(3, 5)),
    layer("EmbeddingBag, sum", lambda: nn.EmbeddingBag(10, 4, mode="sum"), ints(3, 5)),
    layer("EmbeddingBag, max, offsets", lambda: nn.EmbeddingBag(10, 4, mode="max"), ints(7), torch.tensor([0, 2, 5])),
    layer("EmbeddingBag, sum, offsets", lambda: nn.EmbeddingBag(10, 4, mode="sum"), ints(7), torch.tensor([0, 2, 5])),
]
