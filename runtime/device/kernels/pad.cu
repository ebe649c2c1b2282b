// Pads and crops tensors.
#include "device.cuh"

enum PadMode : u32 { PadConstant, PadEdge, PadReflect, PadWrap };

// On each axis, index `i` of Y is index `low + i - before` of X, if it is one of the `kept` indices; otherwise the mode
// defines it. `steps` are the strides of X. In constant mode, elements outside have the low bits of `value`.
struct PadOf {
    u64 x, y, value;
    u32 count, mode;
    Dims dims;
    Strides steps;
    i32 before[RANK], low[RANK], kept[RANK];
    u32 padding;
};

// Maps index `i`, relative to `low`, to one of the `kept` indices of an axis.
HOST_DEVICE i64 padded_place(u32 mode, i64 i, i64 kept) {
    if (mode == PadReflect) {
        i64 period = kept > 1 ? 2 * (kept - 1) : 1, forth = i % period;
        forth += forth < 0 ? period : 0;
        return forth < kept ? forth : period - forth;
    }
    if (mode == PadWrap) {
        i64 rest = i % kept;
        return rest < 0 ? rest + kept : rest;
    }
    return i < 0 ? 0 : kept - 1;
}

template <class T> HOST_DEVICE void pad_all(const PadOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        i64 from = 0;
        bool is_inside = true;
        u32 rest = i;
        for (u32 axis = p.dims.rank; axis-- > 0;) {
            u32 outer = rest / p.dims.size[axis];
            i64 place = (i64)(rest - outer * p.dims.size[axis]) - p.before[axis];
            if (place < 0 || place >= p.kept[axis]) {
                is_inside &= p.mode != PadConstant;
                place = is_inside ? padded_place(p.mode, place, p.kept[axis]) : 0;
            }
            from += (p.low[axis] + place) * p.steps.step[axis];
            rest = outer;
        }
        at<T>(p.y)[i] = is_inside ? at<const T>(p.x)[from] : (T)p.value;
    }
}

KERNEL(pad_u8, PadOf, pad_all<u8>)
KERNEL(pad_u16, PadOf, pad_all<u16>)
KERNEL(pad_u32, PadOf, pad_all<u32>)
KERNEL(pad_u64, PadOf, pad_all<u64>)
