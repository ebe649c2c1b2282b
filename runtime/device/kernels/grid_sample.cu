// Samples images at the points of a grid. Positions are computed as on the CPU, with each operation rounded separately:
// a different rounding could select another pixel.
#include "numbers.cuh"

enum Outside : u32 { Zeros, Border, Reflection };

// X [images, channels, high, wide], the grid [images, points, 2], Y [images, channels, points].
struct GridSample {
    u64 x, grid, y;
    u32 images, channels, points, high, wide, grid_type, outside, align_corners;
};

// The channels that a thread reads per point.
const u32 CHANNELS = 8;
const u32 NOWHERE = 0xffffffffu;

HOST_DEVICE f32 times(f32 a, f32 b) { return __fmul_rn(a, b); }
HOST_DEVICE f64 times(f64 a, f64 b) { return __dmul_rn(a, b); }
HOST_DEVICE f32 plus(f32 a, f32 b) { return __fadd_rn(a, b); }
HOST_DEVICE f64 plus(f64 a, f64 b) { return __dadd_rn(a, b); }

// Converts a coordinate from -1 to 1 to pixels.
template <class R> HOST_DEVICE f64 pixel(const GridSample& p, R at, u32 size) {
    if (p.align_corners) return times(times(plus(at, R(1)), R(0.5)), plus((R)size, R(-1)));
    return times(plus(times(plus(at, R(1)), (R)size), R(-1)), R(0.5));
}

// Coordinate `i` of the grid, in pixels along an axis.
HOST_DEVICE f64 coordinate(const GridSample& p, u32 i, u32 size) {
    switch (p.grid_type) {
        case OfF16: return pixel(p, widen(at<const f16>(p.grid)[i]), size);
        case OfBf16: return pixel(p, widen(at<const bf16>(p.grid)[i]), size);
        case OfF64: return pixel(p, at<const f64>(p.grid)[i], size);
        default: return pixel(p, at<const f32>(p.grid)[i], size);
    }
}

// An integer coordinate, reflected until it is inside the axis.
HOST_DEVICE f64 reflected(const GridSample& p, f64 at, f64 last) {
    f64 low = p.align_corners ? 0 : -0.5, high = p.align_corners ? last : last + 0.5;
    f64 beyond = fmax(low - at, at - high), range = high - low;
    if (beyond <= 0 || range <= 0) return at;
    f64 rest = fmod(beyond, range);
    bool turns_back = fmod(floor(beyond / range), 2.0) == 0;
    return (at < low) == turns_back ? low + rest : high - rest;
}

// The index of a pixel along an axis; NOWHERE if it counts as zero. NaN gives the first pixel.
HOST_DEVICE u32 place(const GridSample& p, f64 at, u32 size) {
    f64 last = (f64)size - 1;
    if (p.outside == Zeros && !(at >= 0 && at <= last)) return NOWHERE;
    if (p.outside == Reflection) at = reflected(p, at, last);
    if (!(at > 0)) return 0;
    return (u32)(at < last ? at : last);
}

// The cubic convolution kernel at a distance of `d` pixels.
HOST_DEVICE f64 cubic(f64 d) {
    const f64 A = -0.75;
    if (d <= 1) return plus(times(times(plus(times(A + 2, d), -(A + 3)), d), d), 1);
    return plus(times(plus(times(plus(times(A, d), -5 * A), d), 8 * A), d), -4 * A);
}

// The indices of the K pixels around a point along an axis, and their weights.
template <u32 K> HOST_DEVICE void line(const GridSample& p, f64 at, u32 size, u32* places, f64* weights) {
    f64 low = floor(at), part = at - low;
    for (u32 k = 0; k < K; k++) {
        f64 step = (f64)k - (f64)(K / 2 - 1), d = fabs(part - step);
        places[k] = place(p, low + step, size);
        weights[k] = K == 4 ? cubic(d) : 1 - d;
    }
}

