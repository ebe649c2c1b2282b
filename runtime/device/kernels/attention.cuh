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

HOST_DEVICE bool is_in(Seen seen, u32 key) { return key >= seen.begin && key < seen.end; }

// Reads what the mask adds to the scores of keys `key .. key + N`: -inf where it hides a key. `mask` is the offset of the
// query's row. Keys that the query does not attend to may have no element.
template <class T, u32 N> HOST_DEVICE void read_mask(const Scoring& p, Seen seen, u64 mask, u32 key, wide<T>* added) {
    typedef wide<T> W;
    if (p.mask_kind == AddedMask) {
        const T* bias = at<const T>(p.mask) + mask;
        UNROLL for (u32 i = 0; i < N; i++) added[i] = is_in(seen, key + i) ? widen(bias[key + i]) : W(0);
    } else if (p.mask_kind == ChosenMask) {
        const u8* chosen = at<const u8>(p.mask) + mask;
        UNROLL for (u32 i = 0; i < N; i++) added[i] = is_in(seen, key + i) && chosen[key + i] == 0 ? W(-INFINITY) : W(0);
    } else {
        UNROLL for (u32 i = 0; i < N; i++) added[i] = 0;
    }
}

// The score of a key with the mask. Sets `counts` to whether the key is seen and the mask keeps it. Calls
// `show(stage, score)` after each stage.
template <class W, class Show>
HOST_DEVICE W scored(const Scoring& p, W product, bool is_seen, W added, bool* counts, Show show) {
    W score = product * (W)p.scale;
    show(ProductStage, score);
    if (p.is_capped) score = (W)p.cap * tanh(score / (W)p.cap);
    show(CappedStage, score);
    score = is_seen ? score + added : W(-INFINITY);
    show(MaskedStage, score);
    *counts = is_seen && added != -INFINITY;
    return score;
}
