// Reductions over windows that slide over planes [P, H, W]: one thread per window, or one block per large window.
#include "device.cuh"

// The windows along an axis. Window `i` starts at `i · stride`, and the input starts at `before`. The padding ends
// `after` elements behind the input.
struct PoolAxis {
    u32 input, output, kernel, stride, dilation, before, after;
};
struct Pooling {
    // `indices` is 0 if they are not requested.
    u64 x, y, indices;
    u32 planes;
    // The exponent of a norm.
    u32 power;
    // Whether an average counts padding, and whether indices count column by column.
    u32 padded, columns_first;
    PoolAxis axes[2];
};

// The elements of an axis that a window covers: `taps` elements from input `from` on, and the number of elements for an
// average.
struct Span {
    u32 from, taps, count;
};

// The number of multiples of the dilation below a distance, at most the kernel size.
HOST_DEVICE u32 steps(const PoolAxis& axis, u32 distance) {
    u32 count = axis.dilation == 1 ? distance : (distance + axis.dilation - 1) / axis.dilation;
    return count < axis.kernel ? count : axis.kernel;
}
HOST_DEVICE u32 less(u32 a, u32 b) { return a > b ? a - b : 0; }

HOST_DEVICE Span span(const Pooling& p, u32 a, u32 window) {
    const PoolAxis& axis = p.axes[a];
    u32 begin = window * axis.stride, end = axis.before + axis.input;
    u32 outside = steps(axis, less(axis.before, begin)), all = steps(axis, less(end, begin));
    u32 taps = less(all, outside);
    u32 count = p.padded ? steps(axis, less(end + axis.after, begin)) : taps;
    return {less(begin + outside * axis.dilation, axis.before), taps, count};
}

// ── The reductions: a start value, a step and a final function. ──

// −∞, or the smallest integer.
template <class T> struct Least {
    HOST_DEVICE static wide<T> value() { return -INFINITY; }
};
template <> struct Least<i8> {
    HOST_DEVICE static i8 value() { return -128; }
};
template <> struct Least<u8> {
    HOST_DEVICE static u8 value() { return 0; }
};

// Ignores NaN.
template <class T> struct Largest {
    typedef wide<T> Wide;
    HOST_DEVICE static Wide start() { return Least<T>::value(); }
    HOST_DEVICE static Wide lift(const Pooling&, T x) { return widen(x); }
    HOST_DEVICE Wide operator()(Wide a, Wide b) const { return b > a ? b : a; }
    HOST_DEVICE static Wide finish(const Pooling&, Wide total, f32) { return total; }
};
template <class T> struct Mean {
    typedef wide<T> Wide;
    HOST_DEVICE static Wide start() { return 0; }
    HOST_DEVICE static Wide lift(const Pooling&, T x) { return widen(x); }
    HOST_DEVICE Wide operator()(Wide a, Wide b) const { return a + b; }
    HOST_DEVICE static Wide finish(const Pooling&, Wide total, f32 count) { return total / count; }
};
template <class T> struct Norm {
    typedef wide<T> Wide;
    HOST_DEVICE static Wide start() { return 0; }
    HOST_DEVICE static Wide lift(const Pooling& p, T x) {
        Wide size = fabs(widen(x));
        return p.power == 1 ? size : p.power == 2 ? size * size : pow(size, (Wide)p.power);
    }
    HOST_DEVICE Wide operator()(Wide a, Wide b) const { return a + b; }
    HOST_DEVICE static Wide finish(const Pooling& p, Wide total, f32) {
        return p.power == 1 ? total : p.power == 2 ? sqrt(total) : pow(total, Wide(1) / (Wide)p.power);
    }
};

// ── One window per thread; planes along y. ──

