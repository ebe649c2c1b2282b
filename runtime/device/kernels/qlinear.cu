// Convolutions and matrix products of 8-bit codes, with wrapping 32-bit sums. The products are of `i8`, four at a time:
// `u8` bytes and their zero points are shifted by -128. With shifted w and x, and K terms, Σ (x − x₀)(w − w₀) = Σ x·w −
// w₀·Σ x − x₀·(Σ w − K·w₀).
#include "device.cuh"

// W as given, and packed: `[outputs, taps, quads]`, where a quad holds four channels, and channels beyond the last are
// 0. `sums` holds the sum of each output's weights.
struct Pack {
    u64 w, packed, sums;
    u32 outputs, taps, channels, quads;
    // The strides of W in bytes: of outputs, channels and taps.
    u32 next_output, next_channel, next_tap;
    u32 flip;
};

// The type of the result.
enum Sink : u32 { Sums, Floats, Codes };

// A convolution with `rows` windows in total. Channels, outputs and taps are per group.
struct QLinear {
    u64 x, w, sums, y;
    u64 x_zero, w_zero, scale, y_zero, bias;
    // The strides of images, channels, rows and columns, in elements.
    u32 x_image, x_channel, x_row, x_column, y_image, y_channel, y_pixel;
    // The number of windows in total, per image, and per row of an image.
    u32 rows, pixels, columns;
    u32 groups, outputs, channels, quads;
    u32 kernel[2], input[2], step[2], dilation[2];
    i32 before[2];
    // The bits that are flipped in X, W and the result's zero point to convert them to `i8`: 0 or 128.
    u32 x_flip, w_flip, y_flip;
    // 1 if each output has its own, 0 if all outputs share one.
    u32 zeros, scales;
    u32 sink;
    i32 low, high;
    // Whether X is read four channels at a time.
    u32 by_quads, padding;
};

HOST_DEVICE i32 code(u64 address, u32 i, u32 flip) { return (i8)(at<const u8>(address)[i] ^ flip); }

// Returns a zero point; 0 if it is absent.
HOST_DEVICE i32 zero_point(u64 address, u32 i, u32 flip) { return address ? code(address, i, flip) : -(i32)flip; }

// The value of a code before its bits were flipped.
HOST_DEVICE i32 whole(u64 address, u32 flip) { return code(address, 0, flip) + (i32)flip; }

HOST_DEVICE void pack(const Pack& p) {
    for (u32 output = blockIdx.x; output < p.outputs; output += gridDim.x) {
        i32 sum = 0;
        for (u32 i = threadIdx.x; i < p.taps * p.quads; i += blockDim.x) {
            u32 tap = i / p.quads, channel = (i - tap * p.quads) * 4, quad = 0;
            for (u32 k = 0; k < 4 && channel + k < p.channels; k++) {
                u32 from = output * p.next_output + (channel + k) * p.next_channel + tap * p.next_tap;
                quad |= (at<const u8>(p.w)[from] ^ p.flip) << 8 * k;
            }
            at<u32>(p.packed)[output * p.taps * p.quads + i] = quad;
            sum = __dp4a((i32)quad, 0x01010101, sum);
        }
        sum = together(sum, Add{});
        if (threadIdx.x == 0) at<i32>(p.sums)[output] = sum;
    }
}

// The start of a window.
struct Window {
    u32 image;
    i32 y, x;
};

HOST_DEVICE Window window(const QLinear& p, u32 row) {
    u32 image = row / p.pixels, pixel = row - image * p.pixels, y = pixel / p.columns, x = pixel - y * p.columns;
    return {image, (i32)(y * p.step[0]) - p.before[0], (i32)(x * p.step[1]) - p.before[1]};
}

