// Gathers elements and rows by index. An index out of bounds is reported, and gives zeros.
#include "indices.cuh"

// The tensors of a kernel that gathers along one axis of X with `size` places. Y has `count` elements.
struct Gathered {
    u64 x, y;
    Indices indices;
    Fault fault;
    u32 count, size;
};

// Y[outer, i, ..] = X[outer, indices[i], ..], with X [outer, size, run] and Y [outer, picked, run].
struct GatherRows {
    Gathered all;
    u32 picked, run;
};

template <class T> HOST_DEVICE void gather_rows(const GatherRows& p) {
    const Gathered& all = p.all;
    for (u32 i = first(); i < all.count; i += stride()) {
        u32 row = i / p.run, outer = row / p.picked, place = 0;
        bool is_there = find_place(all.indices, row - outer * p.picked, all.size, all.fault, &place);
        u64 from = ((u64)outer * all.size + place) * p.run + (i - row * p.run);
        at<T>(all.y)[i] = is_there ? at<const T>(all.x)[from] : T{};
    }
}

// Y[i₀, …] = X[i₀, …, indices[i₀, …], …]. `dims` are those of the indices. `strides` are those of X, but 0 on the axis,
// whose stride is `step`.
struct GatherElements {
    Gathered all;
    u32 step;
    Dims dims;
    Strides strides;
};

template <class T> HOST_DEVICE void gather_elements(const GatherElements& p) {
    const Gathered& all = p.all;
    for (u32 i = first(); i < all.count; i += stride()) {
        u32 place = 0;
        bool is_there = find_place(all.indices, i, all.size, all.fault, &place);
        i64 from = offset(p.dims, p.strides, i) + (i64)place * p.step;
        at<T>(all.y)[i] = is_there ? at<const T>(all.x)[from] : T{};
    }
}

// Y[i] = the slice of X, of `run` elements, at the position of vector `i`.
struct GatherSlices {
    u64 x, y;
    Vectors vectors;
    u32 count, run;
};

template <class T> HOST_DEVICE void gather_slices(const GatherSlices& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 vector = i / p.run;
        u64 slice = 0;
        bool is_there = find_slice(p.vectors, vector, &slice);
        at<T>(p.y)[i] = is_there ? at<const T>(p.x)[slice * p.run + (i - vector * p.run)] : T{};
    }
}

// X [outer, inner, run] with the first `lengths[b]` steps of each batch entry in reverse order. One of the first two
// axes is time, and the other one is the batch.
struct ReverseRows {
    u64 x, y;
    Indices lengths;
    Fault fault;
    u32 count, outer, inner, run, time_first, padding;
};

template <class T> HOST_DEVICE void reverse_rows(const ReverseRows& p) {
    u32 steps = p.time_first ? p.outer : p.inner;
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 row = i / p.run, outer = row / p.inner, inner = row - outer * p.inner;
        u32 member = p.time_first ? inner : outer;
        i64 length = index_at(p.lengths, member);
        bool fits = length >= 0 && length <= (i64)steps;
        if (!fits) report(p.fault, member, length);
        u32 step = p.time_first ? outer : inner, other = fits && step < length ? (u32)length - 1 - step : step;
        u64 from = (p.time_first ? (u64)other * p.inner + inner : (u64)outer * p.inner + other) * p.run;
        at<T>(p.y)[i] = fits ? at<const T>(p.x)[from + (i - row * p.run)] : T{};
    }
}

KERNEL(gather_rows_u8, GatherRows, gather_rows<u8>)
KERNEL(gather_rows_u16, GatherRows, gather_rows<u16>)
KERNEL(gather_rows_u32, GatherRows, gather_rows<u32>)
KERNEL(gather_rows_u64, GatherRows, gather_rows<u64>)
KERNEL(gather_rows_u128, GatherRows, gather_rows<u128>)
KERNEL(gather_elements_u8, GatherElements, gather_elements<u8>)
KERNEL(gather_elements_u16, GatherElements, gather_elements<u16>)
KERNEL(gather_elements_u32, GatherElements, gather_elements<u32>)
KERNEL(gather_elements_u64, GatherElements, gather_elements<u64>)
KERNEL(gather_slices_u8, GatherSlices, gather_slices<u8>)
KERNEL(gather_slices_u16, GatherSlices, gather_slices<u16>)
KERNEL(gather_slices_u32, GatherSlices, gather_slices<u32>)
KERNEL(gather_slices_u64, GatherSlices, gather_slices<u64>)
KERNEL(gather_slices_u128, GatherSlices, gather_slices<u128>)
KERNEL(reverse_rows_u8, ReverseRows, reverse_rows<u8>)
KERNEL(reverse_rows_u16, ReverseRows, reverse_rows<u16>)
KERNEL(reverse_rows_u32, ReverseRows, reverse_rows<u32>)
KERNEL(reverse_rows_u64, ReverseRows, reverse_rows<u64>)
KERNEL(reverse_rows_u128, ReverseRows, reverse_rows<u128>)