template <class T, template <class> class Rule> HOST_DEVICE void by_threads(const Pooling& p) {
    typedef wide<T> W;
    const PoolAxis &rows = p.axes[0], &columns = p.axes[1];
    Rule<T> join;
    for (u32 plane = blockIdx.y; plane < p.planes; plane += gridDim.y)
        for (u32 i = first(); i < rows.output * columns.output; i += stride()) {
            Span y = span(p, 0, i / columns.output), x = span(p, 1, i % columns.output);
            const T* row = at<const T>(p.x) + (u64)plane * rows.input * columns.input + (u64)y.from * columns.input + x.from;
            W total = Rule<T>::start();
            for (u32 r = 0; r < y.taps; r++, row += (u64)rows.dilation * columns.input) {
                W of_row = Rule<T>::start();
                for (u32 c = 0; c < x.taps; c++) of_row = join(of_row, Rule<T>::lift(p, row[c * columns.dilation]));
                total = join(total, of_row);
            }
            total = Rule<T>::finish(p, total, (f32)y.count * (f32)x.count);
            narrow(total, at<T>(p.y) + (u64)plane * rows.output * columns.output + i);
        }
}

// The largest element and its index: the first one if several are equal, and the window's first element if none is
// larger than the least.
template <class T> HOST_DEVICE void places(const Pooling& p) {
    typedef wide<T> W;
    const PoolAxis &rows = p.axes[0], &columns = p.axes[1];
    u32 down = p.columns_first ? 1 : columns.input, right = p.columns_first ? rows.input : 1;
    for (u32 plane = blockIdx.y; plane < p.planes; plane += gridDim.y)
        for (u32 i = first(); i < rows.output * columns.output; i += stride()) {
            Span y = span(p, 0, i / columns.output), x = span(p, 1, i % columns.output);
            u64 begin = (u64)plane * rows.input * columns.input, result = (u64)plane * rows.output * columns.output + i;
            const T* image = at<const T>(p.x) + begin;
            W best = Least<T>::value();
            u64 place = (u64)y.from * down + (u64)x.from * right;
            for (u32 r = 0; r < y.taps; r++)
                for (u32 c = 0; c < x.taps; c++) {
                    u32 row = y.from + r * rows.dilation, column = x.from + c * columns.dilation;
                    W value = widen(image[row * columns.input + column]);
                    if (!(value > best)) continue;
                    best = value;
                    place = row * down + column * right;
                }
            narrow(best, at<T>(p.y) + result);
            at<i64>(p.indices)[result] = begin + place;
        }
}

// ── One window per block ──

template <class T, template <class> class Rule> HOST_DEVICE void by_blocks(const Pooling& p) {
    typedef wide<T> W;
    const PoolAxis &rows = p.axes[0], &columns = p.axes[1];
    Rule<T> join;
    u32 windows = rows.output * columns.output;
    for (u32 number = blockIdx.x; number < p.planes * windows; number += gridDim.x) {
        u32 plane = number / windows, i = number - plane * windows;
        Span y = span(p, 0, i / columns.output), x = span(p, 1, i % columns.output);
        const T* image = at<const T>(p.x) + (u64)plane * rows.input * columns.input;
        W total = Rule<T>::start();
        for (u32 tap = threadIdx.x; tap < y.taps * x.taps; tap += BLOCK) {
            u32 r = tap / x.taps, c = tap - r * x.taps;
            u32 place = (y.from + r * rows.dilation) * columns.input + x.from + c * columns.dilation;
            total = join(total, Rule<T>::lift(p, image[place]));
        }
        total = together(total, join);
        if (threadIdx.x == 0) narrow(Rule<T>::finish(p, total, (f32)y.count * (f32)x.count), at<T>(p.y) + number);
    }
}

#define POOLS(kind, T)                                                  \
    KERNEL(pool_max_##kind, Pooling, by_threads<T, Largest>)            \
    KERNEL(pool_place_##kind, Pooling, places<T>)                       \
    COOPERATIVE(pool_large_max_##kind, Pooling, by_blocks<T, Largest>)
#define POOLS_OF_FLOATS(kind, T)                                        \
    POOLS(kind, T)                                                      \
    KERNEL(pool_mean_##kind, Pooling, by_threads<T, Mean>)              \
    KERNEL(pool_norm_##kind, Pooling, by_threads<T, Norm>)              \
    COOPERATIVE(pool_large_mean_##kind, Pooling, by_blocks<T, Mean>)    \
    COOPERATIVE(pool_large_norm_##kind, Pooling, by_blocks<T, Norm>)

POOLS_OF_FLOATS(f16, f16)
POOLS_OF_FLOATS(bf16, bf16)
POOLS_OF_FLOATS(f32, f32)
POOLS_OF_FLOATS(f64, f64)
POOLS(i8, i8)
POOLS(u8, u8)
