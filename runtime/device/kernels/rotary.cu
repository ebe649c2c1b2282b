// Rotary position embedding.
#include "device.cuh"

// Y and X are vectors of `size` elements; the first `rotary` elements are rotated in pairs.
struct RotaryTurn {
    // The caches have `rows` rows of `rotary / 2` elements.
    u64 x, cos, sin, y;
    // i64 `[batch, positions]`: the row of each position; a negative one counts from the end. If the address is 0, the
    // row is `batch % (rows / positions) · positions + position`.
    u64 ids;
    Fault fault;
    u32 count, size, rotary, heads, positions, rows;
    u32 heads_first, interleaved;
};

// The row of the caches for a vector; `rows` if it is out of bounds.
HOST_DEVICE u32 cache_row(const RotaryTurn& p, u32 vector) {
    u32 batch = vector / p.heads / p.positions;
    u32 position = p.heads_first ? vector % p.positions : vector / p.heads % p.positions;
    if (!p.ids) return (batch * p.positions + position) % p.rows;
    u32 place = batch * p.positions + position;
    i64 id = at<const i64>(p.ids)[place], row = id < 0 ? id + p.rows : id;
    if (row >= 0 && row < (i64)p.rows) return (u32)row;
    report(p.fault, place, id);
    return p.rows;
}

template <class T> HOST_DEVICE void rotary_turn(const RotaryTurn& p) {
    const T *x = at<const T>(p.x), *cos = at<const T>(p.cos), *sin = at<const T>(p.sin);
    u32 half = p.rotary / 2;
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 element = i % p.size, row = cache_row(p, i / p.size);
        wide<T> own = widen(x[i]);
        if (element < p.rotary && row < p.rows) {
            bool is_second = p.interleaved ? element % 2 == 1 : element >= half;
            u32 apart = p.interleaved ? 1 : half, pair = p.interleaved ? element / 2 : element % half;
            wide<T> other = widen(x[is_second ? i - apart : i + apart]);
            wide<T> c = widen(cos[(u64)row * half + pair]), s = widen(sin[(u64)row * half + pair]);
            own = is_second ? s * other + c * own : c * own - s * other;
        }
        narrow(own, at<T>(p.y) + i);
    }
}

KERNEL(rotary_f16, RotaryTurn, rotary_turn<f16>)
KERNEL(rotary_bf16, RotaryTurn, rotary_turn<bf16>)
KERNEL(rotary_f32, RotaryTurn, rotary_turn<f32>)
KERNEL(rotary_f64, RotaryTurn, rotary_turn<f64>)
