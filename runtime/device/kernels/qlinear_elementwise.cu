// Elementwise functions of 8-bit codes, and their means over images. Each operation is rounded separately, as on the
// CPU.
#include "device.cuh"

enum PairFunction : u32 { AddCodes, MulCodes };

// Codes of A and B, with one scale and one zero point each, and the result with its scale and zero point.
struct Pairs {
    u64 a, b, y, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero;
    u32 count, function;
    // Whether both operands have the result's shape.
    u32 aligned;
    u32 a_signed, b_signed, y_signed;
    i32 low, high;
    Dims dims;
    Strides a_strides, b_strides;
    u32 padding;
};
struct LookUp {
    u64 x, table, y;
    u32 count, padding;
};
// X [images, rows, channels], Y [images, channels].
struct Mean {
    u64 x, y, scale, x_zero, y_zero;
    u32 images, rows, channels, x_signed, y_signed, padding;
};

HOST_DEVICE i32 code(u64 address, i64 i, u32 is_signed) {
    return is_signed ? (i32)at<const i8>(address)[i] : (i32)at<const u8>(address)[i];
}

// The bits of a quotient's code; NaN gives the smallest code.
HOST_DEVICE u8 saturated(f32 x, i32 zero, i32 lowest, i32 highest) {
    f32 low = (f32)(lowest - zero), high = (f32)(highest - zero);
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (u8)((i32)rintf(x) + zero);
}

HOST_DEVICE void pairs(const Pairs& p) {
    f32 a_scale = *at<const f32>(p.a_scale), b_scale = *at<const f32>(p.b_scale), y_scale = *at<const f32>(p.y_scale);
    i32 a_zero = code(p.a_zero, 0, p.a_signed), b_zero = code(p.b_zero, 0, p.b_signed);
    i32 y_zero = code(p.y_zero, 0, p.y_signed);
    for (u32 i = first(); i < p.count; i += stride()) {
        i64 at_a = p.aligned ? i : offset(p.dims, p.a_strides, i), at_b = p.aligned ? i : offset(p.dims, p.b_strides, i);
        f32 a = __fmul_rn((f32)(code(p.a, at_a, p.a_signed) - a_zero), a_scale);
        f32 b = __fmul_rn((f32)(code(p.b, at_b, p.b_signed) - b_zero), b_scale);
        f32 both = p.function == AddCodes ? __fadd_rn(a, b) : __fmul_rn(a, b);
        at<u8>(p.y)[i] = saturated(both / y_scale, y_zero, p.low, p.high);
    }
}

HOST_DEVICE void look_up(const LookUp& p) {
    for (u32 i = first(); i < p.count; i += stride()) at<u8>(p.y)[i] = at<const u8>(p.table)[at<const u8>(p.x)[i]];
}

// A block processes 32 channels of an image; each warp processes every eighth row.
HOST_DEVICE void mean(const Mean& p) {
    const u32 WIDTH = 32, HEIGHT = BLOCK / WIDTH;
    __shared__ i64 sums[HEIGHT][WIDTH];
    u32 across = (p.channels + WIDTH - 1) / WIDTH, lane = threadIdx.x % WIDTH, line = threadIdx.x / WIDTH;
    i32 x_zero = code(p.x_zero, 0, p.x_signed), y_zero = code(p.y_zero, 0, p.y_signed);
    for (u32 piece = blockIdx.x; piece < p.images * across; piece += gridDim.x) {
        u32 image = piece / across, channel = piece % across * WIDTH + lane;
        i64 sum = 0;
        for (u32 row = line; row < p.rows && channel < p.channels; row += HEIGHT)
            sum += code(p.x, (i64)(image * p.rows + row) * p.channels + channel, p.x_signed) - x_zero;
        sums[line][lane] = sum;
        __syncthreads();
        if (line == 0 && channel < p.channels) {
            for (u32 other = 1; other < HEIGHT; other++) sum += sums[other][lane];
            f32 x = (f32)sum / __fmul_rn((f32)p.rows, *at<const f32>(p.scale));
            u8 bits = saturated(x, y_zero, p.y_signed ? -128 : 0, p.y_signed ? 127 : 255);
            at<u8>(p.y)[image * p.channels + channel] = bits;
        }
        __syncthreads();
    }
}

KERNEL(qlinear_pairs, Pairs, pairs)
KERNEL(look_up_codes, LookUp, look_up)
COOPERATIVE(qlinear_mean, Mean, mean)