// The index of the element of X at a tap of a window, for the first channel of a group; 0xffffffff outside the image.
const u32 OUTSIDE = 0xffffffffu;
HOST_DEVICE u32 under(const QLinear& p, const Window& window, u32 group, u32 tap) {
    u32 down = tap / p.kernel[1], across = tap - down * p.kernel[1];
    u32 y = (u32)(window.y + (i32)(down * p.dilation[0])), x = (u32)(window.x + (i32)(across * p.dilation[1]));
    if (y >= p.input[0] || x >= p.input[1]) return OUTSIDE;
    return window.image * p.x_image + group * p.channels * p.x_channel + y * p.x_row + x * p.x_column;
}

// Four channels at a tap of a window. Outside the image, they equal the zero point; channels beyond the last are 0.
HOST_DEVICE u32 quad_of(const QLinear& p, const Window& window, u32 group, u32 number, u32 zero) {
    u32 tap = number / p.quads, channel = (number - tap * p.quads) * 4, from = under(p, window, group, tap);
    if (p.by_quads) return from == OUTSIDE ? zero * 0x01010101u : *at<const u32>(p.x + from + channel) ^ p.x_flip * 0x01010101u;
    u32 quad = 0;
    for (u32 k = 0; k < 4 && channel + k < p.channels; k++) {
        u32 byte = from == OUTSIDE ? zero : at<const u8>(p.x)[from + (channel + k) * p.x_channel] ^ p.x_flip;
        quad |= byte << 8 * k;
    }
    return quad;
}

// Converts and stores the sum of a window and an output, which is counted over all groups.
HOST_DEVICE void finish(const QLinear& p, u32 row, u32 output, u32 sum) {
    if (p.bias) sum += (u32)at<const i32>(p.bias)[output];
    u32 image = row / p.pixels;
    u64 to = (u64)image * p.y_image + (u64)output * p.y_channel + (u64)(row - image * p.pixels) * p.y_pixel;
    if (p.sink == Sums) {
        at<i32>(p.y)[to] = (i32)sum;
        return;
    }
    f32 x = (f32)(i32)sum * at<const f32>(p.scale)[output * p.scales];
    if (p.sink == Floats) {
        at<f32>(p.y)[to] = x;
        return;
    }
    i32 zero = whole(p.y_zero, p.y_flip);
    f32 low = (f32)(p.low - zero), high = (f32)(p.high - zero);
    // NaN gives the smallest code.
    x = x > low ? x : low;
    x = x < high ? x : high;
    at<u8>(p.y)[to] = (u8)((i32)rintf(x) + zero);
}

// ── Tiles: TILE windows and TILE outputs per block, SIDE × SIDE per thread, DEPTH quads at a time. ──

const u32 TILE = 64, DEPTH = 8, SIDE = 4, ACROSS = TILE / SIDE;

HOST_DEVICE void fetch_x(const QLinear& p, const Window* windows, u32 group, u32 top, u32 depth, u32 length, u32 zero,
                         u32 (*tile)[TILE + 1]) {
    // Neighboring threads read neighboring elements.
    bool along_depth = p.x_channel == 1;
    for (u32 i = threadIdx.x; i < TILE * DEPTH; i += BLOCK) {
        u32 r = along_depth ? i / DEPTH : i % TILE, d = along_depth ? i % DEPTH : i / TILE;
        bool is_there = top + r < p.rows && depth + d < length;
        tile[d][r] = is_there ? quad_of(p, windows[r], group, depth + d, zero) : 0;
    }
}

HOST_DEVICE void fetch_w(const QLinear& p, u32 group, u32 left, u32 depth, u32 length, u32 (*tile)[TILE + 1]) {
    for (u32 i = threadIdx.x; i < TILE * DEPTH; i += BLOCK) {
        u32 r = i / DEPTH, d = i % DEPTH;
        bool is_there = left + r < p.outputs && depth + d < length;
        u64 from = (u64)(group * p.outputs + left + r) * length + depth + d;
        tile[d][r] = is_there ? at<const u32>(p.w)[from] : 0;
    }
}

