// Keeps or clears elements by their position.
#include "device.cuh"

// The part of matrices `[rows, columns]` above diagonal `k`, or below it, including the diagonal; 0 elsewhere. Y may be
// X. Must match `TriluParams` in Rust.
struct TriluOf {
    u64 x, y;
    i64 k;
    u32 count, rows, columns, is_upper;
};

template <class T> HOST_DEVICE void triangle(const TriluOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        i64 diagonal = i / p.columns % p.rows + p.k, column = i % p.columns;
        bool is_kept = p.is_upper ? column >= diagonal : column <= diagonal;
        at<T>(p.y)[i] = is_kept ? at<const T>(p.x)[i] : T(0);
    }
}

KERNEL(trilu_u8, TriluOf, triangle<u8>)
KERNEL(trilu_u16, TriluOf, triangle<u16>)
KERNEL(trilu_u32, TriluOf, triangle<u32>)
KERNEL(trilu_u64, TriluOf, triangle<u64>)
