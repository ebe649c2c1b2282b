// Converts elements to another type.
#include "minifloat.cuh"
#include "numbers.cuh"

// `count` elements of the type `from`, or of a minifloat format. Y has the kernel's type, or such a format. Must match
// `CastParams` in Rust.
struct CastOf {
    u64 x, y;
    u32 count, from;
    // The number of high bits that a small integer lacks.
    u32 shift;
    u32 is_mini;
    MiniFormat decoder, encoder;
    u32 saturates, round;
};

template <class T, class Convert> HOST_DEVICE void convert(const CastOf& p, Convert to) {
    for (u32 i = first(); i < p.count; i += stride())
        at<T>(p.y)[i] = p.is_mini ? to(decoded(p.decoder, at<const u8>(p.x)[i])) : element(p.from, p.x, i, to);
}

template <class T> HOST_DEVICE void cast_to(const CastOf& p) { convert<T>(p, To<T>()); }

template <class T> struct ToLow {
    u32 shift;
    template <class S> HOST_DEVICE T operator()(S x) const { return (T)((T)((u32)To<T>()(x) << shift) >> shift); }
};
template <class T> HOST_DEVICE void cast_low(const CastOf& p) { convert<T>(p, ToLow<T>{p.shift}); }

struct ToTruth {
    template <class S> HOST_DEVICE u8 operator()(S x) const { return x != 0; }
};
HOST_DEVICE void cast_truth(const CastOf& p) { convert<u8>(p, ToTruth()); }

struct ToMini {
    const CastOf& p;
    template <class S> HOST_DEVICE u8 operator()(S x) const { return encoded(p.encoder, (f32)x, p.saturates, p.round); }
};
HOST_DEVICE void cast_encoded(const CastOf& p) { convert<u8>(p, ToMini{p}); }

KERNEL(cast_bool, CastOf, cast_truth)
KERNEL(cast_mini, CastOf, cast_encoded)
KERNEL(cast_i8, CastOf, cast_low<i8>)
KERNEL(cast_u8, CastOf, cast_low<u8>)
KERNEL(cast_i16, CastOf, cast_to<i16>)
KERNEL(cast_u16, CastOf, cast_to<u16>)
KERNEL(cast_i32, CastOf, cast_to<i32>)
KERNEL(cast_u32, CastOf, cast_to<u32>)
KERNEL(cast_i64, CastOf, cast_to<i64>)
KERNEL(cast_u64, CastOf, cast_to<u64>)
KERNEL(cast_f16, CastOf, cast_to<f16>)
KERNEL(cast_bf16, CastOf, cast_to<bf16>)
KERNEL(cast_f32, CastOf, cast_to<f32>)
KERNEL(cast_f64, CastOf, cast_to<f64>)
