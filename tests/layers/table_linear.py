"""Matrix products."""

from __future__ import annotations

import torch
from torch import nn

from tests.layers.layer import bools, f32, function, ints, layer, translates_no

LAYERS = [
    layer("Linear", lambda: nn.Linear(7, 5), f32(3, 7), steps=["Gemm"]),
    layer("Linear, no bias", lambda: nn.Linear(7, 5, bias=False), f32(3, 7)),
    layer(
        "Linear, 4-D input, any batch",
        lambda: nn.Linear(7, 5),
        f32(2, 3, 4, 7),
        dynamic=({0: "batch"},),
        again=(f32(5, 3, 4, 7),),
    ),
    layer("Linear, ReLU, Linear", lambda: nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 2)), f32(3, 7)),
    layer(
        "Bilinear",
        lambda: nn.Bilinear(3, 4, 5),
        f32(2, 3),
        f32(2, 4),
        unexportable=translates_no("torchscript", "aten::bilinear"),
    ),
    layer("Identity", nn.Identity, f32(2, 3)),
    layer("Flatten, Unflatten", lambda: nn.Sequential(nn.Flatten(), nn.Unflatten(1, (4, 3))), f32(2, 3, 4)),
    layer("CosineSimilarity", nn.CosineSimilarity, f32(5, 7), f32(5, 7).flip(0)),
    layer("PairwiseDistance", nn.PairwiseDistance, f32(5, 7), f32(5, 7).flip(0)),
    function("matmul of vectors", lambda a, b: a @ b, f32(6), f32(6).flip(0)),
    function("matmul, matrix by vector", lambda a, b: a @ b, f32(4, 6), f32(6)),
    function("matmul, vector by batch", lambda a, b: a @ b, f32(6), f32(2, 6, 3)),
    function("matmul, batches that broadcast", lambda a, b: a @ b, f32(2, 1, 4, 6), f32(3, 6, 5)),
    function("matmul of integers", lambda a, b: a @ b, ints(3, 4), ints(4, 5)),
    function("matmul in double precision", lambda a, b: a @ b, f32(3, 4).double(), f32(4, 5).double()),
    function("mm, transposed", lambda a, b: torch.mm(a.t(), b.t()), f32(6, 4), f32(5, 6)),
    function("bmm", torch.bmm, f32(3, 4, 5), f32(3, 5, 2)),
    function(
        "addmm, alpha and beta", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), f32(5), f32(3, 4), f32(4, 5)
    ),
    function("baddbmm", torch.baddbmm, f32(3, 4, 2), f32(3, 4, 5), f32(3, 5, 2)),
    function("dot", torch.dot, f32(6), f32(6).flip(0)),
    function("outer", torch.outer, f32(6), f32(4)),
    function("tensordot", lambda a, b: torch.tensordot(a, b, dims=([1, 2], [0, 1])), f32(2, 3, 4), f32(3, 4, 5)),
    function("einsum, batch of products", lambda a, b: torch.einsum("bij,bjk->bik", a, b), f32(2, 3, 4), f32(2, 4, 5)),
    function("einsum, heads", lambda q, k: torch.einsum("bqhd,bkhd->bhqk", q, k), f32(2, 3, 4, 5), f32(2, 6, 4, 5)),
    function("einsum, diagonal", lambda a: torch.einsum("ii->i", a), f32(4, 4)),
    function("einsum, trace", lambda a: torch.einsum("bii->b", a), f32(2, 4, 4)),
    function("einsum, outer product", lambda a, b: torch.einsum("i,j->ij", a, b), f32(4), f32(5)),
    function("einsum, ellipsis", lambda a, b: torch.einsum("...ij,...kj->...ik", a, b), f32(2, 3, 4, 5), f32(3, 6, 5)),
    function(
        "einsum, three tensors",
        lambda a, b, c: torch.einsum("ab,bc,cd->ad", a, b, c),
        f32(2, 3),
        f32(3, 4),
        f32(4, 5),
    ),
    function("kron", torch.kron, f32(2, 3), f32(3, 2), unexportable=translates_no("torchscript", "aten::kron")),
    function(
        "cdist",
        torch.cdist,
        f32(2, 5, 3),
        f32(2, 4, 3),
        tolerance=1e-4,
        ours="translation",
        unexportable=translates_no("dynamo", "aten._cdist_forward"),
    ),  # a root near zero
    function(
        "cdist, p=1",
        lambda a, b: torch.cdist(a, b, p=1),
        f32(2, 5, 3),
        f32(2, 4, 3),
        ours="translation",
        unexportable=translates_no("dynamo", "aten._cdist_forward"),
        misexported={"torchscript": "it takes roots of negative numbers"},
    ),
    function("linalg.norm of a matrix", torch.linalg.norm, f32(4, 5)),
    function("linalg.det", torch.linalg.det, f32(3, 4, 4)),
    function("logical products of masks", lambda a, b: (a.float() @ b.float()) > 0, bools(3, 4), bools(4, 5)),
]
