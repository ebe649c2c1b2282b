// Scatters elements and slices by index; the result does not depend on the order of threads. Each update has a key: the
// number of its slice in the high bits, and its own number in the low bits. For updates that replace the elements, the
// last update of each slice wins. Other updates are sorted by key, and applied to their slice one after the other.
#include "indices.cuh"

// The slice of updates with an index out of bounds, which are reported and not written.
const u32 NOWHERE = 0xffffffffu;

HOST_DEVICE u32 slice_of_key(u64 key) { return (u32)(key >> 32); }

// The buffers for keys: of `updates`, followed by padding up to `count` that sorts last. If the updates replace
// elements, `winners` has one element per slice.
struct ScatterKeys {
    u64 keys, winners;
    u32 updates, count;
};

HOST_DEVICE void write_key(const ScatterKeys& p, u32 update, u32 slice) {
    at<u64>(p.keys)[update] = (u64)slice << 32 | update;
    if (p.winners && slice != NOWHERE) at<u32>(p.winners)[slice] = 0;
}

// Keys of single elements, addressed as in `GatherElements`.
struct ScatterElements {
    ScatterKeys to;
    Indices indices;
    Fault fault;
    u32 size, step;
    Dims dims;
    Strides strides;
    u32 padding;
};

HOST_DEVICE void keys_of_elements(const ScatterElements& p) {
    for (u32 i = first(); i < p.to.count; i += stride()) {
        u32 place = 0, slice = NOWHERE;
        if (i < p.to.updates && find_place(p.indices, i, p.size, p.fault, &place))
            slice = (u32)(offset(p.dims, p.strides, i) + (i64)place * p.step);
        write_key(p.to, i, slice);
    }
}

// Keys of slices.
struct ScatterSlices {
    ScatterKeys to;
    Vectors vectors;
};

HOST_DEVICE void keys_of_slices(const ScatterSlices& p) {
    for (u32 i = first(); i < p.to.count; i += stride()) {
        u64 slice = 0;
        bool is_there = i < p.to.updates && find_slice(p.vectors, i, &slice);
        write_key(p.to, i, is_there ? (u32)slice : NOWHERE);
    }
}

// Finds the last update of each slice, counted from 1.
HOST_DEVICE void find_winners(const ScatterKeys& p) {
    for (u32 i = first(); i < p.updates; i += stride()) {
        u32 slice = slice_of_key(at<const u64>(p.keys)[i]);
        if (slice != NOWHERE) atomicMax(at<u32>(p.winners) + slice, i + 1);
    }
}

// Writes updates of `run` elements each to their slices of Y, in one of two ways; `count` elements in total.
struct ScatterWrite {
    u64 keys, winners, updates, y;
    u32 count, run, operation, padding;
};

template <class T> HOST_DEVICE void write_winners(const ScatterWrite& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 update = i / p.run, slice = slice_of_key(at<const u64>(p.keys)[update]);
        if (slice != NOWHERE && at<const u32>(p.winners)[slice] == update + 1)
            at<T>(p.y)[(u64)slice * p.run + (i - update * p.run)] = at<const T>(p.updates)[i];
    }
}

enum Combination : u32 { CombineAdd, CombineMul, CombineMin, CombineMax };

// If the two are not comparable, the update is kept.
template <class T> HOST_DEVICE T smaller_or_larger(u32 operation, T old, T update) {
    bool stays = operation == CombineMin ? widen(old) < widen(update) : widen(old) > widen(update);
    return stays ? old : update;
}
struct CombineFloats {
    template <class T> HOST_DEVICE T operator()(u32 operation, T old, T update) const {
        if (operation == CombineAdd) return narrowed<T>(widen(old) + widen(update));
        if (operation == CombineMul) return narrowed<T>(widen(old) * widen(update));
        return smaller_or_larger(operation, old, update);
    }
};
// Integers wrap around.
struct CombineIntegers {
    template <class T> HOST_DEVICE T operator()(u32 operation, T old, T update) const {
        if (operation == CombineAdd) return (T)((u64)old + (u64)update);
        if (operation == CombineMul) return (T)((u64)old * (u64)update);
        return smaller_or_larger(operation, old, update);
    }
};
// Sums are logical or, products are logical and.
struct CombineTruths {
    HOST_DEVICE u8 operator()(u32 operation, u8 old, u8 update) const {
        if (operation == CombineAdd) return old | update;
        if (operation == CombineMul) return old & update;
        return smaller_or_larger(operation, old, update);
    }
};

// The keys are sorted. The thread of the first key of a slice applies all updates of the slice.
template <class T, class Combine> HOST_DEVICE void combine_in_order(const ScatterWrite& p) {
    const u64* keys = at<const u64>(p.keys);
    u32 updates = p.count / p.run;
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 place = i / p.run, column = i - place * p.run, slice = slice_of_key(keys[place]);
        if (slice == NOWHERE || (place > 0 && slice_of_key(keys[place - 1]) == slice)) continue;
        T* y = at<T>(p.y) + (u64)slice * p.run + column;
        T value = *y;
        for (; place < updates && slice_of_key(keys[place]) == slice; place++) {
            u64 update = keys[place] & 0xffffffffu;
            value = Combine()(p.operation, value, at<const T>(p.updates)[update * p.run + column]);
        }
        *y = value;
    }
}

