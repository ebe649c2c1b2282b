// Copies elements between positions of two tensors. The elements are only moved, so one kernel per width serves every
// type.
#include "device.cuh"

// y[Σ index · to] = x[Σ index · from] for every index of the dimensions.
struct CopyOf {
    u64 x, y;
    u32 count;
    Dims dims;
    Strides from, to;
};

template <class T> HOST_DEVICE void copy_strided(const CopyOf& p) {
    const T* x = at<const T>(p.x);
    T* y = at<T>(p.y);
    for (u32 i = first(); i < p.count; i += stride()) {
        i64 from = 0, to = 0;
        u32 rest = i;
        for (u32 axis = p.dims.rank; axis-- > 1;) {
            u32 outer = rest / p.dims.size[axis], index = rest - outer * p.dims.size[axis];
            from += (i64)index * p.from.step[axis];
            to += (i64)index * p.to.step[axis];
            rest = outer;
        }
        y[to + (i64)rest * p.to.step[0]] = x[from + (i64)rest * p.from.step[0]];
    }
}

// For each of `planes`, which start at the offsets that the dimensions' strides give: y[row · to + column] = x[column ·
// from + row].
struct TransposeOf {
    u64 x, y;
    u32 rows, columns;
    i32 from, to;
    u32 planes;
    Dims dims;
    Strides begins, ends;
};

// The side of the square that a block transposes. In shared memory, its rows are padded by one element, so that a
// column is spread over the banks.
const u32 SQUARE = 32;

template <class T> HOST_DEVICE void transpose_planes(const TransposeOf& p) {
    __shared__ T square[SQUARE][SQUARE + 1];
    u32 down = (p.rows + SQUARE - 1) / SQUARE, across = (p.columns + SQUARE - 1) / SQUARE;
    u32 lane = threadIdx.x % SQUARE, line = threadIdx.x / SQUARE, lines = blockDim.x / SQUARE;
    for (u32 i = blockIdx.x; i < p.planes * down * across; i += gridDim.x) {
        u32 plane = i / (down * across), rest = i - plane * down * across;
        u32 row = rest / across * SQUARE, column = rest % across * SQUARE;
        const T* x = at<const T>(p.x) + offset(p.dims, p.begins, plane);
        T* y = at<T>(p.y) + offset(p.dims, p.ends, plane);
        for (u32 k = line; k < SQUARE; k += lines)
            if (row + lane < p.rows && column + k < p.columns)
                square[k][lane] = x[(i64)(column + k) * p.from + (row + lane)];
        __syncthreads();
        for (u32 k = line; k < SQUARE; k += lines)
            if (row + k < p.rows && column + lane < p.columns)
                y[(i64)(row + k) * p.to + (column + lane)] = square[lane][k];
        __syncthreads();
    }
}

// Every element gets the low bits of `value`.
struct FillOf {
    u64 y, value;
    u32 count, padding;
};

template <class T> HOST_DEVICE void fill_all(const FillOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) at<T>(p.y)[i] = (T)p.value;
}

KERNEL(copy_u8, CopyOf, copy_strided<u8>)
KERNEL(copy_u16, CopyOf, copy_strided<u16>)
KERNEL(copy_u32, CopyOf, copy_strided<u32>)
KERNEL(copy_u64, CopyOf, copy_strided<u64>)
KERNEL(copy_u128, CopyOf, copy_strided<u128>)
COOPERATIVE(transpose_u8, TransposeOf, transpose_planes<u8>)
COOPERATIVE(transpose_u16, TransposeOf, transpose_planes<u16>)
COOPERATIVE(transpose_u32, TransposeOf, transpose_planes<u32>)
COOPERATIVE(transpose_u64, TransposeOf, transpose_planes<u64>)
COOPERATIVE(transpose_u128, TransposeOf, transpose_planes<u128>)
KERNEL(fill_u8, FillOf, fill_all<u8>)
KERNEL(fill_u16, FillOf, fill_all<u16>)
KERNEL(fill_u32, FillOf, fill_all<u32>)
KERNEL(fill_u64, FillOf, fill_all<u64>)
