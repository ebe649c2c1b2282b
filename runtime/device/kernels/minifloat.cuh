// Floating-point numbers of 8 and 4 bits, with the rules of runtime/descriptors/src/minifloat.rs.
#pragma once
#include "device.cuh"

// How a format stores values that are not finite: infinities and NaNs with the largest exponent; NaN as all bits except
// the sign; NaN as negative zero; not at all. `Scale` is `float8_e8m0fnu`, a power of two without a sign.
enum Special : u32 { Ieee, AllOnes, NegativeZero, Finite, Scale };

// A format. From the highest bit: sign, exponent, mantissa. Must match `Format` in Rust.
struct MiniFormat {
    u32 exponent, mantissa;
    i32 bias;
    u32 special;
    HOST_DEVICE u32 sign() const { return 1u << (exponent + mantissa); }
    // The code of the largest finite number.
    HOST_DEVICE u32 largest() const {
        u32 all = sign() - 1;
        return special == Ieee ? all - (1u << mantissa) : special == AllOnes ? all - 1 : all;
    }
    HOST_DEVICE u32 nan() const {
        if (special == NegativeZero || special == Finite) return sign();
        return special == Ieee ? sign() - (1u << (mantissa - 1)) : sign() - 1;
    }
};

HOST_DEVICE f32 decoded(const MiniFormat& f, u32 code) {
    if (f.special == Scale) return code == 255 ? NAN : (f32)ldexp(1.0, (i32)code - 127);
    u32 magnitude = code & (f.sign() - 1);
    bool is_negative = code & f.sign();
    if (f.special == NegativeZero && is_negative && magnitude == 0) return NAN;
    f32 value = NAN;
    if (magnitude <= f.largest()) {
        u32 exponent = magnitude >> f.mantissa, digits = magnitude & ((1u << f.mantissa) - 1);
        if (exponent > 0) digits += 1u << f.mantissa;
        value = ldexp((f32)digits, (i32)(exponent > 0 ? exponent : 1) - f.bias - (i32)f.mantissa);
    } else if (f.special == Ieee && magnitude == f.largest() + 1) {
        value = INFINITY;
    }
    return is_negative ? -value : value;
}

// The code of a finite number's magnitude for an unlimited range of exponents; ties to even.
HOST_DEVICE u32 nearest_code(const MiniFormat& f, f32 x) {
    i32 smallest = 1 - f.bias, exponent = (i32)(__float_as_uint(x) >> 23) - 127;
    if (exponent < smallest) exponent = smallest;
    u32 steps = (u32)rint(ldexp((f64)x, (i32)f.mantissa - exponent)), normal = 1u << f.mantissa;
    return steps < normal ? steps : ((u32)(exponent - smallest + 1) << f.mantissa) + (steps - normal);
}

// How `Scale` rounds: to the next power of two, the previous one, or the nearest with ties up.
enum ScaleRound : u32 { RoundUp, RoundDown, RoundNearest };

HOST_DEVICE u8 scale_code(f32 x, bool saturates, u32 round) {
    bool is_infinite = fabs(x) == INFINITY;
    if (x != x || (!saturates && (is_infinite || x == 0))) return 255;
    if (is_infinite) return 254;
    if (x == 0) return 0;
    i32 exponent;
    f64 part = frexp(fabs((f64)x), &exponent);
    bool is_up = round == RoundUp ? part > 0.5 : round == RoundNearest && part >= 0.75;
    exponent += is_up ? 0 : -1;
    if (exponent > 127) return saturates ? 254 : 255;
    if (exponent < -127) return saturates ? 0 : 255;
    return (u8)(exponent + 127);
}

HOST_DEVICE u8 encoded(const MiniFormat& f, f32 x, bool saturates, u32 round) {
    if (f.special == Scale) return scale_code(x, saturates, round);
    u32 sign = __float_as_uint(x) >> 31 ? f.sign() : 0;
    if (x != x) return f.special == NegativeZero ? f.nan() : f.nan() | sign;
    u32 code = fabs(x) == INFINITY ? ~0u : nearest_code(f, fabs(x)), magnitude = f.nan();
    if (code <= f.largest()) {
        magnitude = code;
    } else if (saturates || f.special == Finite) {
        magnitude = f.largest();
    } else if (f.special == Ieee) {
        magnitude = f.largest() + 1;
    } else if (f.special == NegativeZero) {
        return f.nan();
    }
    return f.special == NegativeZero && magnitude == 0 ? 0 : magnitude | sign;
}
