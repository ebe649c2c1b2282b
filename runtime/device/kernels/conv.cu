// Convolutions of images, and transposed ones: as products of the weights with a matrix of windows that is never
// stored, tile by tile; or output by output if there are few channels.
#include "convolution.cuh"

// ── Tiles: a block computes ACROSS · HIGH outputs of a group at ACROSS · WIDE windows, and a thread HIGH × WIDE of
// them. Weights and inputs go through shared memory in pieces of DEPTH terms. The next piece is loaded while the
// current one is multiplied. ──

const u32 DEPTH = 16, ACROSS = 16;

// A term of the sums: its offset in a group's weights, and its offset in the input from the window's first tap. Offsets
// in the input may wrap around for taps outside of it.
struct Term {
    u32 weight, place;
    i32 row, column;
};
// The first tap of a window in the input.
struct First {
    u32 place;
    i32 row, column;
    bool exists;
};
// The unit of work of a block: terms `from .. to` of outputs `top ..` of a group at windows `left ..`.
struct Piece {
    u32 group, part, from, to, top, left;
};

HOST_DEVICE Term term_of(const Convolution& p, const Windows& windows, u32 depth, u32 to) {
    if (depth >= to) return {0, 0, 0, 0};
    u32 taps = windows.taps(), channel = depth / taps, tap = depth - channel * taps;
    i32 i = tap / windows.columns.taps, j = tap - i * windows.columns.taps;
    i32 row = i * windows.rows.reach, column = j * windows.columns.reach;
    u32 place = channel * plane_of_input(p) + (u32)row * p.input[1] + column;
    return {weight_of(p, windows, channel, i, j), place, row, column};
}

HOST_DEVICE First first_of(const Convolution& p, const Windows& windows, u32 group, u32 number) {
    if (number >= p.batch * windows.count()) return {0, 0, 0, false};
    u32 image = number / windows.count(), rest = number - image * windows.count();
    u32 y = rest / windows.columns.windows, x = rest - y * windows.columns.windows;
    i32 row = windows.rows.first + (i32)y * windows.rows.step, column = windows.columns.first + (i32)x * windows.columns.step;
    u32 plane = (image * p.groups + group) * p.channels * plane_of_input(p);
    return {plane + (u32)row * p.input[1] + column, row, column, true};
}

// The index of result `i` of the thread `lane` along an edge: up to four neighbors, then the next four.
template <u32 SIDE> HOST_DEVICE u32 spread(u32 lane, u32 i) {
    const u32 RUN = SIDE < 4 ? SIDE : 4;
    return i / RUN * RUN * ACROSS + lane * RUN + i % RUN;
}

// Loads a thread's share of the terms `depth ..`. Neighboring threads load weights of neighboring terms, and inputs of
// neighboring windows.
template <class T, u32 HIGH, u32 WIDE>
HOST_DEVICE void fetch(const Convolution& p, const Piece& piece, const First& first, const Term* terms, u32 depth,
                       wide<T>* weights, wide<T>* inputs) {
    const u32 WINDOWS = WIDE * ACROSS;
    u32 d = threadIdx.x % DEPTH;
    const T* w = at<const T>(p.w) + (piece.group * weights_of_group(p) + terms[d].weight);
    UNROLL for (u32 i = 0; i < HIGH; i++) {
        u32 output = piece.top + threadIdx.x / DEPTH + i * (BLOCK / DEPTH);
        bool exists = depth + d < piece.to && output < p.outputs;
        weights[i] = exists ? widen(w[output * weights_apart(p)]) : wide<T>(0);
    }
    UNROLL for (u32 i = 0; i < WIDE; i++) {
        u32 d = threadIdx.x / WINDOWS + i * (BLOCK / WINDOWS);
        const Term& term = terms[d];
        bool exists = first.exists && depth + d < piece.to && inside(first.row + term.row, p.input[0]) &&
                      inside(first.column + term.column, p.input[1]);
        inputs[i] = exists ? widen(at<const T>(p.x)[(u32)(first.place + term.place)]) : wide<T>(0);
    }
}

