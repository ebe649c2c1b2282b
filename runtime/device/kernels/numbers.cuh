// Elements whose type is known only at run time, and their conversion to other types, with the rules of
// runtime/descriptors/src/cast.rs.
#pragma once
#include "device.cuh"

// Must match `number` in numbers.rs. Booleans are 0 and 1 of `OfU8`.
enum Number : u32 { OfI8, OfI16, OfI32, OfI64, OfU8, OfU16, OfU32, OfU64, OfF16, OfBf16, OfF32, OfF64 };

// Calls `use` with element `i` of a tensor of type `number`; widens 16-bit floating point.
template <class Use> HOST_DEVICE auto element(u32 number, u64 address, i64 i, Use use) -> decltype(use(0.f)) {
    switch (number) {
        case OfI8: return use(at<const i8>(address)[i]);
        case OfI16: return use(at<const i16>(address)[i]);
        case OfI32: return use(at<const i32>(address)[i]);
        case OfI64: return use(at<const i64>(address)[i]);
        case OfU8: return use(at<const u8>(address)[i]);
        case OfU16: return use(at<const u16>(address)[i]);
        case OfU32: return use(at<const u32>(address)[i]);
        case OfU64: return use(at<const u64>(address)[i]);
        case OfF16: return use(widen(at<const f16>(address)[i]));
        case OfBf16: return use(widen(at<const bf16>(address)[i]));
        case OfF32: return use(at<const f32>(address)[i]);
        default: return use(at<const f64>(address)[i]);
    }
}

namespace {

// Integers keep their low bits. Floating point is truncated. A number out of range gives the result of x86's
// conversion: the smallest integer of the width.
template <class S> HOST_DEVICE i32 to_i32(S x) { return (i32)x; }
HOST_DEVICE i32 to_i32(f64 x) { return x > -2147483649.0 && x < 2147483648.0 ? (i32)x : (i32)0x80000000u; }
HOST_DEVICE i32 to_i32(f32 x) { return to_i32((f64)x); }

template <class S> HOST_DEVICE i64 to_i64(S x) { return (i64)x; }
HOST_DEVICE i64 to_i64(f64 x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (i64)x : (i64)(1ull << 63);
}
HOST_DEVICE i64 to_i64(f32 x) { return to_i64((f64)x); }

// A number of 2⁶⁴ or more saturates; NaN gives 0.
template <class S> HOST_DEVICE u64 to_u64(S x) { return (u64)x; }
HOST_DEVICE u64 to_u64(f64 x) {
    if (x < 9223372036854775808.0) return (u64)to_i64(x);
    if (x != x) return 0;
    return x < 18446744073709551616.0 ? (u64)x : ~0ull;
}
HOST_DEVICE u64 to_u64(f32 x) { return to_u64((f64)x); }

// Rounds to odd. Rounding the result again, to 16 bits, gives the same as rounding `x` directly.
HOST_DEVICE f32 to_odd(f64 x) {
    f32 near = (f32)x;
    if (near != near || fabs(near) == INFINITY || (f64)near == x) return near;
    u32 beyond = fabs((f64)near) > fabs(x);
    return __uint_as_float((__float_as_uint(near) - beyond) | 1);
}
template <class S> HOST_DEVICE f32 before_16_bits(S x) { return to_odd((f64)x); }
HOST_DEVICE f32 before_16_bits(f32 x) { return x; }

// Converts an element of another type to T.
template <class T> struct To {
    template <class S> HOST_DEVICE T operator()(S x) const { return (T)to_i32(x); }
};
template <> struct To<u32> {
    template <class S> HOST_DEVICE u32 operator()(S x) const { return (u32)to_i64(x); }
};
template <> struct To<i64> {
    template <class S> HOST_DEVICE i64 operator()(S x) const { return to_i64(x); }
};
template <> struct To<u64> {
    template <class S> HOST_DEVICE u64 operator()(S x) const { return to_u64(x); }
};
template <> struct To<f16> {
    template <class S> HOST_DEVICE f16 operator()(S x) const { return narrowed<f16>(before_16_bits(x)); }
};
template <> struct To<bf16> {
    template <class S> HOST_DEVICE bf16 operator()(S x) const { return narrowed<bf16>(before_16_bits(x)); }
};
template <> struct To<f32> {
    template <class S> HOST_DEVICE f32 operator()(S x) const { return (f32)x; }
};
template <> struct To<f64> {
    template <class S> HOST_DEVICE f64 operator()(S x) const { return (f64)x; }
};

}  // namespace
