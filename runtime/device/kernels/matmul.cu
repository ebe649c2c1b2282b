// Kernels for matrix products other than `gemm`: products of integers, and addends that broadcast.
#include "device.cuh"

// `y = alpha · a · b + beta · addend` for matrices `[m, k]`, `[k, n]` and `[m, n]`; elements wrap around.
struct IntegerProduct {
    u64 a, b, addend, y;
    u64 alpha, beta;
    u32 count, m, n, k;
    // The strides of rows and columns.
    u32 a_step[2], b_step[2], addend_step[2];
    // The strides of each operand's batch.
    Strides a_next, b_next;
    Dims batch;
    u32 padding;
};

// One element per thread; neighboring threads have the same row.
template <class T> HOST_DEVICE void integer_product(const IntegerProduct& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 column = i % p.n, row = i / p.n % p.m, number = i / p.n / p.m;
        const T* a = at<const T>(p.a) + offset(p.batch, p.a_next, number) + (u64)row * p.a_step[0];
        const T* b = at<const T>(p.b) + offset(p.batch, p.b_next, number) + (u64)column * p.b_step[1];
        T sum = 0;
        for (u32 d = 0; d < p.k; d++) sum += a[(u64)d * p.a_step[1]] * b[(u64)d * p.b_step[0]];
        sum *= (T)p.alpha;
        if (p.addend) sum += (T)p.beta * at<const T>(p.addend)[(u64)row * p.addend_step[0] + (u64)column * p.addend_step[1]];
        at<T>(p.y)[i] = sum;
    }
}

// Fills `y [count / n, n]` with the addend, or with 0 times the addend.
struct Addend {
    u64 addend, y;
    u32 count, n;
    u32 step[2];
    u32 is_zero, padding;
};

template <class T> HOST_DEVICE void expand_addend(const Addend& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        wide<T> c = widen(at<const T>(p.addend)[(u64)(i / p.n) * p.step[0] + (u64)(i % p.n) * p.step[1]]);
        narrow(p.is_zero ? 0 * c : c, at<T>(p.y) + i);
    }
}

KERNEL(integers_u32, IntegerProduct, integer_product<u32>)
KERNEL(integers_u64, IntegerProduct, integer_product<u64>)
KERNEL(addend_f16, Addend, expand_addend<f16>)
KERNEL(addend_bf16, Addend, expand_addend<bf16>)
KERNEL(addend_f32, Addend, expand_addend<f32>)
KERNEL(addend_f64, Addend, expand_addend<f64>)