HOST_DEVICE void tile(const QLinear& p, u32 group, u32 top, u32 left) {
    __shared__ u32 a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    __shared__ Window windows[TILE];
    u32 i0 = threadIdx.x / ACROSS * SIDE, j0 = threadIdx.x % ACROSS * SIDE;
    u32 taps = p.kernel[0] * p.kernel[1], length = taps * p.quads;
    i32 x_zero = zero_point(p.x_zero, 0, p.x_flip);
    u32 first_output = group * p.outputs + left + j0;
    i32 w_zero[SIDE];
    bool shifts = false;
    for (u32 j = 0; j < SIDE; j++) {
        w_zero[j] = left + j0 + j < p.outputs ? zero_point(p.w_zero, (first_output + j) * p.zeros, p.w_flip) : 0;
        shifts = shifts || w_zero[j] != 0;
    }
    if (threadIdx.x < TILE && top + threadIdx.x < p.rows) windows[threadIdx.x] = window(p, top + threadIdx.x);
    __syncthreads();
    i32 sum[SIDE][SIDE] = {}, of_x[SIDE] = {};
    for (u32 depth = 0; depth < length; depth += DEPTH) {
        fetch_x(p, windows, group, top, depth, length, (u32)x_zero & 0xff, a);
        fetch_w(p, group, left, depth, length, b);
        __syncthreads();
        for (u32 d = 0; d < DEPTH; d++) {
            for (u32 i = 0; i < SIDE; i++)
                for (u32 j = 0; j < SIDE; j++) sum[i][j] = __dp4a((i32)a[d][i0 + i], (i32)b[d][j0 + j], sum[i][j]);
            if (!shifts) continue;
            for (u32 i = 0; i < SIDE; i++) of_x[i] = __dp4a((i32)a[d][i0 + i], 0x01010101, of_x[i]);
        }
        __syncthreads();
    }
    for (u32 j = 0; j < SIDE && left + j0 + j < p.outputs; j++) {
        u32 zero = (u32)w_zero[j], of_w = at<const u32>(p.sums)[first_output + j] - taps * p.channels * zero;
        for (u32 i = 0; i < SIDE && top + i0 + i < p.rows; i++)
            finish(p, top + i0 + i, first_output + j, (u32)sum[i][j] - zero * (u32)of_x[i] - (u32)x_zero * of_w);
    }
}

HOST_DEVICE void tiles(const QLinear& p) {
    for (u32 group = blockIdx.z; group < p.groups; group += gridDim.z)
        for (u32 left = blockIdx.y * TILE; left < p.outputs; left += gridDim.y * TILE)
            for (u32 top = blockIdx.x * TILE; top < p.rows; top += gridDim.x * TILE) tile(p, group, top, left);
}

// ── One result per thread, if a group has few outputs. ──

HOST_DEVICE void direct(const QLinear& p) {
    u32 all = p.groups * p.outputs, taps = p.kernel[0] * p.kernel[1];
    i32 x_zero = zero_point(p.x_zero, 0, p.x_flip);
    for (u32 i = first(); i < p.rows * all; i += stride()) {
        // Neighboring threads read neighboring elements.
        u32 row = p.x_channel == 1 ? i / all : i % p.rows, output = p.x_channel == 1 ? i % all : i / p.rows;
        Window begin = window(p, row);
        i32 w_zero = zero_point(p.w_zero, output * p.zeros, p.w_flip);
        u32 sum = 0;
        for (u32 tap = 0; tap < taps; tap++) {
            u32 from = under(p, begin, output / p.outputs, tap);
            if (from == OUTSIDE) continue;
            const i8* w = at<const i8>(p.w) + ((u64)output * taps + tap) * p.quads * 4;
            for (u32 c = 0; c < p.channels; c++)
                sum += (u32)((code(p.x, from + c * p.x_channel, p.x_flip) - x_zero) * (w[c] - w_zero));
        }
        finish(p, row, output, sum);
    }
}

COOPERATIVE(qlinear_pack, Pack, pack)
COOPERATIVE(qlinear_tiles, QLinear, tiles)
KERNEL(qlinear_direct, QLinear, direct)
