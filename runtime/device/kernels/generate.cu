// Tensors generated from a few numbers.
#include "numbers.cuh"

// `y[i] = start + i · delta`; both are passed as integers and as real numbers. Must match `RangeParams` in Rust.
struct RangeOf {
    u64 y;
    i64 start, delta;
    f64 real_start, real_delta;
    u32 count;
};

// Products that are rounded before the addition. A fused multiply-add would give other elements than the CPU.
HOST_DEVICE f32 rounded_product(f32 x, f32 y) { return __fmul_rn(x, y); }
HOST_DEVICE f64 rounded_product(f64 x, f64 y) { return __dmul_rn(x, y); }

template <class T> HOST_DEVICE void real_range(const RangeOf& p) {
    wide<T> start = (wide<T>)p.real_start, delta = (wide<T>)p.real_delta;
    for (u32 i = first(); i < p.count; i += stride())
        narrow(start + rounded_product((wide<T>)i, delta), at<T>(p.y) + i);
}

template <class T> HOST_DEVICE void whole_range(const RangeOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) at<T>(p.y)[i] = (T)((u64)p.start + i * (u64)p.delta);
}

// `y[i, i + k] = one` in a matrix of `columns` columns, 0 elsewhere. Must match `EyeParams` in Rust.
struct EyeOf {
    u64 y, one;
    i64 k;
    u32 count, columns;
};

template <class T> HOST_DEVICE void eye(const EyeOf& p) {
    for (u32 i = first(); i < p.count; i += stride())
        at<T>(p.y)[i] = i % p.columns == i / p.columns + p.k ? (T)p.one : T(0);
}

// `y[o, d, j] = on` if `indices[o, j]` is `d` or `d - depth`, else `off`. Indices are `[outer, inner]` of the type
// `index`, values are `[off, on]`, and Y is `[outer, depth, inner]`. Must match `OneHotParams` in Rust.
struct OneHotOf {
    u64 indices, values, y;
    Fault fault;
    u32 count, depth, inner, index;
};

// Fractions are cut off. An integer that 64 signed bits do not hold is a fault of the index at `place`.
struct ToClass {
    const OneHotOf& p;
    u32 place;
    template <class S> HOST_DEVICE i64 operator()(S x) const { return (i64)x; }
    HOST_DEVICE i64 operator()(u64 x) const {
        if (x >> 63) report(p.fault, place, (i64)x);
        return x >> 63 ? (i64)p.depth : (i64)x;
    }
    // A number far out of range is not a class; NaN counts as 0.
    HOST_DEVICE i64 operator()(f64 x) const { return fabs(x) < 1e15 ? (i64)x : x != x ? 0 : (i64)p.depth; }
    HOST_DEVICE i64 operator()(f32 x) const { return (*this)((f64)x); }
};

template <class T> HOST_DEVICE void one_hot(const OneHotOf& p) {
    const T* values = at<const T>(p.values);
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 row = i / p.inner, outer = row / p.depth, place = outer * p.inner + i % p.inner;
        i64 index = element(p.index, p.indices, place, ToClass{p, place});
        if (index < 0) index += p.depth;
        at<T>(p.y)[i] = values[index == row - outer * p.depth];
    }
}

KERNEL(range_f16, RangeOf, real_range<f16>)
KERNEL(range_bf16, RangeOf, real_range<bf16>)
KERNEL(range_f32, RangeOf, real_range<f32>)
KERNEL(range_f64, RangeOf, real_range<f64>)
KERNEL(range_i16, RangeOf, whole_range<i16>)
KERNEL(range_i32, RangeOf, whole_range<i32>)
KERNEL(range_i64, RangeOf, whole_range<i64>)
KERNEL(eye_u8, EyeOf, eye<u8>)
KERNEL(eye_u16, EyeOf, eye<u16>)
KERNEL(eye_u32, EyeOf, eye<u32>)
KERNEL(eye_u64, EyeOf, eye<u64>)
KERNEL(one_hot_u8, OneHotOf, one_hot<u8>)
KERNEL(one_hot_u16, OneHotOf, one_hot<u16>)
KERNEL(one_hot_u32, OneHotOf, one_hot<u32>)
KERNEL(one_hot_u64, OneHotOf, one_hot<u64>)
