// Reads boxes of images. Positions are computed as on the CPU, with each operation rounded separately.
#include "numbers.cuh"

// X [batch, channels, high, wide], `count` regions, Y [count, channels, rows, columns].
struct Sizes {
    u32 batch, channels, high, wide, count, rows, columns;
};
// Regions [count, 4] of x1, y1, x2, y2, and the image of each region.
struct RoiAlign {
    u64 x, regions, images, y;
    Fault fault;
    Sizes sizes;
    u32 samples;
    f32 scale;
    u32 half_pixel, greatest, padding;
};
// Like `RoiAlign`, with regions [count, 5] of the image's index and x1, y1, x2, y2.
struct MaxRoiPool {
    u64 x, regions, y;
    Fault fault;
    Sizes sizes;
    f32 scale;
};

// The channels that a thread reads for a bin, and the most samples of a region, as `MOST_SAMPLES` in ops/detection.rs.
const u32 CHANNELS = 8;
const f64 MOST_SAMPLES = 1e7;
// Distinguishes the place of a region with too many samples from that of one with a wrong image, which is told first.
const u32 OF_SAMPLES = 0x80000000u;

// The start of a region, the size of its bins, and the samples along the sides of a bin.
struct Grid {
    f64 begin[2], step[2];
    u32 samples[2];
};

template <class T> HOST_DEVICE f64 corner(const RoiAlign& p, u32 region, u32 i) {
    f64 scaled = __dmul_rn((f64)widen(at<const T>(p.regions)[4 * region + i]), (f64)p.scale);
    return __dsub_rn(scaled, p.half_pixel ? 0.5 : 0);
}

// The grid of a region; `false`, after a report, where it has too many samples.
template <class T> HOST_DEVICE bool lay(const RoiAlign& p, u32 region, Grid* grid) {
    f64 samples[2];
    for (u32 axis = 0; axis < 2; axis++) {
        f64 begin = corner<T>(p, region, 1 - axis), length = __dsub_rn(corner<T>(p, region, 3 - axis), begin);
        if (!p.half_pixel) length = fmax(length, 1.0);
        grid->begin[axis] = begin;
        grid->step[axis] = length / (f64)(axis == 0 ? p.sizes.rows : p.sizes.columns);
        samples[axis] = p.samples ? (f64)p.samples : fmax(ceil(grid->step[axis]), 0.0);
    }
    f64 all = samples[0] * samples[1] * (f64)(p.sizes.rows * p.sizes.columns);
    if (all > MOST_SAMPLES) {
        report(p.fault, region | OF_SAMPLES, __double_as_longlong(all));
        return false;
    }
    // As many samples in all: none, if one side has none.
    bool none = samples[0] == 0 || samples[1] == 0;
    for (u32 axis = 0; axis < 2; axis++) grid->samples[axis] = none ? 0 : (u32)samples[axis];
    return true;
}

// The two pixels next to a position on an axis, and the distance from the first.
struct Side {
    u32 low, high;
    f64 part;
};

HOST_DEVICE Side side(f64 place, u32 size) {
    f64 inside = fmax(place, 0.0);
    u32 low = inside < (f64)(size - 1) ? (u32)inside : size - 1;
    return {low, low + 1 < size ? low + 1 : low, low == size - 1 ? 0 : inside - (f64)low};
}

// The four pixels around a point, and their weights, which are 0 for a point more than a pixel outside.
HOST_DEVICE void corners(const RoiAlign& p, f64 y, f64 x, u32* places, f64* weights) {
    const Sizes& sizes = p.sizes;
    bool is_inside = y >= -1 && y <= (f64)sizes.high && x >= -1 && x <= (f64)sizes.wide;
    Side down = side(is_inside ? y : 0, sizes.high), across = side(is_inside ? x : 0, sizes.wide);
    for (u32 k = 0; k < 4; k++) {
        f64 weight = (k / 2 ? down.part : 1 - down.part) * (k % 2 ? across.part : 1 - across.part);
        places[k] = is_inside ? (k / 2 ? down.high : down.low) * sizes.wide + (k % 2 ? across.high : across.low) : 0;
        weights[k] = is_inside ? weight : 0;
    }
}

// Adds a sample to the results of the channels of a piece.
template <class T>
HOST_DEVICE void add_sample(const RoiAlign& p, const T* x, u32 channels, const u32* places, const f64* weights, f64* known) {
    for (u32 c = 0; c < CHANNELS; c++) {
        if (c >= channels) break;
        for (u32 k = 0; k < 4; k++) {
            f64 part = __dmul_rn((f64)widen(x[(u64)c * p.sizes.high * p.sizes.wide + places[k]]), weights[k]);
            known[c] = p.greatest ? fmax(known[c], part) : __dadd_rn(known[c], part);
        }
    }
}