// A unit of work: a point and CHANNELS channels. Neighboring threads have neighboring points.
struct Piece {
    u32 image, channel, point;
};

HOST_DEVICE u32 pieces(const GridSample& p) { return p.images * ((p.channels + CHANNELS - 1) / CHANNELS) * p.points; }

HOST_DEVICE Piece piece(const GridSample& p, u32 i) {
    u32 groups = (p.channels + CHANNELS - 1) / CHANNELS, row = i / p.points;
    return {row / groups, row % groups * CHANNELS, i - row * p.points};
}

template <class T, u32 K> HOST_DEVICE void sample(const GridSample& p) {
    typedef wide<T> R;
    for (u32 i = first(); i < pieces(p); i += stride()) {
        Piece at_piece = piece(p, i);
        u32 from = 2 * (at_piece.image * p.points + at_piece.point), rows[K], columns[K];
        f64 down[K], across[K];
        line<K>(p, coordinate(p, from + 1, p.high), p.high, rows, down);
        line<K>(p, coordinate(p, from, p.wide), p.wide, columns, across);
        for (u32 channel = at_piece.channel; channel < p.channels && channel < at_piece.channel + CHANNELS; channel++) {
            u32 plane = at_piece.image * p.channels + channel;
            const T* x = at<const T>(p.x) + (u64)plane * p.high * p.wide;
            R sum = 0;
            for (u32 k = 0; k < K * K; k++) {
                u32 row = rows[k / K], column = columns[k % K];
                // A pixel outside the image contributes 0 even if its weight is infinite.
                if (row == NOWHERE || column == NOWHERE) continue;
                sum = plus(sum, times(widen(x[row * p.wide + column]), (R)(down[k / K] * across[k % K])));
            }
            at<T>(p.y)[plane * p.points + at_piece.point] = narrowed<T>(sum);
        }
    }
}

template <class T> HOST_DEVICE void nearest(const GridSample& p) {
    for (u32 i = first(); i < pieces(p); i += stride()) {
        Piece at_piece = piece(p, i);
        u32 from = 2 * (at_piece.image * p.points + at_piece.point);
        u32 row = place(p, rint(coordinate(p, from + 1, p.high)), p.high);
        u32 column = place(p, rint(coordinate(p, from, p.wide)), p.wide);
        for (u32 channel = at_piece.channel; channel < p.channels && channel < at_piece.channel + CHANNELS; channel++) {
            u32 plane = at_piece.image * p.channels + channel;
            const T* x = at<const T>(p.x) + (u64)plane * p.high * p.wide;
            T value = row == NOWHERE || column == NOWHERE ? T(0) : x[row * p.wide + column];
            at<T>(p.y)[plane * p.points + at_piece.point] = value;
        }
    }
}

template <class T> HOST_DEVICE void linear(const GridSample& p) { sample<T, 2>(p); }
template <class T> HOST_DEVICE void bicubic(const GridSample& p) { sample<T, 4>(p); }

KERNEL(sample_nearest_u8, GridSample, nearest<u8>)
KERNEL(sample_nearest_u16, GridSample, nearest<u16>)
KERNEL(sample_nearest_u32, GridSample, nearest<u32>)
KERNEL(sample_nearest_u64, GridSample, nearest<u64>)
KERNEL(sample_linear_f16, GridSample, linear<f16>)
KERNEL(sample_linear_bf16, GridSample, linear<bf16>)
KERNEL(sample_linear_f32, GridSample, linear<f32>)
KERNEL(sample_linear_f64, GridSample, linear<f64>)
KERNEL(sample_cubic_f16, GridSample, bicubic<f16>)
KERNEL(sample_cubic_bf16, GridSample, bicubic<bf16>)
KERNEL(sample_cubic_f32, GridSample, bicubic<f32>)
KERNEL(sample_cubic_f64, GridSample, bicubic<f64>)
