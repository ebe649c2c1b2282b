// Implements what CUDA provides to a kernel, on the CPU: the language extensions, the indices of threads, and the
// operations of a block. Blocks run one after the other, and so do the warps of a block and the threads of a warp, each
// as far as possible without the others. A launch runs in several orders, and must write the same bytes in each
// (`emulator.rs`).
#pragma once

#include <math.h>
#include <cstdint>
#include <cstring>

typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef long long i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define HOST_DEVICE inline

f32 widen(f16 x);
f32 widen(bf16 x);
void narrow(f32 x, f16* y);
void narrow(f32 x, bf16* y);

struct Place {
    u32 x, y, z;
};
extern Place threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
void __syncwarp(u32 mask = 0xffffffffu);

// Returns the value of the thread whose index in the warp differs by `flip`.
template <class T> T __shfl_xor_sync(u32, T value, int flip) {
    static T given[1024];
    given[threadIdx.x] = value;
    __syncwarp();
    value = given[threadIdx.x ^ (u32)flip];
    __syncwarp();
    return value;
}

template <class T> T atomicAdd(T* place, T value) {
    T before = *place;
    *place = before + value;
    return before;
}
template <class T> T atomicMax(T* place, T value) {
    T before = *place;
    if (value > before) *place = value;
    return before;
}

template <class T> T atomicCAS(T* place, T expected, T value) {
    T before = *place;
    if (before == expected) *place = value;
    return before;
}

inline f32 rsqrtf(f32 x) { return 1 / sqrt(x); }
inline f64 rsqrt(f64 x) { return 1 / sqrt(x); }
// Products and sums that are not fused.
inline f32 __fmul_rn(f32 x, f32 y) { return x * y; }
inline f32 __fadd_rn(f32 x, f32 y) { return x + y; }
inline f32 __fsub_rn(f32 x, f32 y) { return x - y; }
inline f64 __dmul_rn(f64 x, f64 y) { return x * y; }
inline f64 __dadd_rn(f64 x, f64 y) { return x + y; }
inline f64 __dsub_rn(f64 x, f64 y) { return x - y; }

// The dot product of four bytes, plus `sum`; it wraps around.
inline i32 __dp4a(i32 x, i32 y, i32 sum) {
    u32 total = (u32)sum;
    for (int byte = 0; byte < 32; byte += 8) total += (u32)((i8)(x >> byte) * (i8)(y >> byte));
    return (i32)total;
}

inline u32 __float_as_uint(f32 x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return bits;
}
inline f32 __uint_as_float(u32 bits) {
    f32 x;
    memcpy(&x, &bits, 4);
    return x;
}
inline i64 __double_as_longlong(f64 x) {
    i64 bits;
    memcpy(&bits, &x, 8);
    return bits;
}

// A kernel in the list of all kernels. Its name is that of its module and its own: `copy/fill_u8`.
struct Entry {
    const char* name;
    u64 size;
    void (*run)(const void*);
    bool waits;
    Entry* next;
    static Entry* all;
    Entry(const char* name, u64 size, void (*run)(const void*), bool waits)
        : name(name), size(size), run(run), waits(waits), next(all) {
        all = this;
    }
};

#define LISTED(kernel, Params, waits, ...)                                                              \
    static void kernel##_run(const void* p) { __VA_ARGS__(*static_cast<const Params*>(p)); }            \
    static Entry kernel##_entry(MODULE "/" #kernel, sizeof(Params), kernel##_run, waits);
#define KERNEL(name, Params, ...) LISTED(name, Params, false, __VA_ARGS__)
#define COOPERATIVE(name, Params, ...) LISTED(name, Params, true, __VA_ARGS__)
