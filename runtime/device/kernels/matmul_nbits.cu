// Products with a matrix of codes of 2, 4 or 8 bits: of a few rows directly, and otherwise with a matrix of numbers.
#include "numbers.cuh"

// `y [m, n] = a [m, k] · Wᵀ`. A row of W has `blocks` blocks of `block` codes, a multiple of 16. With an address 0, the zero
// points are half of the number of codes.
struct LowBit {
    u64 a, b, scales, zeros, y;
    u32 m, n, k;
    u32 bits, block, blocks;
    // The types of the scales and zero points.
    u32 scale, zero;
};

// The rows of `a` that a block multiplies with a row of W.
const u32 ROWS = 4;

// A word of codes of the same block, and the zero point and scale of this block.
struct Word {
    u32 codes;
    f32 zero, scale;
};

// The number of words in a row of W.
HOST_DEVICE u32 words(const LowBit& p) { return p.blocks * (p.block * p.bits / 32); }

// Word `i` of a row of W.
HOST_DEVICE Word word(const LowBit& p, u32 row, u32 i) {
    u64 place = (u64)row * p.blocks + i * (32 / p.bits) / p.block;
    f32 zero = p.zeros ? element(p.zero, p.zeros, place, To<f32>()) : (f32)(1u << (p.bits - 1));
    return Word{at<const u32>(p.b)[(u64)row * words(p) + i], zero, element(p.scale, p.scales, place, To<f32>())};
}

// Code `i` of a word minus the zero point.
HOST_DEVICE f32 number(const LowBit& p, const Word& word, u32 i) {
    return (f32)((word.codes >> (i * p.bits)) & ((1u << p.bits) - 1)) - word.zero;
}

// A block computes some rows of one column at a time.
template <class T> HOST_DEVICE void product(const LowBit& p) {
    u32 groups = (p.m + ROWS - 1) / ROWS, each = 32 / p.bits;
    for (u32 unit = blockIdx.x; unit < groups * p.n; unit += gridDim.x) {
        u32 column = unit % p.n, top = unit / p.n * ROWS, rows = p.m - top < ROWS ? p.m - top : ROWS;
        f32 sums[ROWS] = {};
        for (u32 i = threadIdx.x; i < words(p) && i * each < p.k; i += blockDim.x) {
            Word codes = word(p, column, i);
            u32 first = i * each, count = p.k - first < each ? p.k - first : each;
            UNROLL
            for (u32 r = 0; r < ROWS; r++) {
                if (r >= rows) continue;
                const T* a = at<const T>(p.a) + (u64)(top + r) * p.k + first;
                f32 part = 0;
                for (u32 j = 0; j < count; j++) part += widen(a[j]) * number(p, codes, j);
                sums[r] += part * codes.scale;
            }
        }
        UNROLL
        for (u32 r = 0; r < ROWS; r++) {
            f32 sum = together(sums[r], Add{});
            if (threadIdx.x == 0 && r < rows) narrow(sum, at<T>(p.y) + (u64)(top + r) * p.n + column);
        }
    }
}

// Writes W to `y [n, k]`.
template <class T> HOST_DEVICE void weights(const LowBit& p) {
    u32 each = 32 / p.bits, used = (p.k + each - 1) / each;
    for (u32 unit = first(); unit < p.n * used; unit += stride()) {
        u32 row = unit / used, i = unit % used, begin = i * each;
        Word codes = word(p, row, i);
        T* y = at<T>(p.y) + (u64)row * p.k + begin;
        for (u32 j = 0; j < each && begin + j < p.k; j++) narrow(number(p, codes, j) * codes.scale, y + j);
    }
}

COOPERATIVE(product_f16, LowBit, product<f16>)
COOPERATIVE(product_bf16, LowBit, product<bf16>)
COOPERATIVE(product_f32, LowBit, product<f32>)
KERNEL(weights_f16, LowBit, weights<f16>)
KERNEL(weights_bf16, LowBit, weights<bf16>)
KERNEL(weights_f32, LowBit, weights<f32>)
