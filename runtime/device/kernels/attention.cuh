// The scores of attention: their scale, cap and masks, and the keys that a query attends to.
#pragma once
#include "device.cuh"

enum MaskKind : u32 { NoMask, AddedMask, ChosenMask };
enum ScoreStage : u32 { ProductStage, CappedStage, MaskedStage, SoftmaxStage, NoStage };
enum WeightGuard : u32 { GuardUnseeing, GuardNothing, GuardUndefined };

// How products of queries and keys become scores `[N, heads, queries, keys]`.
struct Scoring {
    // A bias of the inputs' type, or a boolean mask of type u8. `mask_step` holds the strides of batches, heads and
    // queries.
    u64 mask;
    // i64 `[N]`: the number of keys that each batch attends to, or 0.
    u64 nonpad;
    f64 scale, cap;
    // The number of keys before and after its position that a query attends to; negative for all.
    i64 left, right;
    u32 heads, queries, keys, past;
    u32 mask_kind, mask_keys, mask_step[3];
    u32 guard, is_capped;
};

// The keys from `begin` to `end`.
struct Seen {
    u32 begin, end;
};

HOST_DEVICE u32 inside(i64 place, u32 largest) { return place < 0 ? 0 : place < (i64)largest ? (u32)place : largest; }

// The keys that a query attends to, apart from the elements of the mask. Neither bound decreases from one query to the
// next.
HOST_DEVICE Seen seen_by(const Scoring& p, u32 batch, u32 query) {
    const i64 FAR = (i64)1 << 60;
    i64 position = (i64)query + p.past, end = p.keys;
    if (p.nonpad) {
        i64 count = at<const i64>(p.nonpad)[batch];
        count = count < -FAR ? -FAR : count > FAR ? FAR : count;
        position = (i64)query + count - p.queries;
        end = count < end ? count : end;
    }
    if (p.right >= 0 && position + p.right + 1 < end) end = position + p.right + 1;
    Seen seen = {p.left >= 0 ? inside(position - p.left, p.keys) : 0, inside(end, p.keys)};
    if (seen.end > p.mask_keys) seen.end = p.mask_keys;
    if (seen.begin > seen.end) seen.begin = seen.end;
    return seen;
}

// The offset of a query's row in the mask.
HOST_DEVICE u64 mask_of(const Scoring& p, u32 batch, u32 head, u32 query) {
    return (u64)batch * p.mask_step[0] + (u64)head * p.mask_step[1] + (u64)query * p.mask_step[2];
}

// The score of a key with all masks. `mask` is the offset of the query's row. Sets `counts` to whether the masks keep the
// key. Calls `show(stage, score)` after each stage.
template <class T, class Show>
HOST_DEVICE wide<T> scored(const Scoring& p, Seen seen, u64 mask, u32 key, wide<T> product, bool* counts, Show show) {
    typedef wide<T> W;
    W score = product * (W)p.scale;
    show(ProductStage, score);
    if (p.is_capped) score = (W)p.cap * tanh(score / (W)p.cap);
    show(CappedStage, score);
    *counts = false;
    if (key < seen.begin || key >= seen.end) {
        score = -INFINITY;
    } else if (p.mask_kind == AddedMask) {
        W added = widen(at<const T>(p.mask)[mask + key]);
        score += added;
        *counts = added != -INFINITY;
    } else if (p.mask_kind == ChosenMask) {
        *counts = at<const u8>(p.mask)[mask + key] != 0;
        score += *counts ? W(0) : W(-INFINITY);
    } else {
        *counts = true;
    }
    show(MaskedStage, score);
    return score;
}
