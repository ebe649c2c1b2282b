// Normalization by means and variances.
#include "team.cuh"

// The statistics of a row: its mean (0 unless `centered`), and 1 / √(mean square around it + ε).
template <class W> struct Statistics {
    W mean, factor;
};

// Computes the statistics of the row of `length` elements at `x`; 0 for a team without a row. A second pass computes
// the square around the mean, so a large mean costs no accuracy.
template <class T>
HOST_DEVICE Statistics<wide<T>> statistics(const Teams& teams, const T* x, u32 length, bool centered, f64 epsilon) {
    typedef wide<T> W;
    u32 number = member_number(teams);
    f64 mean = 0;
    if (centered) {
        mean = sum_of(number, length, teams.size, [&](u32 k) { return widen(x[k]); });
        mean = joined(teams, mean, Add()) / length;
    }
    W center = (W)mean;
    f64 square = sum_of(number, length, teams.size, [&](u32 k) {
        W away = widen(x[k]) - center;
        return away * away;
    });
    square = joined(teams, square, Add()) / length;
    return Statistics<W>{center, (W)(1 / sqrt(square + epsilon))};
}

// ── Rows along the last axes ──

// X and Y are [rows, n] with dimensions `dims`, over which scale and bias have strides; if `by_place`, both have n
// elements. The address is 0 for an absent bias, and for means and factors [rows] that are not requested.
struct LayerNormOf {
    u64 x, y, scale, bias, means, factors;
    Lines rows;
    u32 centered, by_place;
    Dims dims;
    f64 epsilon;
    Strides scale_steps, bias_steps;
};

template <class T, class S> HOST_DEVICE void layer_norm(const LayerNormOf& p) {
    typedef wide<T> W;
    const Teams& teams = p.rows.teams;
    for_each_line(p.rows, [&](u32 row, u32 n) {
        u32 start = row * p.rows.n;
        const T* x = at<const T>(p.x) + start;
        Statistics<W> of_row = statistics(teams, x, n, p.centered, p.epsilon);
        u32 number = member_number(teams);
        if (p.means && number == 0 && n > 0) {
            at<f32>(p.means)[row] = (f32)of_row.mean;
            at<f32>(p.factors)[row] = (f32)of_row.factor;
        }
        for (u32 k = number; k < n; k += teams.size) {
            i64 of_scale = p.by_place ? k : offset(p.dims, p.scale_steps, start + k);
            W value = (widen(x[k]) - of_row.mean) * of_row.factor * widen(at<const S>(p.scale)[of_scale]);
            if (p.bias) {
                i64 of_bias = p.by_place ? k : offset(p.dims, p.bias_steps, start + k);
                value += widen(at<const S>(p.bias)[of_bias]);
            }
            narrow(value, at<S>(p.y) + start + k);
        }
    });
}

COOPERATIVE(layer_norm_f16, LayerNormOf, layer_norm<f16, f16>)
COOPERATIVE(layer_norm_bf16, LayerNormOf, layer_norm<bf16, bf16>)
COOPERATIVE(layer_norm_f32, LayerNormOf, layer_norm<f32, f32>)
COOPERATIVE(layer_norm_f64, LayerNormOf, layer_norm<f64, f64>)
// X has 16 bits, and scale and Y have 32, or vice versa.
COOPERATIVE(layer_norm_f16_f32, LayerNormOf, layer_norm<f16, f32>)
COOPERATIVE(layer_norm_bf16_f32, LayerNormOf, layer_norm<bf16, f32>)
COOPERATIVE(layer_norm_f32_f16, LayerNormOf, layer_norm<f32, f16>)
COOPERATIVE(layer_norm_f32_bf16, LayerNormOf, layer_norm<f32, bf16>)

// ── Groups of channels ──

// X and Y are [N, groups, channels of a group, spatial], with one row per group. Scale and bias have one element per
// channel, or per group.
struct GroupNormOf {
    u64 x, y, scale, bias;
    Lines rows;
    u32 groups, channels, spatial;
    u32 scale_by_group, bias_by_group;
    f64 epsilon;
};

