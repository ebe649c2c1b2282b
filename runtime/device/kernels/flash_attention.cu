// Attention of float32 in one pass over the keys. Scores are never stored: a block computes TILE queries of a head, and
// keeps the scores of TILE keys at a time. If a later key has a greater score, the block scales what it has summed. Source:
// Tri Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", 2022,
// https://arxiv.org/abs/2205.14135.
#include "attention.cuh"

// The vectors of every batch, head and position. Vector `(b, h, i)` starts at `b · batch + h · head + i · row`. If
// `is_aligned`, every vector starts at a multiple of 16 bytes.
struct HeadVectors {
    u64 address, batch, head;
    u32 row, is_aligned;
};

struct FlashAttention {
    Scoring scoring;
    HeadVectors q, k, v, y;
    // `blocks` is the number of tiles of queries over all batches and heads. `group` heads of queries share a head of keys.
    // `width` is the size of values.
    u32 blocks, group, depth, width;
    // A power of two, at most 1 / keys. Weights are multiplied by it, so that sums of values overflow as rarely as sums
    // with normalized weights.
    f32 share;
};

// A thread computes SIDE × SIDE scores of a tile, and SIDE × SIDE results in each RUN of TILE columns. Queries, keys and
// values go through shared memory in pieces of DEPTH terms. A piece is loaded while the previous one is multiplied.
const u32 TILE = 64, DEPTH = 16, SIDE = 4, ACROSS = TILE / SIDE;

// Four neighboring numbers, which a thread moves at once.
struct alignas(16) Four {
    f32 x[4];
};

// Elements `from .. from + 4` of a vector, with 0 beyond its `size`.
HOST_DEVICE Four load(const f32* vector, u32 from, u32 size, bool is_aligned) {
    if (is_aligned && from + 4 <= size) return *reinterpret_cast<const Four*>(vector + from);
    Four four = {};
    UNROLL for (u32 i = 0; i < 4; i++)
        if (from + i < size) four.x[i] = vector[from + i];
    return four;
}
HOST_DEVICE const Four& four(const f32* numbers) { return *reinterpret_cast<const Four*>(numbers); }

// The memory that the threads of a block share. Rows are aligned to four numbers, and start in different banks.
template <u32 RUNS> struct Pieces {
    // Queries, and keys or values, term by term. Both are doubled: between a write and the last read of the same buffer,
    // there is a barrier, so one barrier per piece is enough.
    f32 left[2][DEPTH][TILE + 4], right[2][DEPTH][RUNS * TILE + 4];
    // The weights of a key for four queries; see `place_of_weights`.
    Four weights[TILE * ACROSS];
    // The keys that each query attends to, and the offset of its row in the mask.
    Seen seen[TILE];
    u64 masks[TILE];
};

// The place of a key's weights for the queries `4 · row ..`. Threads that write or read together use different banks.
HOST_DEVICE u32 place_of_weights(u32 key, u32 row) { return key * ACROSS + (row ^ key / SIDE); }

// `sum += left · right`, for four numbers of each.
HOST_DEVICE void add_products(const Four& left, const Four& right, f32 (*sum)[SIDE]) {
    UNROLL for (u32 i = 0; i < SIDE; i++)
        UNROLL for (u32 j = 0; j < SIDE; j++) sum[i][j] += left.x[i] * right.x[j];
}

// Joins the values of the ACROSS threads that work on the same queries.
template <class T, class Join> HOST_DEVICE T along_row(T value, Join join) {
    UNROLL for (int reach = ACROSS / 2; reach > 0; reach /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, reach));
    return value;
}

