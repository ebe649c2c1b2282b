// Selections between elements.
#include "broadcast.cuh"

// `z[i] = condition ? x : y` for `count` elements. Z may be X or Y if that operand has the result's shape. Must match
// `WhereParams` in Rust.
struct WhereOf {
    u64 condition, x, y, z;
    u32 count;
    Dims dims;
    Strides of_condition, of_x, of_y;
};

template <class T> HOST_DEVICE void choose(const WhereOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        bool holds = at<const u8>(p.condition)[place(p.dims, p.of_condition, i)];
        at<T>(p.z)[i] = holds ? at<const T>(p.x)[place(p.dims, p.of_x, i)] : at<const T>(p.y)[place(p.dims, p.of_y, i)];
    }
}

// `y = min(max(x, low), high)`. A bound with address 0 is absent. Y may be X. Must match `ClipParams` in Rust.
struct ClipOf {
    u64 x, low, high, y;
    u32 count;
};

// NaN in X stays NaN; a NaN bound has no effect.
template <class T> HOST_DEVICE void bound(const ClipOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        T y = at<const T>(p.x)[i];
        if (p.low && widen(*at<const T>(p.low)) > widen(y)) y = *at<const T>(p.low);
        if (p.high && widen(*at<const T>(p.high)) < widen(y)) y = *at<const T>(p.high);
        at<T>(p.y)[i] = y;
    }
}

KERNEL(where_u8, WhereOf, choose<u8>)
KERNEL(where_u16, WhereOf, choose<u16>)
KERNEL(where_u32, WhereOf, choose<u32>)
KERNEL(where_u64, WhereOf, choose<u64>)
KERNEL(clip_f16, ClipOf, bound<f16>)
KERNEL(clip_bf16, ClipOf, bound<bf16>)
KERNEL(clip_f32, ClipOf, bound<f32>)
KERNEL(clip_f64, ClipOf, bound<f64>)
KERNEL(clip_i8, ClipOf, bound<i8>)
KERNEL(clip_i16, ClipOf, bound<i16>)
KERNEL(clip_i32, ClipOf, bound<i32>)
KERNEL(clip_i64, ClipOf, bound<i64>)
KERNEL(clip_u8, ClipOf, bound<u8>)
KERNEL(clip_u16, ClipOf, bound<u16>)
KERNEL(clip_u32, ClipOf, bound<u32>)
KERNEL(clip_u64, ClipOf, bound<u64>)