template <class T> HOST_DEVICE void group_norm(const GroupNormOf& p) {
    typedef wide<T> W;
    const Teams& teams = p.rows.teams;
    for_each_line(p.rows, [&](u32 row, u32 n) {
        const T* x = at<const T>(p.x) + row * p.rows.n;
        T* y = at<T>(p.y) + row * p.rows.n;
        u32 group = row % p.groups;
        Statistics<W> of_row = statistics(teams, x, n, true, p.epsilon);
        for (u32 k = member_number(teams); k < n; k += teams.size) {
            u32 channel = group * p.channels + k / p.spatial;
            W scale = widen(at<const T>(p.scale)[p.scale_by_group ? group : channel]);
            W bias = widen(at<const T>(p.bias)[p.bias_by_group ? group : channel]);
            narrow((widen(x[k]) - of_row.mean) * (of_row.factor * scale) + bias, y + k);
        }
    });
}

COOPERATIVE(group_norm_f16, GroupNormOf, group_norm<f16>)
COOPERATIVE(group_norm_bf16, GroupNormOf, group_norm<bf16>)
COOPERATIVE(group_norm_f32, GroupNormOf, group_norm<f32>)
COOPERATIVE(group_norm_f64, GroupNormOf, group_norm<f64>)

// ── Channels with given statistics ──

enum FloatKind : u32 { OfF16, OfBf16, OfF32, OfF64 };

// Numbers of any floating-point type.
struct AnyFloats {
    u64 address;
    u32 kind, padding;
};
template <class W> HOST_DEVICE W number_of(const AnyFloats& floats, u32 i) {
    switch (floats.kind) {
        case OfF16: return (W)widen(at<const f16>(floats.address)[i]);
        case OfBf16: return (W)widen(at<const bf16>(floats.address)[i]);
        case OfF32: return (W)at<const f32>(floats.address)[i];
        default: return (W)at<const f64>(floats.address)[i];
    }
}

// X and Y are [N, channels, spatial], with one line per channel of each image; all others are [channels].
struct BatchNormOf {
    u64 x, y;
    AnyFloats scale, bias, mean, variance;
    Lines lines;
    u32 channels;
    f64 epsilon;
};

template <class T> HOST_DEVICE void batch_norm(const BatchNormOf& p) {
    typedef wide<T> W;
    const Teams& teams = p.lines.teams;
    for_each_line(p.lines, [&](u32 line, u32 n) {
        if (n == 0) return;
        u32 channel = line % p.channels, start = line * n;
        W mean = number_of<W>(p.mean, channel), bias = number_of<W>(p.bias, channel);
        W factor = number_of<W>(p.scale, channel) / sqrt(number_of<W>(p.variance, channel) + (W)p.epsilon);
        for (u32 k = member_number(teams); k < n; k += teams.size)
            narrow((widen(at<const T>(p.x)[start + k]) - mean) * factor + bias, at<T>(p.y) + start + k);
    });
}

KERNEL(batch_norm_f16, BatchNormOf, batch_norm<f16>)
KERNEL(batch_norm_bf16, BatchNormOf, batch_norm<bf16>)
KERNEL(batch_norm_f32, BatchNormOf, batch_norm<f32>)
KERNEL(batch_norm_f64, BatchNormOf, batch_norm<f64>)

// ── Neighboring channels ──

// X and Y are [N, channels, spatial]. Sums the squares over a channel, `before` channels before it and `after` channels
// after it.
struct LrnOf {
    u64 x, y;
    u32 count, channels, spatial, before, after;
    u32 padding;
    f64 bias, factor, power;
};

template <class T> HOST_DEVICE void lrn(const LrnOf& p) {
    typedef wide<T> W;
    const T* x = at<const T>(p.x);
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 channel = i / p.spatial % p.channels;
        u32 fore = channel < p.before ? channel : p.before, rest = p.channels - 1 - channel;
        u32 aft = rest < p.after ? rest : p.after;
        W sum = 0;
        for (u32 k = 0; k <= fore + aft; k++) {
            W value = widen(x[i - fore * p.spatial + k * p.spatial]);
            sum += value * value;
        }
        narrow(widen(x[i]) * pow((W)p.bias + (W)p.factor * sum, (W)p.power), at<T>(p.y) + i);
    }
}

KERNEL(lrn_f16, LrnOf, lrn<f16>)
KERNEL(lrn_bf16, LrnOf, lrn<bf16>)
KERNEL(lrn_f32, LrnOf, lrn<f32>)
KERNEL(lrn_f64, LrnOf, lrn<f64>)
