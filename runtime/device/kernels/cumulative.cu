// Cumulative sums and products along an axis. Integers wrap around; signed ones use the unsigned type of their width.
#include "device.cuh"

// `y[o, k, i] = x[o, 0, i] ∘ … ∘ x[o, k, i]`; up to `k - 1` if exclusive; from the end of the axis if reversed. X and Y
// are `[outer, n, inner]`, with `outer · inner` lines. Must match `CumulativeParams` in Rust.
struct CumulativeOf {
    u64 x, y;
    u32 lines, n, inner, is_product, is_exclusive, is_reverse;

    template <class W> HOST_DEVICE W start() const { return is_product ? W(1) : W(0); }
    template <class W> HOST_DEVICE W join(W a, W b) const { return is_product ? a * b : a + b; }
    // The index of element `k` of a line, in the order of the operation.
    HOST_DEVICE u32 place(u32 line, u32 k) const {
        u32 outer = line / inner;
        return (outer * n + (is_reverse ? n - 1 - k : k)) * inner + (line - outer * inner);
    }
};

// One thread per line.
template <class T> HOST_DEVICE void of_lines(const CumulativeOf& p) {
    typedef wide<T> W;
    for (u32 line = first(); line < p.lines; line += stride()) {
        W total = p.start<W>();
        for (u32 k = 0; k < p.n; k++) {
            u32 i = p.place(line, k);
            W next = p.join(total, widen(at<const T>(p.x)[i]));
            narrow(p.is_exclusive ? total : next, at<T>(p.y) + i);
            total = next;
        }
    }
}

// The joined values of a block's threads: up to and including this thread, before it, and of all threads.
template <class W> struct Joined {
    W with, before, all;
};

// Called by all threads of the block.
template <class W> HOST_DEVICE Joined<W> joined(const CumulativeOf& p, W value) {
    __shared__ W parts[2][BLOCK];
    u32 me = threadIdx.x, side = 0;
    parts[0][me] = value;
    __syncthreads();
    for (u32 reach = 1; reach < BLOCK; reach *= 2) {
        if (me >= reach) value = p.join(parts[side][me - reach], value);
        side ^= 1;
        parts[side][me] = value;
        __syncthreads();
    }
    Joined<W> result = {value, me > 0 ? parts[side][me - 1] : p.start<W>(), parts[side][BLOCK - 1]};
    __syncthreads();
    return result;
}

// One block per line, which processes as many elements at a time as it has threads.
template <class T> HOST_DEVICE void of_blocks(const CumulativeOf& p) {
    typedef wide<T> W;
    for (u32 line = blockIdx.x; line < p.lines; line += gridDim.x) {
        W total = p.start<W>();
        for (u32 tile = 0; tile < p.n; tile += BLOCK) {
            u32 k = tile + threadIdx.x;
            u32 i = k < p.n ? p.place(line, k) : 0;
            Joined<W> part = joined(p, k < p.n ? widen(at<const T>(p.x)[i]) : p.start<W>());
            if (k < p.n) narrow(p.join(total, p.is_exclusive ? part.before : part.with), at<T>(p.y) + i);
            total = p.join(total, part.all);
        }
    }
}

KERNEL(cumulative_lines_f16, CumulativeOf, of_lines<f16>)
KERNEL(cumulative_lines_bf16, CumulativeOf, of_lines<bf16>)
KERNEL(cumulative_lines_f32, CumulativeOf, of_lines<f32>)
KERNEL(cumulative_lines_f64, CumulativeOf, of_lines<f64>)
KERNEL(cumulative_lines_u32, CumulativeOf, of_lines<u32>)
KERNEL(cumulative_lines_u64, CumulativeOf, of_lines<u64>)
COOPERATIVE(cumulative_blocks_f16, CumulativeOf, of_blocks<f16>)
COOPERATIVE(cumulative_blocks_bf16, CumulativeOf, of_blocks<bf16>)
COOPERATIVE(cumulative_blocks_f32, CumulativeOf, of_blocks<f32>)
COOPERATIVE(cumulative_blocks_f64, CumulativeOf, of_blocks<f64>)
COOPERATIVE(cumulative_blocks_u32, CumulativeOf, of_blocks<u32>)
COOPERATIVE(cumulative_blocks_u64, CumulativeOf, of_blocks<u64>)
