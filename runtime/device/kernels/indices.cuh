// Index tensors, and the positions that they refer to.
#pragma once

#include "device.cuh"

// 32-bit or 64-bit integers.
struct Indices {
    u64 address;
    u32 are_wide, padding;
};

HOST_DEVICE i64 index_at(const Indices& indices, u64 i) {
    return indices.are_wide ? at<const i64>(indices.address)[i] : at<const i32>(indices.address)[i];
}

// The place that index `i` has on an axis of `size`, counted from the end where it is negative; false, after a report,
// where there is none.
HOST_DEVICE bool find_place(const Indices& indices, u32 i, u32 size, const Fault& fault, u32* place) {
    i64 index = index_at(indices, i), from_start = index < 0 ? index + (i64)size : index;
    if (from_start < 0 || from_start >= (i64)size) {
        report(fault, i, index);
        return false;
    }
    *place = (u32)from_start;
    return true;
}

// Vectors with one index for each of the `picked` axes of a tensor. Each batch has `per_batch` of them.
struct Vectors {
    Indices indices;
    Fault fault;
    u32 per_batch;
    Dims picked;
};

// Sets `slice` to the number of the slice at the position of a vector; returns false if an index is out of bounds.
HOST_DEVICE bool find_slice(const Vectors& vectors, u32 vector, u64* slice) {
    *slice = vector / vectors.per_batch;
    for (u32 axis = 0; axis < vectors.picked.rank; axis++) {
        u32 place = 0, size = vectors.picked.size[axis];
        u32 i = vector * vectors.picked.rank + axis;
        if (!find_place(vectors.indices, i, size, vectors.fault, &place)) return false;
        *slice = *slice * size + place;
    }
    return true;
}
