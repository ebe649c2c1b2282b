// Linear quantization and dequantization. Each operation is rounded separately, as on the CPU.
#include "numbers.cuh"

// The scale of an element of X [outer, size, inner]. If blocked, each position along `inner` has its own scale, shared
// by `block` consecutive rows of `size`.
struct Spread {
    u32 inner, size, block, blocks, blocked;
};
struct Quantize {
    u64 x, scale, zero, y;
    u32 count, number, scale_number;
    // The type to whose precision a quotient is rounded.
    u32 precision;
    i32 low, high;
    Spread spread;
    u32 padding;
};
struct Dequantize {
    u64 x, scale, zero, y;
    u32 count, scale_number, number;
    Spread spread;
};
struct Range {
    u64 x, ends, scale, zero;
    u32 count, blocks;
};

// Reads a number that is not a code; it has one of four types.
HOST_DEVICE f32 number(u32 type, u64 address, u32 i) {
    switch (type) {
        case OfF16: return widen(at<const f16>(address)[i]);
        case OfBf16: return widen(at<const bf16>(address)[i]);
        case OfI32: return (f32)at<const i32>(address)[i];
        default: return at<const f32>(address)[i];
    }
}

HOST_DEVICE f32 rounded(u32 precision, f32 x) {
    switch (precision) {
        case OfF16: return widen(narrowed<f16>(x));
        case OfBf16: return widen(narrowed<bf16>(x));
        default: return x;
    }
}

HOST_DEVICE u32 scale_of(const Spread& p, u32 i) {
    u32 row = i / p.inner, place = row % p.size;
    if (!p.blocked) return place;
    return (row / p.size * p.blocks + place / p.block) * p.inner + (i - row * p.inner);
}

// Returns a zero point, converted to 32 bits.
template <class T> HOST_DEVICE i32 zero_point(u64 address, u32 i) {
    if (!address) return 0;
    f32 zero = (f32)at<const T>(address)[i];
    return zero >= 2147483648.0f ? 2147483647 : (i32)zero;
}

template <class T> HOST_DEVICE void quantize(const Quantize& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 at_scale = scale_of(p.spread, i);
        i32 zero = zero_point<T>(p.zero, at_scale);
        f32 low = (f32)(p.low - zero), high = (f32)(p.high - zero);
        f32 code = rintf(rounded(p.precision, number(p.number, p.x, i) / number(p.scale_number, p.scale, at_scale)));
        // NaN gives the smallest code.
        code = code > low ? code : low;
        code = code < high ? code : high;
        at<T>(p.y)[i] = (T)((i32)code + zero);
    }
}

template <class T> HOST_DEVICE void dequantize(const Dequantize& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 at_scale = scale_of(p.spread, i);
        i32 code = (i32)((u32)(i32)at<const T>(p.x)[i] - (u32)zero_point<T>(p.zero, at_scale));
        f32 x = (f32)code * number(p.scale_number, p.scale, at_scale);
        switch (p.number) {
            case OfF16: at<f16>(p.y)[i] = narrowed<f16>(x); break;
            case OfBf16: at<bf16>(p.y)[i] = narrowed<bf16>(x); break;
            default: at<f32>(p.y)[i] = x;
        }
    }
}

// Writes the minimum and the maximum of each block's elements and 0 to `ends`; ignores NaN.
HOST_DEVICE void find_range(const Range& p) {
    f32 low = 0, high = 0;
    for (u32 i = first(); i < p.count; i += stride()) {
        f32 x = at<const f32>(p.x)[i];
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    low = together(low, Less{});
    high = together(high, Greater{});
    if (threadIdx.x == 0) {
        at<f32>(p.ends)[2 * blockIdx.x] = low;
        at<f32>(p.ends)[2 * blockIdx.x + 1] = high;
    }
}

// Computes the scale and the zero point of a range; runs as one block.
HOST_DEVICE void find_scale(const Range& p) {
    f32 low = 0, high = 0;
    for (u32 i = threadIdx.x; i < p.blocks; i += blockDim.x) {
        low = fminf(low, at<const f32>(p.ends)[2 * i]);
        high = fmaxf(high, at<const f32>(p.ends)[2 * i + 1]);
    }
    low = together(low, Less{});
    high = together(high, Greater{});
    if (threadIdx.x != 0) return;
    f32 scale = high == low ? 1.0f : (high - low) / 255.0f;
    f32 zero = -low / scale;
    zero = zero > 0 ? zero : 0;
    zero = zero < 255 ? zero : 255;
    *at<f32>(p.scale) = scale;
    *at<u8>(p.zero) = (u8)rintf(zero);
}

KERNEL(quantize_i8, Quantize, quantize<i8>)
KERNEL(quantize_u8, Quantize, quantize<u8>)
KERNEL(quantize_i16, Quantize, quantize<i16>)
KERNEL(quantize_u16, Quantize, quantize<u16>)
KERNEL(dequantize_i8, Dequantize, dequantize<i8>)
KERNEL(dequantize_u8, Dequantize, dequantize<u8>)
KERNEL(dequantize_i16, Dequantize, dequantize<i16>)
KERNEL(dequantize_u16, Dequantize, dequantize<u16>)
KERNEL(dequantize_i32, Dequantize, dequantize<i32>)
COOPERATIVE(range, Range, find_range)
COOPERATIVE(range_scale, Range, find_scale)
