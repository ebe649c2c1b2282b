// Products of 8-bit integers, whose zero points may broadcast in any way, with wrapping 32-bit sums; and conversion of
// sums to codes.
#include "device.cuh"

// For each of `batch` products: Y [m, n] = (A [m, k] − a_zero) · (B [k, n] − b_zero). `dims` are those of the batch,
// with one set of strides per operand. The address of an absent zero point is 0.
struct IntegerProduct {
    u64 a, b, a_zero, b_zero, y;
    u32 m, n, k, batch, a_signed, b_signed;
    // The strides of rows and of terms, then of terms and of columns.
    i32 a_zero_row, a_zero_term, b_zero_term, b_zero_column;
    Dims dims;
    Strides a_next, b_next, a_zero_next, b_zero_next;
    u32 padding;
};

// Y = saturate(round(X · (a · b ÷ y_scale)) + y_zero); a and b broadcast to X.
struct Requantize {
    u64 x, a, b, y_scale, y_zero, y;
    u32 count, y_signed;
    Dims dims;
    Strides a_strides, b_strides;
    u32 padding;
};

const u32 TILE = 64, DEPTH = 16, SIDE = 4, COLUMNS = TILE / SIDE;

HOST_DEVICE i32 code(u64 address, i64 i, u32 is_signed) {
    if (!address) return 0;
    return is_signed ? (i32)at<const i8>(address)[i] : (i32)at<const u8>(address)[i];
}

// The offsets of the operands of one product.
struct Begin {
    i64 a, b, a_zero, b_zero;
};

HOST_DEVICE i32 left_term(const IntegerProduct& p, const Begin& begin, u32 row, u32 term) {
    if (row >= p.m || term >= p.k) return 0;
    i64 zero = begin.a_zero + (i64)row * p.a_zero_row + (i64)term * p.a_zero_term;
    return code(p.a, begin.a + (i64)row * p.k + term, p.a_signed) - code(p.a_zero, zero, p.a_signed);
}

HOST_DEVICE i32 right_term(const IntegerProduct& p, const Begin& begin, u32 term, u32 column) {
    if (column >= p.n || term >= p.k) return 0;
    i64 zero = begin.b_zero + (i64)term * p.b_zero_term + (i64)column * p.b_zero_column;
    return code(p.b, begin.b + (i64)term * p.n + column, p.b_signed) - code(p.b_zero, zero, p.b_signed);
}

HOST_DEVICE void tile(const IntegerProduct& p, u32 batch, u32 top, u32 left) {
    __shared__ i32 a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    Begin begin = {offset(p.dims, p.a_next, batch), offset(p.dims, p.b_next, batch),
                   offset(p.dims, p.a_zero_next, batch), offset(p.dims, p.b_zero_next, batch)};
    u32 i0 = threadIdx.x / COLUMNS * SIDE, j0 = threadIdx.x % COLUMNS * SIDE;
    u32 sum[SIDE][SIDE] = {};
    for (u32 depth = 0; depth < p.k; depth += DEPTH) {
        for (u32 i = threadIdx.x; i < TILE * DEPTH; i += BLOCK) {
            a[i % DEPTH][i / DEPTH] = left_term(p, begin, top + i / DEPTH, depth + i % DEPTH);
            b[i / TILE][i % TILE] = right_term(p, begin, depth + i / TILE, left + i % TILE);
        }
        __syncthreads();
        for (u32 d = 0; d < DEPTH; d++)
            for (u32 i = 0; i < SIDE; i++)
                for (u32 j = 0; j < SIDE; j++) sum[i][j] += (u32)(a[d][i0 + i] * b[d][j0 + j]);
        __syncthreads();
    }
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            u32 row = top + i0 + i, column = left + j0 + j;
            if (row < p.m && column < p.n) at<u32>(p.y)[((u64)batch * p.m + row) * p.n + column] = sum[i][j];
        }
}

HOST_DEVICE void product(const IntegerProduct& p) {
    for (u32 batch = blockIdx.z; batch < p.batch; batch += gridDim.z)
        for (u32 left = blockIdx.y * TILE; left < p.n; left += gridDim.y * TILE)
            for (u32 top = blockIdx.x * TILE; top < p.m; top += gridDim.x * TILE) tile(p, batch, top, left);
}

HOST_DEVICE void requantize(const Requantize& p) {
    f32 y_scale = *at<const f32>(p.y_scale), zero = (f32)code(p.y_zero, 0, p.y_signed);
    f32 low = p.y_signed ? -128 : 0, high = p.y_signed ? 127 : 255;
    for (u32 i = first(); i < p.count; i += stride()) {
        f32 a = at<const f32>(p.a)[offset(p.dims, p.a_strides, i)], b = at<const f32>(p.b)[offset(p.dims, p.b_strides, i)];
        f32 x = __fadd_rn(rintf(__fmul_rn((f32)at<const i32>(p.x)[i], __fmul_rn(a, b) / y_scale)), zero);
        // NaN gives 0.
        x = x != x ? 0 : x < low ? low : x > high ? high : x;
        at<u8>(p.y)[i] = (u8)(i32)x;
    }
}

COOPERATIVE(integer_product, IntegerProduct, product)
KERNEL(requantize_codes, Requantize, requantize)