// ── A bitonic sort of `count` keys, a power of two. Stage `span` merges sorted halves to sorted runs of `span` keys.
// ──

struct ScatterSort {
    u64 keys;
    u32 count, first_span, last_span, reach;
};

// Sorts pair number `pair` of the positions `reach` apart; the direction alternates between runs.
HOST_DEVICE void sort_pair_of_keys(u64* keys, u32 pair, u32 reach, u32 begin, u32 span) {
    u32 low = pair / reach * reach * 2 + pair % reach;
    u64 a = keys[low], b = keys[low + reach];
    bool goes_up = ((begin + low) & span) == 0;
    if (goes_up == (a > b)) {
        keys[low] = b;
        keys[low + reach] = a;
    }
}

// One step of a stage.
HOST_DEVICE void sort_far(const ScatterSort& p) {
    for (u32 pair = first(); pair < p.count / 2; pair += stride())
        sort_pair_of_keys(at<u64>(p.keys), pair, p.reach, 0, p.last_span);
}

// The number of keys that a block sorts in shared memory.
const u32 SORTED_TOGETHER = 1024;

// All steps of the stages from `first_span` to `last_span` whose `reach` is at most half of what a block sorts.
HOST_DEVICE void sort_near(const ScatterSort& p) {
    __shared__ u64 keys[SORTED_TOGETHER];
    u32 length = p.count < SORTED_TOGETHER ? p.count : SORTED_TOGETHER;
    for (u32 block = blockIdx.x; block < p.count / length; block += gridDim.x) {
        u64* all = at<u64>(p.keys) + (u64)block * length;
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) keys[i] = all[i];
        __syncthreads();
        for (u32 span = p.first_span; span <= p.last_span; span *= 2)
            for (u32 reach = (span < length ? span : length) / 2; reach > 0; reach /= 2) {
                for (u32 pair = threadIdx.x; pair < length / 2; pair += blockDim.x)
                    sort_pair_of_keys(keys, pair, reach, block * length, span);
                __syncthreads();
            }
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) all[i] = keys[i];
        __syncthreads();
    }
}

KERNEL(scatter_keys_of_elements, ScatterElements, keys_of_elements)
KERNEL(scatter_keys_of_slices, ScatterSlices, keys_of_slices)
KERNEL(scatter_winners, ScatterKeys, find_winners)
KERNEL(scatter_sort_far, ScatterSort, sort_far)
COOPERATIVE(scatter_sort_near, ScatterSort, sort_near)
KERNEL(scatter_write_u8, ScatterWrite, write_winners<u8>)
KERNEL(scatter_write_u16, ScatterWrite, write_winners<u16>)
KERNEL(scatter_write_u32, ScatterWrite, write_winners<u32>)
KERNEL(scatter_write_u64, ScatterWrite, write_winners<u64>)
KERNEL(scatter_write_u128, ScatterWrite, write_winners<u128>)
#define COMBINE(kind, T, Combine) KERNEL(scatter_combine_##kind, ScatterWrite, combine_in_order<T, Combine>)
COMBINE(f16, f16, CombineFloats)
COMBINE(bf16, bf16, CombineFloats)
COMBINE(f32, f32, CombineFloats)
COMBINE(f64, f64, CombineFloats)
COMBINE(i8, i8, CombineIntegers)
COMBINE(i16, i16, CombineIntegers)
COMBINE(i32, i32, CombineIntegers)
COMBINE(i64, i64, CombineIntegers)
COMBINE(u8, u8, CombineIntegers)
COMBINE(u16, u16, CombineIntegers)
COMBINE(u32, u32, CombineIntegers)
COMBINE(u64, u64, CombineIntegers)
COMBINE(bool, u8, CombineTruths)
#undef COMBINE

// Y[batch, prefix, (first[batch] + row) mod size, ..] = updates[batch, prefix, row, ..] with Y [batch, prefixes, size,
// run] and updates [batch, prefixes, rows, run]. Batch entries whose rows do not fit are reported and not written,
// unless `circular`.
struct ScatterCache {
    u64 y, updates;
    // Absent if `has_firsts` is 0; rows are then written from index 0 on.
    Indices firsts;
    Fault fault;
    u32 count, prefixes, size, rows, run, circular, has_firsts, padding;
};

template <class T> HOST_DEVICE void write_cache(const ScatterCache& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 line = i / p.run, outer = line / p.rows, row = line - outer * p.rows;
        i64 begin = p.has_firsts ? index_at(p.firsts, outer / p.prefixes) : 0;
        if (begin < 0 || (!p.circular && begin > (i64)(p.size - p.rows))) {
            report(p.fault, outer / p.prefixes, begin);
            continue;
        }
        u32 place = ((u32)(begin % p.size) + row) % p.size;
        at<T>(p.y)[((u64)outer * p.size + place) * p.run + (i - line * p.run)] = at<const T>(p.updates)[i];
    }
}

KERNEL(scatter_cache_u8, ScatterCache, write_cache<u8>)
KERNEL(scatter_cache_u16, ScatterCache, write_cache<u16>)
KERNEL(scatter_cache_u32, ScatterCache, write_cache<u32>)
KERNEL(scatter_cache_u64, ScatterCache, write_cache<u64>)
KERNEL(scatter_cache_u128, ScatterCache, write_cache<u128>)
