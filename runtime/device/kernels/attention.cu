// Attention between its two matrix products: converts products of queries and keys to weights of values. Also appends
// new keys to those of the past.
#include "device.cuh"

enum MaskKind : u32 { NoMask, AddedMask, ChosenMask };
enum ScoreStage : u32 { ProductStage, CappedStage, MaskedStage, SoftmaxStage, NoStage };
enum WeightGuard : u32 { GuardUnseeing, GuardNothing, GuardUndefined };

// Rows `[rows, keys]` of the scores `[N, heads, queries, keys]`, starting with row `first`.
struct AttentionRows {
    // W: products, which are replaced by scores. T: weights, which may share the scores' memory.
    u64 scores, weights;
    // T: where the scores of a stage are stored, complete, or 0.
    u64 kept;
    // A bias of type T, or a boolean mask of type u8. `mask_step` holds the strides of batches, heads and queries.
    u64 mask;
    // i64 `[N]`: the number of keys that each batch attends to, or 0.
    u64 nonpad;
    f64 scale, cap;
    // The number of keys before and after its position that a query attends to; negative for all.
    i64 left, right;
    u32 rows, first, heads, queries, keys, past;
    u32 mask_kind, mask_keys, mask_step[3];
    u32 stage, guard, is_capped;
};

// The keys from `begin` to `end`.
struct Seen {
    u32 begin, end;
};

HOST_DEVICE u32 inside(i64 place, u32 largest) { return place < 0 ? 0 : place < (i64)largest ? (u32)place : largest; }

// The keys that a query attends to, apart from the elements of the mask.
HOST_DEVICE Seen seen_by(const AttentionRows& p, u32 batch, u32 query) {
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

// One row of scores.
template <class T> struct AttentionRow {
    typedef wide<T> W;
    const AttentionRows& p;
    // The index of the row among all rows, and the keys that it attends to.
    u64 place;
    Seen seen;
    u64 mask;
    W* scores;
    T* weights;

    HOST_DEVICE AttentionRow(const AttentionRows& p, u32 row) : p(p) {
        place = (u64)p.first + row;
        u32 query = place % p.queries, head = place / p.queries % p.heads, batch = place / p.queries / p.heads;
        seen = seen_by(p, batch, query);
        mask = (u64)batch * p.mask_step[0] + (u64)head * p.mask_step[1] + (u64)query * p.mask_step[2];
        scores = at<W>(p.scores) + (u64)row * p.keys;
        weights = at<T>(p.weights) + (u64)row * p.keys;
    }

    HOST_DEVICE void show(u32 stage, u32 key, W score) const {
        if (p.stage == stage) narrow(score, at<T>(p.kept) + place * p.keys + key);
    }

    // The score of a key with all masks. Sets `counts` to whether the masks keep it.
    HOST_DEVICE W score(u32 key, bool* counts) const {
        W score = scores[key] * (W)p.scale;
        show(ProductStage, key, score);
        if (p.is_capped) score = (W)p.cap * tanh(score / (W)p.cap);
        show(CappedStage, key, score);
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
        show(MaskedStage, key, score);
        return score;
    }

    HOST_DEVICE void run() const {
        W largest = -INFINITY;
        u32 counted = 0;
        for (u32 key = threadIdx.x; key < p.keys; key += BLOCK) {
            bool counts;
            W value = score(key, &counts);
            scores[key] = value;
            largest = Greater()(largest, value);
            counted |= counts;
        }
        largest = together(largest, Greater());
        bool is_blind = together(counted, Greater()) == 0;
        W sum = 0;
        for (u32 key = threadIdx.x; key < p.keys; key += BLOCK) {
            W value = exp(scores[key] - largest);
            scores[key] = value;
            sum += value;
        }
        W factor = 1 / together(sum, Add());
        W replacement = is_blind && p.guard == GuardNothing ? W(NAN) : W(0);
        bool is_replaced = is_blind || (p.guard == GuardUndefined && factor != factor);
        for (u32 key = threadIdx.x; key < p.keys; key += BLOCK) {
            W weight = is_replaced ? replacement : scores[key] * factor;
            show(SoftmaxStage, key, weight);
            narrow(weight, weights + key);
        }
    }
};

// One block per row, in place or not: each thread reads and writes its own keys.
template <class T> HOST_DEVICE void attention_rows(const AttentionRows& p) {
    for (u32 row = blockIdx.x; row < p.rows; row += gridDim.x) AttentionRow<T>(p, row).run();
}

// `joined [N, heads, past + rows - past, size]`: the vectors of the past, followed by new ones. `step` holds the
// strides of the new vectors' batches, heads and positions.
struct JoinedKeys {
    u64 past, fresh, joined;
    u32 count, heads, old, rows, size;
    u32 step[3];
};

template <class T> HOST_DEVICE void join_keys(const JoinedKeys& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 element = i % p.size, vector = i / p.size, row = vector % p.rows, head = vector / p.rows;
        u64 place;
        if (row < p.old) {
            place = ((u64)head * p.old + row) * p.size;
        } else {
            place = (u64)(head / p.heads) * p.step[0] + (u64)(head % p.heads) * p.step[1] + (u64)(row - p.old) * p.step[2];
        }
        at<T>(p.joined)[i] = at<const T>(row < p.old ? p.past : p.fresh)[place + element];
    }
}

COOPERATIVE(rows_f16, AttentionRows, attention_rows<f16>)
COOPERATIVE(rows_bf16, AttentionRows, attention_rows<bf16>)
COOPERATIVE(rows_f32, AttentionRows, attention_rows<f32>)
COOPERATIVE(rows_f64, AttentionRows, attention_rows<f64>)
KERNEL(join_u16, JoinedKeys, join_keys<u16>)
KERNEL(join_u32, JoinedKeys, join_keys<u32>)
KERNEL(join_u64, JoinedKeys, join_keys<u64>)
