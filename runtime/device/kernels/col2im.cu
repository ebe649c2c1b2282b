// Adds the columns of sliding windows `[planes, taps, windows]` to images: each element is the sum of the taps that
// were extracted from it.
#include "device.cuh"

struct Columns {
    u64 x, y;
    // The elements of Y, the taps of a window, and the windows of an image.
    u32 count, taps, windows;
    Dims image;
    // Per axis: the taps, the windows, the strides and dilations, and the padding before the image.
    u32 kernel[RANK], places[RANK], stride[RANK], dilation[RANK], before[RANK];
};

// The type of sums: integers wrap around.
template <class T> struct Total { typedef u64 Type; };
template <> struct Total<f16> { typedef f32 Type; };
template <> struct Total<bf16> { typedef f32 Type; };
template <> struct Total<f32> { typedef f32 Type; };
template <> struct Total<f64> { typedef f64 Type; };

// Finds the window that has the element at `position` as its tap number `tap`; returns false if there is none.
HOST_DEVICE bool window_at(const Columns& p, const u32* position, u32 tap, u32* window) {
    u32 number = 0, size = 1;
    for (u32 a = p.image.rank; a-- > 0;) {
        u32 rest = tap / p.kernel[a], begin = (tap - rest * p.kernel[a]) * p.dilation[a], padded = position[a] + p.before[a];
        if (padded < begin) return false;
        u32 place = (padded - begin) / p.stride[a];
        if (place * p.stride[a] != padded - begin || place >= p.places[a]) return false;
        number += place * size;
        size *= p.places[a];
        tap = rest;
    }
    *window = number;
    return true;
}

template <class T> HOST_DEVICE void add_up(const Columns& p) {
    typedef typename Total<T>::Type W;
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 position[RANK], plane = i, window;
        for (u32 a = p.image.rank; a-- > 0;) {
            u32 rest = plane / p.image.size[a];
            position[a] = plane - rest * p.image.size[a];
            plane = rest;
        }
        const T* columns = at<const T>(p.x) + (u64)plane * p.taps * p.windows;
        W sum = 0;
        for (u32 tap = 0; tap < p.taps; tap++)
            if (window_at(p, position, tap, &window)) sum += (W)widen(columns[tap * p.windows + window]);
        narrow((wide<T>)sum, at<T>(p.y) + i);
    }
}

KERNEL(col2im_f16, Columns, add_up<f16>)
KERNEL(col2im_bf16, Columns, add_up<bf16>)
KERNEL(col2im_f32, Columns, add_up<f32>)
KERNEL(col2im_f64, Columns, add_up<f64>)
KERNEL(col2im_i8, Columns, add_up<i8>)
KERNEL(col2im_i16, Columns, add_up<i16>)
KERNEL(col2im_i32, Columns, add_up<i32>)
KERNEL(col2im_i64, Columns, add_up<i64>)
KERNEL(col2im_u8, Columns, add_up<u8>)
KERNEL(col2im_u16, Columns, add_up<u16>)
KERNEL(col2im_u32, Columns, add_up<u32>)
KERNEL(col2im_u64, Columns, add_up<u64>)
