"""Splits, joins and rearrangements of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.layers.layer import bools, f32, function, ints, layer, translates_no

X = f32(3, 4, 5)
INDEX = torch.tensor([2, 0, 1, 2])


def assigned(*where: Any) -> Any:
    """A function that assigns its second tensor to a part of its first."""

    def assign(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[where] = y
        return x

    return assign


def accumulated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:, 1:3] += y
    x[..., 0] *= 2
    return x


def zeroed(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[mask] = 0
    return x


class KeyCache(nn.Module):
    """A cache that is written at a position given at run time."""

    def forward(self, cache: torch.Tensor, new: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return cache.index_copy(1, position, new)


LAYERS = [
    function("slice", lambda x: x[:, 1:3], X),
    function("slice, steps", lambda x: x[::2, 1::2, 4:0], X),
    function("slice, from the end", lambda x: x[..., -3:-1], X),
    function("index of one element", lambda x: x[:, -1], X),
    function("None and ellipsis", lambda x: x[:, None, ..., 2], X),
    function("index by a tensor", lambda x, i: x[i], X, INDEX),
    function("index by two tensors", lambda x, i: x[i, :, i], X, INDEX),
    function("index of the second dim by a tensor", lambda x, i: x[:, i], X, INDEX),
    function("index by a mask", lambda x, m: x[m], X, bools(3, 4, 5)),
    function("narrow, select", lambda x: x.narrow(1, 1, 2).select(2, 3), X),
    function("index_select", lambda x, i: x.index_select(1, i), X, INDEX),
    function("gather", lambda x, i: x.gather(1, i), X, ints(3, 2, 5, below=4)),
    function("take", torch.take, X, ints(4, below=60)),
    function(
        "take_along_dim",
        lambda x, i: torch.take_along_dim(x, i, 2),
        X,
        ints(3, 4, 2, below=5),
        unexportable=translates_no("torchscript", "aten::take_along_dim"),
    ),
    function(
        "masked_select",
        torch.masked_select,
        X,
        bools(3, 4, 5),
        ours="translation",
        unexportable=translates_no("dynamo", "aten.masked_select"),
    ),
    function("nonzero", lambda m: m.nonzero(), bools(3, 4)),
    function("assignment to a slice", assigned(slice(None), slice(1, 3)), X, f32(3, 2, 5)),
    function("assignment to a strided slice", assigned(slice(None), slice(None), slice(0, 5, 2)), X, f32(3, 4, 3)),
    function("assignment to an element", assigned(slice(None), 2), X, f32(3, 5)),
    function("assignment to the last index of the last dim", assigned(..., -1), X, f32(3, 4)),
    function("assignment by a tensor", assigned(torch.tensor([2, 0])), X, f32(2, 4, 5)),
    function("assignment by a mask", zeroed, X, bools(3, 4, 5)),
    function("accumulation in slices", accumulated, X, f32(3, 2, 5)),
    function("masked_fill", lambda x, m: x.masked_fill(m, -7.0), X, bools(3, 4, 5)),
    function("masked_scatter", torch.masked_scatter, X, bools(3, 4, 5), f32(5, 4, 3)),
    function("where", torch.where, bools(3, 1, 5), X, f32(4, 5)),
    function("scatter", lambda x, i, y: x.scatter(1, i, y), X, ints(3, 1, 5, below=4), f32(3, 1, 5)),
    function("scatter of a number", lambda x, i: x.scatter(1, i, 3.5), X, ints(3, 1, 5, below=4)),
    function("scatter_add", lambda x, i, y: x.scatter_add(1, i, y), X, ints(3, 4, 5, below=4), f32(3, 4, 5) * 2),
    function(
        "scatter_reduce, amax",
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"),
        X,
        ints(3, 4, 5, below=4),
        f32(3, 4, 5) * 2,
    ),
    function(
        "index_add",
        lambda x, i, y: x.index_add(0, i, y),
        X,
        INDEX,
        f32(4, 4, 5),
        unexportable={"torchscript": "it does not support repeated indices"},
    ),
    function(
        "index_put, accumulate",
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        X,
        INDEX,
        f32(4, 4, 5),
        misexported={"torchscript": "it assigns instead of adding where indices repeat"},
    ),
    layer("index_copy", KeyCache, f32(2, 6, 4), f32(2, 1, 4), torch.tensor([3])),
    function(
        "select_scatter, slice_scatter",
        lambda x, y: x.select_scatter(y, 1, 2).slice_scatter(y[:, None], 1, 0, 1),
        X,
        f32(3, 5),
        unexportable=translates_no("torchscript", "aten::select_scatter"),
    ),
    function(
        "diagonal, diag_embed",
        lambda x: torch.diag_embed(x.diagonal(1, 1, 2)),
        X,
        unexportable=translates_no("torchscript", "aten::diag_embed"),
    ),
    function("diag", torch.diag, f32(5), unexportable=translates_no("torchscript", "aten::diag")),
    function("cat", lambda x, y: torch.cat([x, y, x], 1), X, f32(3, 2, 5)),
    function("stack", lambda x: torch.stack([x, x * 2], -1), X),
    function("hstack, vstack", lambda x: (torch.hstack([x, x]), torch.vstack([x, x])), X),
    function("split", lambda x: x.split(2, 2), X),
    function("split by sizes", lambda x: x.split([1, 3], 1), X),
    function("chunk", lambda x: x.chunk(2, 2), X),
    function("tensor_split", lambda x: x.tensor_split(3, 1), X),
    function("unbind", lambda x: x.unbind(1), X),
    function("reshape, view, flatten", lambda x: x.reshape(6, -1).view(2, 3, 10).flatten(1), X),
    function("squeeze, unsqueeze", lambda x: x.unsqueeze(1).squeeze(1).unsqueeze(-1), X),
    function("permute, transpose", lambda x: x.permute(2, 0, 1).transpose(0, 1), X),
    function("movedim, swapaxes", lambda x: x.movedim(0, 2).swapaxes(0, 1), X),
    function("expand", lambda x: x[:, :1].expand(2, -1, 6, 5), X),
    function(
        "expand_as, broadcast_to", lambda x, y: (y.expand_as(x), torch.broadcast_to(y, (2, 3, 4, 5))), X, f32(4, 1)
    ),
    function("dstack", lambda x: torch.dstack([x, x]), X, unexportable=translates_no("torchscript", "aten::dstack")),
    function("repeat", lambda x: x.repeat(2, 1, 3), X),
    function("tile", lambda x: x.tile(2, 2), X),
    function("repeat_interleave", lambda x: x.repeat_interleave(2, 1), X),
    function("repeat_interleave by a tensor", lambda x: x.repeat_interleave(torch.tensor([1, 0, 2]), 0), X),
    function("roll", lambda x: x.roll(2, 1), X),
    function("roll of two dims", lambda x: x.roll((1, -2), (0, 2)), X),
    function("flip", lambda x: x.flip(0, 2), X),
    function("rot90", lambda x: x.rot90(1, (1, 2)), X, unexportable=translates_no("torchscript", "aten::rot90")),
    function("unfold of a dim", lambda x: x.unfold(2, 3, 1), X),
    function("tril, triu", lambda x: (x.tril(), x.triu(1), x.tril(-1)), X),
    function("tril_indices", lambda x: x[tuple(torch.tril_indices(3, 4))], X),
    function("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), f32(3), f32(4)),
    function("meshgrid, xy", lambda x, y: torch.meshgrid(x, y, indexing="xy"), f32(3), f32(4)),
    function(
        "cartesian_prod",
        torch.cartesian_prod,
        f32(3),
        f32(4),
        unexportable=translates_no("torchscript", "aten::cartesian_prod"),
    ),
    function(
        "combinations",
        lambda x: torch.combinations(x, 2),
        f32(4),
        ours="translation",
        unexportable={
            "dynamo": "it does not translate aten.masked_select",
            "torchscript": "it does not translate aten::combinations",
        },
    ),
    function("arange", lambda x: x + torch.arange(5) * 0.5, X),
    function("arange of a size", lambda x: torch.arange(x.shape[1]) + 1, X, dynamic=({1: "n"},), again=(f32(3, 7, 5),)),
    function("linspace", lambda x: x * torch.linspace(-1, 2, 5), X),
    function("logspace", lambda x: x * torch.logspace(0, 1, 5), X),
    function("eye", lambda x: x @ torch.eye(5, 3), X),
    function(
        "zeros_like, ones_like, full_like",
        lambda x: x + torch.zeros_like(x) + torch.ones_like(x) * 2 + torch.full_like(x, 0.5),
        X,
    ),
    function("new_zeros, new_full", lambda x: torch.cat([x, x.new_zeros(3, 4, 1), x.new_full((3, 4, 2), 7.0)], 2), X),
    function("zeros of a size", lambda x: torch.zeros(x.shape[0], 2), X, dynamic=({0: "n"},), again=(f32(5, 4, 5),)),
    function("one_hot", lambda i: nn.functional.one_hot(i, 10), ints(3, 4)),
    function("atleast_3d", torch.atleast_3d, f32(4, 5)),
    function(
        "block_diag",
        torch.block_diag,
        f32(2, 3),
        f32(3, 2),
        unexportable=translates_no("torchscript", "aten::block_diag"),
    ),
    function(
        "windows of an image",
        lambda x: x.view(1, 3, 2, 4, 2, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, 4, 3),
        f32(1, 3, 8, 8),
    ),
    function("size as a number", lambda x: x * x.shape[1] / x.numel(), X, dynamic=({1: "n"},), again=(f32(3, 7, 5),)),
]
