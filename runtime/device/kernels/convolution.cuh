// The operands of a convolution of images `[N, C, H, W]`, or of a transposed one.
#pragma once
#include "functions.cuh"

struct Convolution {
    // `bias` may be 0. `partial` holds sums [parts, N, O, H', W'] over parts of the depth, which `finish` adds.
    u64 x, w, bias, y, partial;
    // `channels` and `outputs` are per group.
    u32 batch, groups, channels, outputs, parts, transposed;
    // For the axes H and W. `apart` is the distance of taps that contribute to the same output of a transposed
    // convolution.
    i32 input[2], output[2], kernel[2], stride[2], dilation[2], before[2], apart[2];
    // The limits of the result.
    f32 low, high;
};

// The windows along an axis: window `q` gives output `at + q · every`. Its tap `k` reads input
// `first + q · step + k · reach`, and has the weight `tap + k · next`.
struct Axis {
    i32 windows, at, every, first, step, taps, reach, tap, next;
};

// A transposed convolution is a plain one for each residue `rest`, the output's position modulo the stride.
HOST_DEVICE Axis axis_of(const Convolution& p, u32 a, i32 rest) {
    i32 kernel = p.kernel[a], stride = p.stride[a], dilation = p.dilation[a];
    if (!p.transposed) return {p.output[a], 0, 1, -p.before[a], stride, kernel, dilation, 0, 1};
    i32 next = p.apart[a], tap = 0, some = kernel < next ? kernel : next;
    while (tap < some && (rest + p.before[a] - tap * dilation) % stride != 0) tap++;
    i32 taps = tap < some ? (kernel - tap - 1) / next + 1 : 0;
    i32 first = taps ? (rest + p.before[a] - tap * dilation) / stride : 0;
    i32 windows = rest < p.output[a] ? (p.output[a] - rest - 1) / stride + 1 : 0;
    return {windows, rest, stride, first, 1, taps, -(i32)((i64)next * dilation / stride), tap, next};
}

// The number of residues that have outputs.
HOST_DEVICE i32 rests(const Convolution& p, u32 a) {
    if (!p.transposed) return 1;
    return p.stride[a] < p.output[a] ? p.stride[a] : p.output[a];
}

// The windows of one residue along both axes.
struct Windows {
    Axis rows, columns;
    HOST_DEVICE Windows(const Convolution& p, u32 number)
        : rows(axis_of(p, 0, number / rests(p, 1))), columns(axis_of(p, 1, number % rests(p, 1))) {}
    HOST_DEVICE u32 count() const { return (u32)rows.windows * columns.windows; }
    HOST_DEVICE u32 taps() const { return (u32)rows.taps * columns.taps; }
};

HOST_DEVICE u32 plane_of_input(const Convolution& p) { return (u32)p.input[0] * p.input[1]; }
HOST_DEVICE u32 plane_of_output(const Convolution& p) { return (u32)p.output[0] * p.output[1]; }
HOST_DEVICE u32 window_of(const Convolution& p) { return (u32)p.kernel[0] * p.kernel[1]; }
HOST_DEVICE bool inside(i32 index, i32 size) { return (u32)index < (u32)size; }

// The offset of a tap's weight in a group's weights, for output 0. The stride of outputs is `weights_apart`.
HOST_DEVICE u32 weight_of(const Convolution& p, const Windows& windows, u32 channel, i32 i, i32 j) {
    u32 row = windows.rows.tap + i * windows.rows.next, column = windows.columns.tap + j * windows.columns.next;
    return channel * (p.transposed ? p.outputs : 1) * window_of(p) + row * p.kernel[1] + column;
}
HOST_DEVICE u32 weights_apart(const Convolution& p) { return (p.transposed ? 1 : p.channels) * window_of(p); }
HOST_DEVICE u32 weights_of_group(const Convolution& p) { return p.channels * p.outputs * window_of(p); }

// Stores a sum, with the bias of an output (counted over all groups), within the limits.
template <class T> HOST_DEVICE void write(const Convolution& p, wide<T> sum, u32 output, u32 place) {
    if (p.bias) sum += widen(at<const T>(p.bias)[output]);
    narrow(clip(sum, (wide<T>)p.low, (wide<T>)p.high), at<T>(p.y) + place);
}
