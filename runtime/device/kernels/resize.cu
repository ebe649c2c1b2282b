// Resampling along one or two axes: each element of Y is an element of X, or a weighted sum of elements of X.
#include "device.cuh"

// X is [outer, source[0], middle, source[1], inner], and Y is [outer, size[0], middle, size[1], inner]. For both axes,
// `places` and `weights` are [taps, size]: the indices of X that contribute to an index of Y.
struct Resize {
    u64 x, y;
    u64 places[2], weights[2];
    u32 source[2], size[2], taps[2];
    u32 middle, inner, count;
    // Whether integers are rounded, half up, instead of truncated.
    u32 rounded;
    // The value outside X: the bits of an element, or the value of a sum.
    u64 fill;
    f32 value;
    u32 padding;
};

// The first index of an output that is outside X.
const u32 NOWHERE = 0xffffffffu;

// The position of an element of Y.
struct Position {
    u32 outer, row, middle, column, inner;
};

HOST_DEVICE u32 split(u32* rest, u32 size) {
    u32 whole = *rest / size, part = *rest - whole * size;
    *rest = whole;
    return part;
}

HOST_DEVICE Position position(const Resize& p, u32 i) {
    Position to;
    to.inner = split(&i, p.inner);
    to.column = split(&i, p.size[1]);
    to.middle = split(&i, p.middle);
    to.row = split(&i, p.size[0]);
    to.outer = i;
    return to;
}

HOST_DEVICE u32 source(const Resize& p, const Position& to, u32 row, u32 column) {
    return (((to.outer * p.source[0] + row) * p.middle + to.middle) * p.source[1] + column) * p.inner + to.inner;
}

HOST_DEVICE u32 place(const Resize& p, u32 axis, u32 tap, u32 i) {
    return at<const u32>(p.places[axis])[tap * p.size[axis] + i];
}

template <class T> HOST_DEVICE void take(const Resize& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        Position to = position(p, i);
        u32 row = place(p, 0, 0, to.row), column = place(p, 1, 0, to.column);
        bool outside = row == NOWHERE || column == NOWHERE;
        at<T>(p.y)[i] = outside ? (T)p.fill : at<const T>(p.x)[source(p, to, row, column)];
    }
}

HOST_DEVICE f32 fused(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
HOST_DEVICE f64 fused(f64 a, f64 b, f64 c) { return fma(a, b, c); }

// Converts a sum to an element. Integers saturate; NaN gives 0.
HOST_DEVICE void put(f32 x, bool, f32* y) { *y = x; }
HOST_DEVICE void put(f32 x, bool, f16* y) { narrow(x, y); }
HOST_DEVICE void put(f32 x, bool, bf16* y) { narrow(x, y); }
HOST_DEVICE void put(f64 x, bool, f64* y) { *y = x; }
template <class T> HOST_DEVICE void put(f64 x, bool rounded, T* y) {
    const bool is_signed = (T)-1 < (T)0;
    const f64 range = (f64)(1ull << (8 * sizeof(T) - is_signed));
    const f64 low = is_signed ? -range : 0, high = range - 1;
    if (rounded) x = floor(x + 0.5);
    *y = x != x ? (T)0 : x <= low ? (T)low : x >= high ? (T)high : (T)x;
}

// Sums along the last axis, then sums of those, in R: the same bits as on the CPU.
template <class T, class R> HOST_DEVICE void resample(const Resize& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        Position to = position(p, i);
        R sum = 0;
        for (u32 a = 0; a < p.taps[0]; a++) {
            u32 row = place(p, 0, a, to.row);
            if (row == NOWHERE) break;
            R line = 0;
            for (u32 b = 0; b < p.taps[1]; b++) {
                u32 column = place(p, 1, b, to.column);
                if (column == NOWHERE) break;
                R x = widen(at<const T>(p.x)[source(p, to, row, column)]);
                line = fused(x, at<const R>(p.weights[1])[b * p.size[1] + to.column], line);
            }
            sum = fused(line, at<const R>(p.weights[0])[a * p.size[0] + to.row], sum);
        }
        if (place(p, 0, 0, to.row) == NOWHERE || place(p, 1, 0, to.column) == NOWHERE) sum = p.value;
        put(sum, p.rounded != 0, at<T>(p.y) + i);
    }
}

KERNEL(take_u8, Resize, take<u8>)
KERNEL(take_u16, Resize, take<u16>)
KERNEL(take_u32, Resize, take<u32>)
KERNEL(take_u64, Resize, take<u64>)
KERNEL(resample_f16, Resize, resample<f16, f32>)
KERNEL(resample_bf16, Resize, resample<bf16, f32>)
KERNEL(resample_f32, Resize, resample<f32, f32>)
KERNEL(resample_f64, Resize, resample<f64, f64>)
KERNEL(resample_i8, Resize, resample<i8, f64>)
KERNEL(resample_u8, Resize, resample<u8, f64>)
KERNEL(resample_i16, Resize, resample<i16, f64>)
KERNEL(resample_u16, Resize, resample<u16, f64>)
KERNEL(resample_i32, Resize, resample<i32, f64>)
KERNEL(resample_u32, Resize, resample<u32, f64>)