template <class W, u32 HIGH, u32 WIDE>
HOST_DEVICE void multiply(const W (*a)[HIGH * ACROSS + 4], const W (*b)[WIDE * ACROSS + 4], W (*sum)[WIDE]) {
    // If there are enough registers, sums DEPTH terms separately, which rounds less than a single sum.
    const bool APART = HIGH * WIDE <= 4;
    W part[HIGH][WIDE] = {};
    W (*to)[WIDE] = APART ? part : sum;
    u32 row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS;
    UNROLL for (u32 d = 0; d < DEPTH; d++) {
        W left[HIGH], right[WIDE];
        UNROLL for (u32 i = 0; i < HIGH; i++) left[i] = a[d][spread<HIGH>(row, i)];
        UNROLL for (u32 j = 0; j < WIDE; j++) right[j] = b[d][spread<WIDE>(column, j)];
        UNROLL for (u32 i = 0; i < HIGH; i++)
            UNROLL for (u32 j = 0; j < WIDE; j++) to[i][j] += left[i] * right[j];
    }
    UNROLL for (u32 i = 0; i < HIGH; i++)
        UNROLL for (u32 j = 0; j < WIDE; j++)
            if (APART) sum[i][j] += part[i][j];
}

template <class T, u32 HIGH, u32 WIDE>
HOST_DEVICE void finish_tile(const Convolution& p, const Windows& windows, const Piece& piece, const wide<T> (*sum)[WIDE]) {
    u32 plane = plane_of_output(p), total = p.batch * p.groups * p.outputs * plane;
    UNROLL for (u32 j = 0; j < WIDE; j++) {
        u32 number = piece.left + spread<WIDE>(threadIdx.x % ACROSS, j);
        if (number >= p.batch * windows.count()) break;
        u32 image = number / windows.count(), rest = number - image * windows.count();
        u32 y = rest / windows.columns.windows, x = rest - y * windows.columns.windows;
        u32 in_plane = (windows.rows.at + y * windows.rows.every) * p.output[1] + windows.columns.at + x * windows.columns.every;
        UNROLL for (u32 i = 0; i < HIGH; i++) {
            u32 output = piece.top + spread<HIGH>(threadIdx.x / ACROSS, i);
            if (output >= p.outputs) break;
            output += piece.group * p.outputs;
            u32 place = (image * p.groups * p.outputs + output) * plane + in_plane;
            if (p.parts == 1) write<T>(p, sum[i][j], output, place);
            else at<wide<T>>(p.partial)[(u64)piece.part * total + place] = sum[i][j];
        }
    }
}

template <class T, u32 HIGH, u32 WIDE>
HOST_DEVICE void tile(const Convolution& p, const Windows& windows, const Piece& piece) {
    typedef wide<T> W;
    const u32 OUTPUTS = HIGH * ACROSS, WINDOWS = WIDE * ACROSS;
    // Rows are aligned to four numbers, and start in different banks.
    alignas(16) __shared__ W a[2][DEPTH][OUTPUTS + 4];
    alignas(16) __shared__ W b[2][DEPTH][WINDOWS + 4];
    __shared__ Term terms[2][DEPTH];
    u32 thread = threadIdx.x;
    First first = first_of(p, windows, piece.group, piece.left + thread % WINDOWS);
    W sum[HIGH][WIDE] = {}, weights[HIGH], inputs[WIDE];
    if (thread < 2 * DEPTH) terms[thread / DEPTH][thread % DEPTH] = term_of(p, windows, piece.from + thread, piece.to);
    __syncthreads();
    fetch<T, HIGH, WIDE>(p, piece, first, terms[0], piece.from, weights, inputs);
    // All buffers are doubled: between a write and the last read of the same buffer, there is a barrier, so one barrier
    // per turn is enough.
    for (u32 depth = piece.from, turn = 0; depth < piece.to; depth += DEPTH, turn ^= 1) {
        UNROLL for (u32 i = 0; i < HIGH; i++) a[turn][thread % DEPTH][thread / DEPTH + i * (BLOCK / DEPTH)] = weights[i];
        UNROLL for (u32 j = 0; j < WIDE; j++) b[turn][thread / WINDOWS + j * (BLOCK / WINDOWS)][thread % WINDOWS] = inputs[j];
        __syncthreads();
        if (thread < DEPTH) terms[turn][thread] = term_of(p, windows, depth + 2 * DEPTH + thread, piece.to);
        if (depth + DEPTH < piece.to) fetch<T, HIGH, WIDE>(p, piece, first, terms[turn ^ 1], depth + DEPTH, weights, inputs);
        multiply<W, HIGH, WIDE>(a[turn], b[turn], sum);
    }
    finish_tile<T, HIGH, WIDE>(p, windows, piece, sum);
    __syncthreads();
}