// A thread's share of the work of a block. The block computes the queries from `first` on, of one head.
template <u32 RUNS> struct Queries {
    const FlashAttention& p;
    Pieces<RUNS>& pieces;
    u32 first, row, column;
    const f32 *q, *k, *v;
    // The keys that any of the queries attends to.
    Seen seen;
    // The next pieces of queries, and of keys or values.
    Four left, right[RUNS];
    // Products of queries and keys, then scores, then weights.
    f32 score[SIDE][SIDE];
    // Of each query: sums of weighted values, the sum of this thread's weights, and the largest score so far.
    f32 out[RUNS][SIDE][SIDE], sum[SIDE], largest[SIDE];
    // The bits of the queries for which the masks keep one of this thread's keys.
    u32 counted;

    HOST_DEVICE Queries(const FlashAttention& p, Pieces<RUNS>& pieces, u32 number)
        : p(p), pieces(pieces), row(threadIdx.x / ACROSS), column(threadIdx.x % ACROSS), out(), sum(), counted(0) {
        u32 queries = p.scoring.queries, tiles = (queries + TILE - 1) / TILE, heads = number / tiles;
        u32 head = heads % p.scoring.heads, batch = heads / p.scoring.heads;
        first = number % tiles * TILE;
        q = at<const f32>(p.q.address) + batch * p.q.batch + head * p.q.head;
        k = at<const f32>(p.k.address) + batch * p.k.batch + head / p.group * p.k.head;
        v = at<const f32>(p.v.address) + batch * p.v.batch + head / p.group * p.v.head;
        UNROLL for (u32 i = 0; i < SIDE; i++) largest[i] = -INFINITY;
        u32 last = first + TILE < queries ? first + TILE - 1 : queries - 1;
        seen = {seen_by(p.scoring, batch, first).begin, seen_by(p.scoring, batch, last).end};
        if (threadIdx.x >= TILE) return;
        u32 query = first + threadIdx.x;
        pieces.seen[threadIdx.x] = query < queries ? seen_by(p.scoring, batch, query) : Seen{0, 0};
        pieces.masks[threadIdx.x] = mask_of(p.scoring, batch, head, query);
    }

    // Loads a thread's share of a piece of all queries, and of keys `key ..`. Two neighboring threads read 32 bytes of a
    // vector.
    HOST_DEVICE void fetch_keys(u32 key, u32 depth) {
        u32 vector = threadIdx.x / 2 % TILE, term = depth + piece_of_thread();
        bool is_query = first + vector < p.scoring.queries, is_key = key + vector < seen.end;
        left = load(q + (u64)(first + vector) * p.q.row, term, is_query ? p.depth : 0, p.q.is_aligned);
        right[0] = load(k + (u64)(key + vector) * p.k.row, term, is_key ? p.depth : 0, p.k.is_aligned);
    }
    HOST_DEVICE u32 piece_of_thread() const { return threadIdx.x / (2 * TILE) * 8 + threadIdx.x % 2 * 4; }

    HOST_DEVICE void keep_keys(u32 turn) const {
        u32 vector = threadIdx.x / 2 % TILE, term = piece_of_thread();
        UNROLL for (u32 i = 0; i < 4; i++) {
            pieces.left[turn][term + i][vector] = left.x[i];
            pieces.right[turn][term + i][vector] = right[0].x[i];
        }
    }

    // Loads a thread's share of the values of DEPTH keys.
    HOST_DEVICE void fetch_values(u32 key) {
        const f32* value = v + (u64)(key + row) * p.v.row;
        u32 size = key + row < seen.end ? p.width : 0;
        UNROLL for (u32 run = 0; run < RUNS; run++) right[run] = load(value, run * TILE + column * 4, size, p.v.is_aligned);
    }
    HOST_DEVICE void keep_values(u32 turn) const {
        UNROLL for (u32 run = 0; run < RUNS; run++)
            *reinterpret_cast<Four*>(&pieces.right[turn][row][run * TILE + column * 4]) = right[run];
    }

    // Turns the products with keys `key ..` into weights, which all threads can read after the next barrier.
    HOST_DEVICE void weigh(u32 key) {
        key += column * SIDE;
        UNROLL for (u32 i = 0; i < SIDE; i++) {
            Seen seen = pieces.seen[row * SIDE + i];
            f32 top = largest[i], added[SIDE];
            read_mask<f32, SIDE>(p.scoring, seen, pieces.masks[row * SIDE + i], key, added);
            UNROLL for (u32 j = 0; j < SIDE; j++) {
                bool counts;
                score[i][j] = scored(p.scoring, score[i][j], is_in(seen, key + j), added[j], &counts, [](u32, f32) {});
                top = Greater()(top, score[i][j]);
                counted |= (u32)counts << i;
            }
            top = along_row(top, Greater());
            // Before the first score above -inf, all weights are 0.
            f32 base = top == -INFINITY ? 0 : top, factor = exp(largest[i] - base);
            largest[i] = top;
            sum[i] *= factor;
            UNROLL for (u32 run = 0; run < RUNS; run++)
                UNROLL for (u32 j = 0; j < SIDE; j++) out[run][i][j] *= factor;
            UNROLL for (u32 j = 0; j < SIDE; j++) {
                score[i][j] = p.share * exp(score[i][j] - base);
                sum[i] += score[i][j];
            }
        }
        UNROLL for (u32 j = 0; j < SIDE; j++)
            pieces.weights[place_of_weights(column * SIDE + j, row)] = {score[0][j], score[1][j], score[2][j], score[3][j]};
    }

    // Whether there are enough registers to fetch the first values before weights are computed.
    HOST_DEVICE static bool is_early() { return RUNS == 1; }

    // Multiplies queries and keys, piece by piece. Begins with the piece that was fetched last. There is a piece even if the
    // depth is 0, for its barrier.
    HOST_DEVICE void multiply_keys(u32 key, u32& turn) {
        UNROLL for (u32 i = 0; i < SIDE; i++)
            UNROLL for (u32 j = 0; j < SIDE; j++) score[i][j] = 0;
        u32 depth = 0;
        do {
            keep_keys(turn);
            __syncthreads();
            depth += DEPTH;
            if (depth < p.depth) fetch_keys(key, depth);
            else if (is_early()) fetch_values(key);
            UNROLL for (u32 d = 0; d < DEPTH; d++)
                add_products(four(&pieces.left[turn][d][row * 4]), four(&pieces.right[turn][d][column * 4]), score);
            turn ^= 1;
        } while (depth < p.depth);
    }

    // Adds the weighted values of keys `key ..`, piece by piece, and fetches the first piece of the next keys.
    HOST_DEVICE void multiply_values(u32 key, u32& turn) {
        u32 end = key + TILE < seen.end ? key + TILE : seen.end;
        for (u32 from = key; from < end; from += DEPTH) {
            keep_values(turn);
            __syncthreads();
            if (from + DEPTH < end) fetch_values(from + DEPTH);
            else if (end < seen.end) fetch_keys(end, 0);
            UNROLL for (u32 d = 0; d < DEPTH; d++) {
                const Four& weights = pieces.weights[place_of_weights(from - key + d, row)];
                UNROLL for (u32 run = 0; run < RUNS; run++)
                    add_products(weights, four(&pieces.right[turn][d][run * TILE + column * 4]), out[run]);
            }
            turn ^= 1;
        }
    }

    // Normalizes the results of query `i`, or replaces them as the guard says.
    HOST_DEVICE void normalize(u32 i, bool is_blind) {
        f32 total = along_row(sum[i], Add()), factor = total > 0 ? 1 / total : NAN;
        bool is_replaced = is_blind || (p.scoring.guard == GuardUndefined && factor != factor);
        f32 replacement = is_blind && p.scoring.guard == GuardNothing ? NAN : 0;
        UNROLL for (u32 run = 0; run < RUNS; run++)
            UNROLL for (u32 j = 0; j < SIDE; j++) out[run][i][j] = is_replaced ? replacement : out[run][i][j] * factor;
    }

    HOST_DEVICE void finish(u32 number) {
        for (int reach = ACROSS / 2; reach > 0; reach /= 2) counted |= __shfl_xor_sync(0xffffffffu, counted, reach);
        u32 heads = number / ((p.scoring.queries + TILE - 1) / TILE);
        f32* y = at<f32>(p.y.address) + heads / p.scoring.heads * p.y.batch + heads % p.scoring.heads * p.y.head;
        UNROLL for (u32 i = 0; i < SIDE; i++) {
            normalize(i, !(counted >> i & 1));
            u32 query = first + row * SIDE + i;
            f32* to = y + (u64)query * p.y.row;
            UNROLL for (u32 run = 0; run < RUNS; run++) {
                u32 from = run * TILE + column * 4, size = query < p.scoring.queries ? p.width : 0;
                const f32* x = out[run][i];
                if (p.y.is_aligned && from + 4 <= size) *reinterpret_cast<Four*>(to + from) = {x[0], x[1], x[2], x[3]};
                else UNROLL for (u32 j = 0; j < 4; j++) if (from + j < size) to[from + j] = x[j];
            }
        }
    }
};

// The width is at most RUNS · TILE.
template <u32 RUNS> HOST_DEVICE void flash(const FlashAttention& p) {
    alignas(16) __shared__ Pieces<RUNS> pieces;
    for (u32 number = blockIdx.x; number < p.blocks; number += gridDim.x) {
        Queries<RUNS> queries(p, pieces, number);
        u32 turn = 0;
        if (queries.seen.begin < queries.seen.end) queries.fetch_keys(queries.seen.begin, 0);
        for (u32 key = queries.seen.begin; key < queries.seen.end; key += TILE) {
            queries.multiply_keys(key, turn);
            queries.weigh(key);
            if (!queries.is_early()) queries.fetch_values(key);
            queries.multiply_values(key, turn);
        }
        queries.finish(number);
        __syncthreads();
    }
}

COOPERATIVE(flash_64, FlashAttention, flash<1>)
COOPERATIVE(flash_128, FlashAttention, flash<2>)
