// The header of every kernel. Kernels are written once, and compiled for a GPU and, as C++, for the CPU, where tests
// run them.
//
// A kernel has one structure of parameters, which a structure in Rust mirrors: the derive in runtime/derive compares their
// fields. Addresses have 64 bits, and counts of elements 32. Threads beyond the work do nothing; if there are fewer threads than work, they loop.
#pragma once

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef __half f16;
typedef __nv_bfloat16 bf16;

// `name` runs `body(const Params&)` in each thread. The threads of a cooperative kernel synchronize with each other.
#define KERNEL(name, Params, ...) \
    extern "C" __global__ void name(const __grid_constant__ Params p) { __VA_ARGS__(p); }
#define COOPERATIVE(name, Params, ...) KERNEL(name, Params, __VA_ARGS__)
#define HOST_DEVICE __device__ __forceinline__
// Unrolls the loop that follows, so that arrays with its index as their index can be in registers.
#define UNROLL _Pragma("unroll")

HOST_DEVICE f32 widen(f16 x) { return __half2float(x); }
HOST_DEVICE f32 widen(bf16 x) { return __bfloat162float(x); }
HOST_DEVICE void narrow(f32 x, f16* y) { *y = __float2half_rn(x); }
HOST_DEVICE void narrow(f32 x, bf16* y) { *y = __float2bfloat16_rn(x); }

#else

#include "emulator.h"
#define UNROLL

#endif

// The widest word that a thread moves at once.
struct alignas(16) u128 {
    u64 low, high;
};

// The type in which numbers of a type are computed, and the conversions.
template <class T> struct Wide { typedef T Type; };
template <> struct Wide<f16> { typedef f32 Type; };
template <> struct Wide<bf16> { typedef f32 Type; };
template <class T> using wide = typename Wide<T>::Type;

template <class T> HOST_DEVICE T widen(T x) { return x; }
template <class T> HOST_DEVICE void narrow(T x, T* y) { *y = x; }
template <class T> HOST_DEVICE T narrowed(wide<T> x) {
    T y;
    narrow(x, &y);
    return y;
}

// Converts an address to a pointer.
template <class T> HOST_DEVICE T* at(u64 address) { return reinterpret_cast<T*>(address); }

// The thread's index in the grid, and the number of threads: `for (u32 i = first(); i < n; i += stride())`. Counts are
// below 2^31, so neither overflows.
HOST_DEVICE u32 first() { return blockIdx.x * blockDim.x + threadIdx.x; }
HOST_DEVICE u32 stride() { return gridDim.x * blockDim.x; }

// Dimensions, the outermost first, and strides over them for as many operands as a kernel has.
const u32 RANK = 8;
struct Dims {
    u32 rank;
    u32 size[RANK];
};
struct Strides {
    i32 step[RANK];
};

// The first value of a run that a kernel cannot take; all zeros before.
struct Record {
    // The mark and the number of the launch that reported the value; 0 for none.
    u64 launch;
    // The halves of the value, each below ~place in the high 32 bits: the smallest place makes the greatest words.
    u64 low, high;
    // The sizes that the value has to fit.
    Dims bounds;
};
// How a launch reports such a value: where the record is, the number of its step, its own number, and the sizes.
struct Fault {
    u64 record;
    u32 mark, launch;
    Dims bounds;
    u32 padding;
};

// Reports `value`, element `place` of its tensor, which the kernel cannot take. The first launch that reports a value
// claims the record, and the smallest of its places stays, in whatever order the threads run. All threads report the same
// value for a place.
HOST_DEVICE void report(const Fault& fault, u32 place, i64 value) {
    Record* record = at<Record>(fault.record);
    u64 own = (u64)fault.mark << 32 | fault.launch, before = atomicCAS(&record->launch, (u64)0, own);
    if (before != 0 && before != own) return;
    if (before == 0) record->bounds = fault.bounds;
    u64 smallest_first = (u64)~place << 32;
    atomicMax(&record->low, smallest_first | (u32)value);
    atomicMax(&record->high, smallest_first | (u32)(value >> 32));
}

// The sum over all dimensions of index · stride, for the element `position` in row-major order.
HOST_DEVICE i64 offset(const Dims& dims, const Strides& strides, u32 position) {
    i64 sum = 0;
    for (u32 axis = dims.rank; axis-- > 0;) {
        u32 rest = position / dims.size[axis];
        sum += (i64)(position - rest * dims.size[axis]) * strides.step[axis];
        position = rest;
    }
    return sum;
}

// ── Operations of a block; all of its threads call them. ──

// The threads of a block of a cooperative kernel.
const u32 BLOCK = 256;

// Joins the values of all threads of the block, and returns the result in every thread.
template <class T, class Join> HOST_DEVICE T together(T value, Join join) {
    __shared__ T of_warp[BLOCK / 32];
    for (int reach = 16; reach > 0; reach /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, reach));
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
    for (u32 warp = 1; warp < blockDim.x / 32; warp++) value = join(value, of_warp[warp]);
    __syncthreads();
    return value;
}

struct Add {
    template <class T> HOST_DEVICE T operator()(T a, T b) const { return a + b; }
};
// NaN if either is NaN.
struct Greater {
    template <class T> HOST_DEVICE T operator()(T a, T b) const { return b > a || b != b ? b : a; }
};
struct Less {
    template <class T> HOST_DEVICE T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};
