// Powers in the type of the base. Powers of integers are exact and wrap around; all others are computed in double
// precision and rounded once.
#include "broadcast.cuh"
#include "numbers.cuh"

// A negative exponent maps 1 and -1 to a power of themselves, and other bases, including 0, to 0. Exponent 0 gives 1.
template <class T> HOST_DEVICE T whole_power(T x, i64 exponent) {
    u64 base = (u64)x, rest = exponent < 0 ? 0 - (u64)exponent : (u64)exponent, power = 1;
    bool is_unit = x == 1 || (T(-1) < T(0) && x == T(-1));
    if (exponent < 0 && !is_unit) base = 0;
    for (; rest > 0; rest >>= 1) {
        if (rest & 1) power *= base;
        base *= base;
    }
    return (T)power;
}

// Most powers are squares.
HOST_DEVICE f64 real_power(f64 x, f64 exponent) { return exponent == 2 ? x * x : pow(x, exponent); }

template <class T> HOST_DEVICE void real_powers(const BinaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        f64 x = (f64)widen(at<const T>(p.x)[place(p.dims, p.of_x, i)]);
        f64 exponent = element(p.exponent, p.y, place(p.dims, p.of_y, i), To<f64>());
        at<T>(p.z)[i] = To<T>()(real_power(x, exponent));
    }
}

template <class T> HOST_DEVICE void whole_powers(const BinaryOf& p) {
    if (p.exponent >= OfU64) return real_powers<T>(p);
    for (u32 i = first(); i < p.count; i += stride()) {
        T x = at<const T>(p.x)[place(p.dims, p.of_x, i)];
        i64 exponent = element(p.exponent, p.y, place(p.dims, p.of_y, i), To<i64>());
        at<T>(p.z)[i] = whole_power(x, exponent);
    }
}

KERNEL(power_f16, BinaryOf, real_powers<f16>)
KERNEL(power_bf16, BinaryOf, real_powers<bf16>)
KERNEL(power_f32, BinaryOf, real_powers<f32>)
KERNEL(power_f64, BinaryOf, real_powers<f64>)
KERNEL(power_i8, BinaryOf, whole_powers<i8>)
KERNEL(power_i16, BinaryOf, whole_powers<i16>)
KERNEL(power_i32, BinaryOf, whole_powers<i32>)
KERNEL(power_i64, BinaryOf, whole_powers<i64>)
KERNEL(power_u8, BinaryOf, whole_powers<u8>)
KERNEL(power_u16, BinaryOf, whole_powers<u16>)
KERNEL(power_u32, BinaryOf, whole_powers<u32>)
KERNEL(power_u64, BinaryOf, whole_powers<u64>)
