// Matrix products, tile by tile. A block computes TILE × TILE results, and each thread SIDE × SIDE of them. Both
// operands go through shared memory in pieces of DEPTH terms.
#include "device.cuh"

struct Matrix {
    u64 address, next;
    u32 row, transposed;
};
struct Gemm {
    Matrix a, b, c;
    u32 m, n, k, batch;
    f32 alpha, beta;
};

const u32 TILE = 64, DEPTH = 16, SIDE = 4, COLUMNS = TILE / SIDE;

// The offset of element [i, j] of matrix number `batch`.
HOST_DEVICE u64 place(const Matrix& matrix, u32 batch, u32 i, u32 j) {
    u64 inside = matrix.transposed ? (u64)j * matrix.row + i : (u64)i * matrix.row + j;
    return batch * matrix.next + inside;
}

// Loads rows `from..` of TILE × DEPTH elements into shared memory, with 0 beyond the matrix. If `flipped`, the matrix
// is B, and its columns are loaded.
template <class T>
HOST_DEVICE void fetch(const Matrix& matrix, u32 batch, bool flipped, u32 from, u32 rows, u32 depth, u32 k,
                       wide<T> (*tile)[TILE + 1]) {
    // Neighboring threads read neighboring elements.
    bool along_depth = flipped == (matrix.transposed != 0);
    for (u32 i = threadIdx.x; i < TILE * DEPTH; i += BLOCK) {
        u32 r = along_depth ? i / DEPTH : i % TILE, d = along_depth ? i % DEPTH : i / TILE;
        u32 row = from + r, inner = depth + d;
        wide<T> value = 0;
        if (row < rows && inner < k)
            value = widen(at<T>(matrix.address)[flipped ? place(matrix, batch, inner, row) : place(matrix, batch, row, inner)]);
        tile[d][r] = value;
    }
}

// T is the element type of A and B, and C that of the result.
template <class T, class C> HOST_DEVICE void tile(const Gemm& p, u32 batch, u32 top, u32 left) {
    typedef wide<T> W;
    __shared__ W a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];
    u32 i0 = threadIdx.x / COLUMNS * SIDE, j0 = threadIdx.x % COLUMNS * SIDE;
    W sum[SIDE][SIDE] = {};
    for (u32 depth = 0; depth < p.k; depth += DEPTH) {
        fetch<T>(p.a, batch, false, top, p.m, depth, p.k, a);
        fetch<T>(p.b, batch, true, left, p.n, depth, p.k, b);
        __syncthreads();
        // Sums DEPTH terms separately, which rounds less than a single sum.
        for (u32 i = 0; i < SIDE; i++)
            for (u32 j = 0; j < SIDE; j++) {
                W part = 0;
                for (u32 d = 0; d < DEPTH; d++) part += a[d][i0 + i] * b[d][j0 + j];
                sum[i][j] += part;
            }
        __syncthreads();
    }
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            u32 row = top + i0 + i, column = left + j0 + j;
            if (row >= p.m || column >= p.n) continue;
            C* c = at<C>(p.c.address) + place(p.c, batch, row, column);
            W value = p.alpha * sum[i][j];
            if (p.beta != 0) value += p.beta * widen(*c);
            narrow(value, c);
        }
}

template <class T, class C> HOST_DEVICE void gemm(const Gemm& p) {
    for (u32 batch = blockIdx.z; batch < p.batch; batch += gridDim.z)
        for (u32 top = blockIdx.y * TILE; top < p.m; top += gridDim.y * TILE)
            for (u32 left = blockIdx.x * TILE; left < p.n; left += gridDim.x * TILE) tile<T, C>(p, batch, top, left);
}

COOPERATIVE(gemm_f16, Gemm, gemm<f16, f16>)
COOPERATIVE(gemm_bf16, Gemm, gemm<bf16, bf16>)
COOPERATIVE(gemm_f32, Gemm, gemm<f32, f32>)
COOPERATIVE(gemm_f64, Gemm, gemm<f64, f64>)
COOPERATIVE(gemm_f16_f32, Gemm, gemm<f16, f32>)
COOPERATIVE(gemm_bf16_f32, Gemm, gemm<bf16, f32>)
