// Attention between its two matrix products: converts products of queries and keys to weights of values. Also appends
// new keys to those of the past.
#include "attention.cuh"

// Rows `[rows, keys]` of the scores `[N, heads, queries, keys]`, starting with row `first`.
struct AttentionRows {
    Scoring scoring;
    // W: products, which are replaced by scores. T: weights, which may share the scores' memory.
    u64 scores, weights;
    // T: where the scores of a stage are stored, complete, or 0.
    u64 kept;
    u32 rows, first, stage;
};

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
        u32 queries = p.scoring.queries, heads = p.scoring.heads;
        u32 query = place % queries, head = place / queries % heads, batch = place / queries / heads;
        seen = seen_by(p.scoring, batch, query);
        mask = mask_of(p.scoring, batch, head, query);
        scores = at<W>(p.scores) + (u64)row * p.scoring.keys;
        weights = at<T>(p.weights) + (u64)row * p.scoring.keys;
    }

    HOST_DEVICE void show(u32 stage, u32 key, W score) const {
        if (p.stage == stage) narrow(score, at<T>(p.kept) + place * p.scoring.keys + key);
    }

    HOST_DEVICE void run() const {
        W largest = -INFINITY;
        u32 counted = 0;
        for (u32 key = threadIdx.x; key < p.scoring.keys; key += BLOCK) {
            bool counts;
            W added;
            read_mask<T, 1>(p.scoring, seen, mask, key, &added);
            W value = scored(p.scoring, scores[key], is_in(seen, key), added, &counts,
                             [&](u32 stage, W score) { show(stage, key, score); });
            scores[key] = value;
            largest = Greater()(largest, value);
            counted |= counts;
        }
        largest = together(largest, Greater());
        bool is_blind = together(counted, Greater()) == 0;
        W sum = 0;
        for (u32 key = threadIdx.x; key < p.scoring.keys; key += BLOCK) {
            W value = exp(scores[key] - largest);
            scores[key] = value;
            sum += value;
        }
        W factor = 1 / together(sum, Add());
        W replacement = is_blind && p.scoring.guard == GuardNothing ? W(NAN) : W(0);
        bool is_replaced = is_blind || (p.scoring.guard == GuardUndefined && factor != factor);
        for (u32 key = threadIdx.x; key < p.scoring.keys; key += BLOCK) {
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
