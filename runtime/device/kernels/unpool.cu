// Unpooling: writes each element at its index, and zeros elsewhere. If several have the same index, the last one wins.
#include "device.cuh"

struct Unpooling {
    // `last`: for each element of Y, the number of its element in X, counted from 1; 0 if there is none.
    u64 x, indices, y, last;
    // The number of elements that indices may address.
    u64 counted;
    Fault fault;
    // The number of elements of X and of Y.
    u32 count, total;
    // The tensor that the indices address, and the strides of Y over it.
    Dims dims;
    Strides strides;
};

HOST_DEVICE void clear(const Unpooling& p) {
    for (u32 i = first(); i < p.total; i += stride()) at<u32>(p.last)[i] = 0;
}

HOST_DEVICE void mark(const Unpooling& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        i64 index = at<const i64>(p.indices)[i];
        if (index < 0 || (u64)index >= p.counted) report(p.fault, i, index);
        else atomicMax(at<u32>(p.last) + offset(p.dims, p.strides, (u32)index), i + 1);
    }
}

template <class W> HOST_DEVICE void give(const Unpooling& p) {
    for (u32 i = first(); i < p.total; i += stride()) {
        u32 number = at<const u32>(p.last)[i];
        at<W>(p.y)[i] = number ? at<const W>(p.x)[number - 1] : W(0);
    }
}

KERNEL(unpool_clear, Unpooling, clear)
KERNEL(unpool_mark, Unpooling, mark)
KERNEL(unpool_give_u16, Unpooling, give<u16>)
KERNEL(unpool_give_u32, Unpooling, give<u32>)
KERNEL(unpool_give_u64, Unpooling, give<u64>)