template <class T, u32 HIGH, u32 WIDE> HOST_DEVICE void tiles(const Convolution& p) {
    const u32 OUTPUTS = HIGH * ACROSS, WINDOWS = WIDE * ACROSS;
    u32 remainders = rests(p, 0) * rests(p, 1), pieces = remainders * p.groups * p.parts;
    for (u32 number = blockIdx.z; number < pieces; number += gridDim.z) {
        Windows windows(p, number % remainders);
        u32 depth = p.channels * windows.taps(), part = number / remainders / p.groups;
        u32 length = ((depth + p.parts - 1) / p.parts + DEPTH - 1) / DEPTH * DEPTH, from = part * length;
        u32 to = from + length < depth ? from + length : depth;
        Piece piece = {number / remainders % p.groups, part, from, to, 0, 0};
        for (piece.top = blockIdx.y * OUTPUTS; piece.top < p.outputs; piece.top += gridDim.y * OUTPUTS)
            for (piece.left = blockIdx.x * WINDOWS; piece.left < p.batch * windows.count(); piece.left += gridDim.x * WINDOWS)
                tile<T, HIGH, WIDE>(p, windows, piece);
    }
}

// ── One output per thread; planes along y, phases along z. ──

template <class T>
HOST_DEVICE wide<T> summed(const Convolution& p, const Windows& windows, u32 plane, i32 row, i32 column) {
    u32 output = plane % p.outputs, group = plane / p.outputs % p.groups, images = plane / p.outputs;
    const T* x = at<const T>(p.x) + images * p.channels * plane_of_input(p);
    const T* w = at<const T>(p.w) + group * weights_of_group(p) + output * weights_apart(p);
    wide<T> sum = 0;
    for (u32 channel = 0; channel < p.channels; channel++, x += plane_of_input(p)) {
        // A sum of partial sums rounds less than a single sum.
        wide<T> part = 0;
        for (i32 i = 0; i < windows.rows.taps; i++) {
            i32 y = row + i * windows.rows.reach;
            if (!inside(y, p.input[0])) continue;
            const T* of_row = w + weight_of(p, windows, channel, i, 0);
            for (i32 j = 0; j < windows.columns.taps; j++) {
                i32 place = column + j * windows.columns.reach;
                if (inside(place, p.input[1])) part += widen(of_row[j * windows.columns.next]) * widen(x[y * p.input[1] + place]);
            }
        }
        sum += part;
    }
    return sum;
}

template <class T> HOST_DEVICE void direct(const Convolution& p) {
    u32 outputs = p.groups * p.outputs;
    for (u32 number = blockIdx.z; number < (u32)(rests(p, 0) * rests(p, 1)); number += gridDim.z) {
        Windows windows(p, number);
        for (u32 plane = blockIdx.y; plane < p.batch * outputs; plane += gridDim.y)
            for (u32 i = first(); i < windows.count(); i += stride()) {
                i32 y = i / windows.columns.windows, x = i - y * windows.columns.windows;
                i32 row = windows.rows.first + y * windows.rows.step, column = windows.columns.first + x * windows.columns.step;
                u32 in_plane = (windows.rows.at + y * windows.rows.every) * p.output[1] + windows.columns.at + x * windows.columns.every;
                write<T>(p, summed<T>(p, windows, plane, row, column), plane % outputs, plane * plane_of_output(p) + in_plane);
            }
    }
}

// Adds the sums over parts of the depth. There may be one part, in Y itself, or none.
template <class T> HOST_DEVICE void finish(const Convolution& p) {
    u32 plane = plane_of_output(p), outputs = p.groups * p.outputs, total = p.batch * outputs * plane;
    for (u32 i = first(); i < total; i += stride()) {
        wide<T> sum = 0;
        for (u32 part = 0; part < p.parts; part++) sum += at<const wide<T>>(p.partial)[(u64)part * total + i];
        write<T>(p, sum, i / plane % outputs, i);
    }
}

#define CONVOLUTIONS(kind, T)                                    \
    COOPERATIVE(conv_small_##kind, Convolution, tiles<T, 2, 2>)  \
    COOPERATIVE(conv_medium_##kind, Convolution, tiles<T, 4, 4>) \
    KERNEL(conv_direct_##kind, Convolution, direct<T>)           \
    KERNEL(conv_finish_##kind, Convolution, finish<T>)

CONVOLUTIONS(f16, f16)
CONVOLUTIONS(bf16, bf16)
CONVOLUTIONS(f32, f32)
CONVOLUTIONS(f64, f64)
// f64 would need too much shared memory.
COOPERATIVE(conv_large_f16, Convolution, tiles<f16, 8, 4>)
COOPERATIVE(conv_large_bf16, Convolution, tiles<bf16, 8, 4>)
COOPERATIVE(conv_large_f32, Convolution, tiles<f32, 8, 4>)