template <class T> HOST_DEVICE void align(const RoiAlign& p) {
    const Sizes& sizes = p.sizes;
    u32 groups = (sizes.channels + CHANNELS - 1) / CHANNELS, bins = sizes.rows * sizes.columns;
    for (u32 i = first(); i < sizes.count * groups * bins; i += stride()) {
        u32 bin = i % bins, channel = i / bins % groups * CHANNELS, region = i / bins / groups;
        u32 channels = sizes.channels - channel < CHANNELS ? sizes.channels - channel : CHANNELS;
        i64 image = at<const i64>(p.images)[region];
        Grid grid = {};
        bool is_there = image >= 0 && image < (i64)sizes.batch;
        if (!is_there) report(p.fault, region, image);
        bool fits = is_there && lay<T>(p, region, &grid);
        u32 rows = fits ? grid.samples[0] : 0, columns = fits ? grid.samples[1] : 0;
        const T* x = at<const T>(p.x) + ((u64)(fits ? image : 0) * sizes.channels + channel) * sizes.high * sizes.wide;
        f64 known[CHANNELS];
        for (u32 c = 0; c < CHANNELS; c++) known[c] = p.greatest && rows > 0 ? -(f64)INFINITY : 0;
        for (u32 sample = 0; sample < rows * columns; sample++) {
            f64 within[2] = {(f64)(sample / columns) + 0.5, (f64)(sample % columns) + 0.5};
            f64 number[2] = {(f64)(bin / sizes.columns), (f64)(bin % sizes.columns)}, place[2], weights[4];
            for (u32 axis = 0; axis < 2; axis++) {
                f64 begin = __dadd_rn(grid.begin[axis], __dmul_rn(number[axis], grid.step[axis]));
                place[axis] = __dadd_rn(begin, __dmul_rn(within[axis], grid.step[axis]) / (f64)grid.samples[axis]);
            }
            u32 places[4];
            corners(p, place[0], place[1], places, weights);
            add_sample(p, x, channels, places, weights, known);
        }
        u32 samples = rows * columns > 0 ? rows * columns : 1;
        for (u32 c = 0; c < channels; c++) {
            f64 value = p.greatest ? known[c] : known[c] / (f64)samples;
            at<T>(p.y)[((u64)region * sizes.channels + channel + c) * bins + bin] = To<T>{}(value);
        }
    }
}

// The pixels of a bin along an axis.
struct Span {
    u32 begin, end;
};

HOST_DEVICE u32 inside(f32 place, f32 start, u32 size) {
    place = place + start;
    u32 whole = place > 0 ? (u32)fminf(place, (f32)size) : 0;
    return whole < size ? whole : size; // as f32, the size may be larger
}

template <class T> HOST_DEVICE Span span(const MaxRoiPool& p, u32 region, u32 from, u32 bin, u32 bins, u32 size) {
    const T* corners = at<const T>(p.regions) + 5 * (u64)region;
    f32 start = roundf(__fmul_rn((f32)widen(corners[from]), p.scale));
    f32 end = roundf(__fmul_rn((f32)widen(corners[from + 2]), p.scale));
    f32 step = fmaxf(end - start + 1.0f, 1.0f) / (f32)bins;
    u32 first = inside(floorf(__fmul_rn((f32)bin, step)), start, size);
    u32 last = inside(ceilf(__fmul_rn((f32)(bin + 1), step)), start, size);
    return {first, last > first ? last : first};
}

template <class T> HOST_DEVICE void pool(const MaxRoiPool& p) {
    const Sizes& sizes = p.sizes;
    u32 bins = sizes.rows * sizes.columns;
    for (u32 i = first(); i < sizes.count * sizes.channels * bins; i += stride()) {
        u32 bin = i % bins, channel = i / bins % sizes.channels, region = i / bins / sizes.channels;
        f64 image = (f64)widen(at<const T>(p.regions)[5 * (u64)region]);
        if (!(image >= 0 && image < (f64)sizes.batch && image == floor(image))) {
            report(p.fault, region, __double_as_longlong(image));
            at<T>(p.y)[i] = narrowed<T>(wide<T>(0));
            continue;
        }
        Span rows = span<T>(p, region, 2, bin / sizes.columns, sizes.rows, sizes.high);
        Span columns = span<T>(p, region, 1, bin % sizes.columns, sizes.columns, sizes.wide);
        const T* x = at<const T>(p.x) + ((u64)(u32)image * sizes.channels + channel) * sizes.high * sizes.wide;
        wide<T> greatest = rows.begin < rows.end && columns.begin < columns.end ? -(wide<T>)INFINITY : 0;
        for (u32 row = rows.begin; row < rows.end; row++)
            for (u32 column = columns.begin; column < columns.end; column++) {
                wide<T> pixel = widen(x[row * sizes.wide + column]);
                greatest = pixel > greatest ? pixel : greatest;
            }
        at<T>(p.y)[i] = narrowed<T>(greatest);
    }
}

KERNEL(roi_align_f16, RoiAlign, align<f16>)
KERNEL(roi_align_bf16, RoiAlign, align<bf16>)
KERNEL(roi_align_f32, RoiAlign, align<f32>)
KERNEL(roi_align_f64, RoiAlign, align<f64>)
KERNEL(roi_pool_f16, MaxRoiPool, pool<f16>)
KERNEL(roi_pool_bf16, MaxRoiPool, pool<bf16>)
KERNEL(roi_pool_f32, MaxRoiPool, pool<f32>)
KERNEL(roi_pool_f64, MaxRoiPool, pool<f64>)
